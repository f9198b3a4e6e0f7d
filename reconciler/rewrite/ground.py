"""The ground that files are written on: a table's schema, the form of its files, its ranges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.basefile.form import FileForm
from reconciler.basefile.schema import FileSchema
from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.load import load_properties
from reconciler.hudi.properties import TableProperties
from reconciler.merge.calendar import PROLEPTIC
from reconciler.merge.ranges import open_range, reading_parquet
from reconciler.reader.load import open_scan
from reconciler.reader.model import ReadRequest, Scan
from reconciler.state.columns import declared_columns, drops_partition_columns, has_meta_columns
from reconciler.state.model import TableState
from reconciler.storage.api import Storage
from reconciler.transaction.metadata_rewrite import indexed_columns

#: of a base file's name: the instant that wrote it
_TIME: Final = r"_(?P<time>\d+)\.[a-z]+$"
#: base files whose form is looked for until one can be read
_FORMS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ground:
    """The table as a rewrite finds it.

    ``avro``: its schema as commits carry it. ``dropped``: columns that only folders say.
    """

    scan: Scan
    avro: str
    schema: FileSchema
    form: FileForm
    dropped: tuple[str, ...]
    ranges: tuple[str, ...]
    key_fields: tuple[str, ...]

    @property
    def refusal(self) -> str:
        """Why log files of this table cannot be merged, empty where they can."""
        return self.scan.rules.refusal


def ground_of(storage: Storage, state: TableState) -> Ground:
    """What there is to know; a few small files are read.

    Raises UnsupportedError where rows of the table cannot be read or written here, FormatError for
    damage and where nobody has written the table's schema down.
    """
    properties = load_properties(storage)
    declared = declared_columns(storage, properties, state)
    if declared is None:
        raise UnsupportedError(
            f"{state.location}: no commit says the table's schema, so its files cannot be "
            "rewritten; write to the table once with Hudi"
        )
    dropped = properties.partition_fields if drops_partition_columns(properties) else ()
    scan = open_scan(storage, ReadRequest())
    has_meta = has_meta_columns(properties)
    return Ground(
        scan=scan,
        avro=declared.text,
        schema=FileSchema.of(declared.text, declared.path, dropped=dropped),
        form=replace(form_of(storage, scan), has_keys=has_meta, calendar=PROLEPTIC),
        dropped=dropped,
        ranges=_ranges(storage, properties, state),
        key_fields=() if has_meta else properties.record_keys,
    )


def form_of(storage: Storage, scan: Scan) -> FileForm:
    """The form of the newest base file that is read; of Hudi's defaults where there are only logs.

    Of files that nobody reads there may be halves: what a write that died has left. A damaged one
    is passed over, for it may be in no group; where the first few are, the newest one is the error.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    slices = scan.slices.filter(pc.is_valid(scan.slices.column("base")))
    if not len(slices):
        return FileForm()
    times = pc.struct_field(pc.extract_regex(slices.column("base"), _TIME), "time")
    newest = pc.sort_indices(pa.table({"time": times}), sort_keys=[("time", "descending")])
    damage: list[FormatError] = []
    for row in newest[:_FORMS].to_pylist():
        path, size = slices.column("base")[row].as_py(), slices.column("base_size")[row].as_py()
        try:
            with reading_parquet(path):
                footer = pq.ParquetFile(open_range(storage, path, size)).metadata
            return FileForm.of_file(footer, path)
        except FormatError as error:
            damage.append(error)
    raise damage[0]


def _ranges(storage: Storage, properties: TableProperties, state: TableState) -> tuple[str, ...]:
    if not properties.metadata_partitions:
        return ()
    return indexed_columns(storage, properties, state.timeline)
