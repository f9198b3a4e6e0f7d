"""Write the archived timeline of layout 2: a Parquet file with one row per completed instant.

A row has the bytes of the instant's completed file, and its plan as Hudi chooses it. Hudi writes
the files as Avro records with the codec of the table's base files. They have no meta columns and no
bloom filter.

Source: LSMTimelineWriter (write, compactFiles), MetadataConversionUtils.createLSMTimelineInstant,
ActiveAction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_binary import decoding, load_schema_text, require
from reconciler.hudi.timeline.archivable_instant import ArchivableInstant
from reconciler.hudi.timeline.history_manifest import make_history_name
from reconciler.hudi.timeline.instant import Action, State

_SCHEMA: Final = "HoodieLSMTimelineInstant.avsc"
#: the version of a row
_ROW_VERSION: Final = 1
#: bytes of rows after which a row group ends; it has at least one row
_GROUP_BYTES: Final = 64 << 20
_TEXTS: Final = ("instantTime", "completionTime", "action")
_REPLACEMENTS: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})
_COMPACTIONS: Final = frozenset({Action.COMPACTION, Action.LOGCOMPACTION})


def name_lsm_file(instants: Sequence[ArchivableInstant]) -> str:
    """Return the name of a new file with the instants, which are at least one."""
    times = [instant.requested for instant in instants]
    return make_history_name(min(times), max(times))


def encode_lsm_file(instants: Iterable[ArchivableInstant], *, compression: str = "gzip") -> bytes:
    """Encode a new file of the history with the instants, ordered by requested time.

    ``compression``: the codec of the table's base files by its name in pyarrow. Raises FormatError
    naming an instant's file whose bytes cannot be decoded.
    """
    ordered = sorted(instants, key=lambda instant: instant.requested)
    rows = _build_columns([_build_row(instant) for instant in ordered])
    return _write_tables([rows], compression)


def merge_lsm_files(files: Iterable[tuple[str, bytes]], *, compression: str = "gzip") -> bytes:
    """Encode the rows of files as one file, in the order of the files.

    ``files``: paths and bytes; one is held at a time. Raises FormatError naming a file that is not
    a history file.
    """
    return _write_tables((_read_rows(path, data) for path, data in files), compression)


def _build_row(instant: ArchivableInstant) -> dict[str, Any]:
    for state in State:  # Hudi could not read a history with a damaged file
        instant.decode(state, with_completion=True)
    return {
        "instantTime": instant.requested,
        "completionTime": instant.completion,
        "action": instant.action.value,
        "metadata": instant.completed_bytes or None,
        "plan": _choose_plan(instant),
        "version": _ROW_VERSION,
    }


def _choose_plan(instant: ArchivableInstant) -> bytes | None:
    """Return the bytes of the plan column.

    A replacement without a plan of clustering has its workload profile there. The requested file of
    a write is empty, and Hudi leaves out the plan of a rollback.
    """
    pending = instant.pending_action
    if pending in _REPLACEMENTS:
        return instant.inflight_bytes or instant.requested_bytes or None
    if pending in _COMPACTIONS:
        return instant.requested_bytes or None
    if pending is Action.CLEAN:
        is_requested = instant.requested_bytes is not None
        return (instant.requested_bytes if is_requested else instant.inflight_bytes) or None
    return None


def _make_schema() -> Any:
    import pyarrow as pa  # noqa: PLC0415 (loaded only to archive)

    texts = [pa.field(name, pa.string()) for name in _TEXTS]
    contents = [pa.field(name, pa.binary()) for name in ("metadata", "plan")]
    version = pa.field("version", pa.int32(), nullable=False)
    return pa.schema([*texts, *contents, version])


def _build_columns(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.Table.from_pylist(rows, schema=_make_schema())


def _read_rows(path: str, data: bytes) -> Any:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    schema = _make_schema()
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        table = file.read(columns=schema.names).select(schema.names).cast(schema)
        table.validate(full=True)
    except (pa.ArrowException, OSError, LookupError, MemoryError, ValueError) as problem:
        raise FormatError(
            path, f"is not a history file: {problem}", "restore it from a copy"
        ) from None
    with decoding(path, "an archived instant"):
        require(not table.column("instantTime").null_count, "it has no instant time")
    return table


def _write_tables(tables: Iterable[Any], compression: str) -> bytes:
    """Write rows with the footer of Hudi's writer.

    It has Avro's schema instead of Arrow's. Statistics of the contents would be as long as these.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        _make_schema(),
        version="1.0",
        use_dictionary=["action", "version"],
        compression=compression,
        store_schema=False,
        write_statistics=[*_TEXTS, "version"],
        write_page_checksum=True,
    ) as writer:
        footer = {"parquet.avro.schema": load_schema_text(_SCHEMA), "writer.model.name": "avro"}
        writer.add_key_value_metadata(footer)
        for table in tables:
            for group in _cut_groups(table):
                writer.write_table(group)
    return bytes(sink.getvalue())


def _cut_groups(table: Any) -> Iterator[Any]:
    """Cut rows into row groups of limited size."""
    rows = max(1, len(table) * _GROUP_BYTES // max(table.nbytes, 1))
    return (table.slice(at, rows) for at in range(0, len(table), rows))
