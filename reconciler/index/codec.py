"""Encode an index as a Parquet file that any Parquet reader understands, and decode it.

The file has one row per base file, sorted by (partition, name, size), and a struct
``stats_<column>`` per indexed column, null if unknown. Pages carry checksums and the footer says
where the index comes from; ``docs/index-format.md`` describes the columns and the keys. Decoding
raises FormatError for any file that differs from what was written: reading without an index is
better than reading with a wrong one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler import canonical_json
from reconciler.arrays import Integers, to_arrow, to_nullable, to_numpy
from reconciler.errors import FormatError
from reconciler.index.file_keys import fill_unknown, is_in_order, sort_partitions
from reconciler.index.model import PARTITION, ColumnStats, FileIndex, indexed_type
from reconciler.lazy_dataclass import dataclass

FORMAT: Final = 1
#: the key of the footer's key-value pair, and the prefix of the columns with statistics
KEY: Final = b"reconciler.index"
STATS: Final = "stats_"
_ROWS: Final = 128 * 1024
_FILE: Final = (
    pa.field("partition", PARTITION, nullable=False),
    pa.field("name", pa.string(), nullable=False),
    pa.field("size", pa.int64(), nullable=False),
    pa.field("rows", pa.int64()),
)
_FLAGS: Final = ("is_exact_least", "is_exact_greatest", "is_nan_free")
_REMEDY: Final = "delete it; the next apply builds it again"


class _DamageError(Exception):
    """The file differs from what an index file holds."""


class NewerFormatError(FormatError):
    """The index was written by a later version of reconciler; this version must not remove it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of an index.

    ``table``: the table's name. ``instant``: the newest completed instant that the index covers.
    ``tool``: name and version of the program that made it. ``source``: the source of its
    statistics. ``previous``: the version it was merged with, None for an index from footers alone.
    ``columns``: the type of each column as text. ``files``: number of rows. The encoder fills in
    ``columns`` and ``files``.
    """

    table: str
    instant: str
    tool: str
    source: str = "footers"
    previous: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    files: int = 0


def encode_index(index: FileIndex, provenance: Provenance) -> Any:
    """Return the bytes of the file as a pyarrow buffer; equal indexes give equal bytes."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    columns = [
        index.partition.cast(PARTITION),
        index.name,
        to_arrow(index.size),
        _encode_counts(index.rows),
        *map(_encode_stats, index.columns.values()),
    ]
    stats_fields = [
        pa.field(STATS + name, _stats_type(stats.type), nullable=False)
        for name, stats in index.columns.items()
    ]
    table = pa.Table.from_arrays(columns, schema=pa.schema([*_FILE, *stats_fields]))
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        version="2.6",
        compression="zstd",
        compression_level=1,
        use_dictionary=["partition"],
        write_statistics=["partition", "name"],
        write_page_checksum=True,
        store_schema=False,
    ) as file:
        file.write_table(table, row_group_size=_ROWS)
        file.add_key_value_metadata({KEY: _encode_provenance(index, provenance)})
    return sink.getvalue()


def decode_index(
    source: Any, path: str, columns: Sequence[str] | None = None
) -> tuple[FileIndex, Provenance]:
    """Return the index in a file and its provenance; raises FormatError naming ``path``.

    ``source``: the bytes of the file, or anything that pyarrow reads from (a file, a path).
    ``columns``: the columns whose statistics to read, by default all; columns that the index lacks
    are skipped.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    if isinstance(source, bytes | bytearray | memoryview | pa.Buffer):
        source = pa.BufferReader(source)
    with (
        _name_damaged_file(path),
        pq.ParquetFile(
            source, read_dictionary=["partition"], page_checksum_verification=True
        ) as file,
    ):
        provenance = _parse_provenance(file.metadata.metadata or {}, path)
        kinds = _read_types(file.schema_arrow, provenance)
        wanted = [name for name in kinds if columns is None or name in columns]
        fields = [*(part.name for part in _FILE), *(STATS + name for name in wanted)]
        table = file.read(columns=fields).select(fields)
        return _decode_table(table, wanted, provenance), provenance


def check_format(tail: bytes, path: str) -> None:
    """Check that this version of reconciler knows the format of an index file.

    ``tail``: the end of the file with its whole footer (``FooterTails.read``). Raises
    NewerFormatError for a newer format, and FormatError for a file that is not an index.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    with _name_damaged_file(path):
        _parse_provenance(pq.read_metadata(pa.BufferReader(tail)).metadata or {}, path)


@contextmanager
def _name_damaged_file(path: str) -> Iterator[None]:
    """Raise FormatError with ``path`` for any damage that is found inside."""
    try:
        yield
    except _DamageError as problem:
        raise FormatError(path, str(problem), _REMEDY) from None
    except KeyError:  # pyarrow's message for a missing column is only its name
        raise FormatError(path, "its columns differ from those of an index", _REMEDY) from None
    except (pa.ArrowException, OSError, ValueError, OverflowError, LookupError) as problem:
        message = " ".join(str(problem).split()).rstrip(". ")
        raise FormatError(path, f"it cannot be read as an index: {message}", _REMEDY) from None


def _encode_provenance(index: FileIndex, provenance: Provenance) -> bytes:
    columns = {name: str(stats.type) for name, stats in index.columns.items()}
    document = {**asdict(provenance), "columns": columns, "files": len(index), "format": FORMAT}
    return canonical_json.to_bytes({**document, "digest": canonical_json.digest_document(document)})


def _parse_provenance(pairs: Mapping[bytes, bytes], path: str) -> Provenance:
    text = pairs.get(KEY)
    if text is None:
        raise _DamageError(f"its footer has no {KEY.decode()}")
    try:
        document = json.loads(text)
        version, digest = document.pop("format"), document.pop("digest")
    except (ValueError, TypeError, AttributeError, KeyError) as problem:
        raise _DamageError(f"the provenance in its footer is malformed: {problem}") from None
    if isinstance(version, int) and version > FORMAT:
        raise NewerFormatError(
            path,
            f"its format is {version}, and this version of reconciler knows format {FORMAT}",
            "upgrade reconciler, or delete it; until then the index is not updated",
        )
    if version != FORMAT:
        raise _DamageError(f"its format is {version}, which does not exist")
    if digest != canonical_json.digest_document({**document, "format": version}):
        raise _DamageError("the digest in its footer is wrong")
    return Provenance(**document)


def _stats_type(kind: Any) -> Any:
    return pa.struct(
        [
            pa.field("least", kind),
            pa.field("greatest", kind),
            pa.field("nulls", pa.int64()),
            pa.field("values", pa.int64()),
            *(pa.field(flag, pa.bool_(), nullable=False) for flag in _FLAGS),
        ]
    )


def _encode_stats(stats: ColumnStats) -> Any:
    columns = [
        stats.least,
        stats.greatest,
        _encode_counts(stats.nulls),
        _encode_counts(stats.values),
        *(to_arrow(getattr(stats, flag)) for flag in _FLAGS),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(_stats_type(stats.type)))


def _encode_counts(values: Integers) -> Any:
    """Return counts as an Arrow array, null if unknown."""
    return to_nullable(values, values >= 0)


def _read_types(schema: pa.Schema, provenance: Provenance) -> dict[str, Any]:
    """Return the type of each column; raises _DamageError if file and footer differ."""
    kinds = {}
    for part in list(schema)[len(_FILE) :]:
        name = part.name.removeprefix(STATS)
        kind = part.type.field(0).type if pa.types.is_struct(part.type) else None
        if kind is None or indexed_type(kind) != kind or part.type != _stats_type(kind):
            raise _DamageError(f"its column {part.name} does not hold statistics")
        kinds[name] = kind
    has = [(part.name, part.type) for part in list(schema)[: len(_FILE)]]
    if has != [(part.name, part.type) for part in _FILE]:
        raise _DamageError("its columns differ from those of an index")
    if {name: str(kind) for name, kind in kinds.items()} != dict(provenance.columns):
        raise _DamageError("its columns differ from those that its footer names")
    return kinds


def _decode_table(table: Any, columns: Sequence[str], provenance: Provenance) -> FileIndex:
    partition, name, size, rows = (_combine_chunks(table.column(part.name)) for part in _FILE)
    if len(table) != provenance.files or partition.null_count or name.null_count or size.null_count:
        raise _DamageError("its number of rows differs from its footer, or a key is null")
    partition.validate(full=True)
    index = FileIndex(
        partition=sort_partitions(partition),
        name=name,
        size=to_numpy(size),
        rows=_decode_counts(rows),
        columns={
            column: _decode_stats(_combine_chunks(table.column(STATS + column)), column)
            for column in columns
        },
    )
    if not is_in_order(index):
        raise _DamageError("its rows are not sorted")
    return index


def _decode_stats(struct: Any, column: str) -> ColumnStats:
    if struct.null_count:
        raise _DamageError(f"its statistics of {column} are null")
    least, greatest, nulls, values, *flags = struct.flatten()
    if any(flag.null_count for flag in flags):
        raise _DamageError(f"its statistics of {column} have nulls where none are allowed")
    stats = ColumnStats(
        least=least,
        greatest=greatest,
        nulls=_decode_counts(nulls),
        values=_decode_counts(values),
        **{name: to_numpy(flag) for name, flag in zip(_FLAGS, flags, strict=True)},
    )
    is_wrong = (stats.values >= 0) & (stats.nulls > stats.values)
    if is_wrong.any() or pc.any(pc.greater(least, greatest)).as_py():
        raise _DamageError(f"its statistics of {column} contradict each other")
    return stats


def _decode_counts(counts: Any) -> Integers:
    """Return counts with -1 if unknown; raises _DamageError for a negative count."""
    values: Integers = fill_unknown(counts)
    if (values < 0).sum() != counts.null_count:
        raise _DamageError("it has a negative count")
    return values


def _combine_chunks(column: Any) -> Any:
    """Return a column as one chunk."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])
