"""The ground that files are written on: a table's schema, the form of its files, its ranges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import FormatError, UnsupportedError
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.calendar import PROLEPTIC
from reconciler.file_slices.merge.range_file import open_range_file, reading_parquet
from reconciler.hudi.load import load_properties
from reconciler.hudi.table.properties import TableProperties
from reconciler.reader.model import ReadRequest, Scan
from reconciler.reader.open_scan import open_scan
from reconciler.state.model import TableState
from reconciler.state.schema import drops_partition_columns, has_meta_columns, read_declared_schema
from reconciler.storage.api import Storage
from reconciler.transaction.metadata.rewrite_sync import find_indexed_columns

#: of a base file's name: the instant that wrote it
_TIME: Final = r"_(?P<time>\d+)\.[a-z]+$"
#: base files whose form is looked for until one can be read
_FORMS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableFacts:
    """The table as a rewrite finds it.

    ``avro``: its schema as commits carry it. ``dropped_columns``: columns that only folders say.
    """

    scan: Scan
    avro: str
    schema: FileSchema
    form: BaseFileSettings
    dropped_columns: tuple[str, ...]
    indexed_columns: tuple[str, ...]
    key_fields: tuple[str, ...]

    @property
    def merge_refusal(self) -> str:
        """Why log files of this table cannot be merged, empty where they can."""
        return self.scan.rules.refusal


def read_table_facts(storage: Storage, state: TableState) -> TableFacts:
    """What there is to know; a few small files are read.

    Raises UnsupportedError where rows of the table cannot be read or written here, FormatError for
    damage and where nobody has written the table's schema down.
    """
    properties = load_properties(storage)
    declared = read_declared_schema(storage, properties, state)
    if declared is None:
        raise UnsupportedError(
            f"{state.location}: no commit says the table's schema, so its files cannot be "
            "rewritten; write to the table once with Hudi"
        )
    dropped = properties.partition_fields if drops_partition_columns(properties) else ()
    scan = open_scan(storage, ReadRequest())
    has_meta = has_meta_columns(properties)
    return TableFacts(
        scan=scan,
        avro=declared.text,
        schema=FileSchema.from_avro(declared.text, declared.path, dropped=dropped),
        form=replace(read_file_form(storage, scan), has_keys=has_meta, calendar=PROLEPTIC),
        dropped_columns=dropped,
        indexed_columns=_list_ranges(storage, properties, state),
        key_fields=() if has_meta else properties.record_keys,
    )


def read_file_form(storage: Storage, scan: Scan) -> BaseFileSettings:
    """The form of the newest base file that is read; of Hudi's defaults where there are only logs.

    Of files that nobody reads there may be halves: what a write that died has left. A damaged one
    is passed over, for it may be in no group; where the first few are, the newest one is the error.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    slices = scan.slices.filter(pc.is_valid(scan.slices.column("base")))
    if not len(slices):
        return BaseFileSettings()
    times = pc.struct_field(pc.extract_regex(slices.column("base"), _TIME), "time")
    newest = pc.sort_indices(pa.table({"time": times}), sort_keys=[("time", "descending")])
    damage: list[FormatError] = []
    for row in newest[:_FORMS].to_pylist():
        path, size = slices.column("base")[row].as_py(), slices.column("base_size")[row].as_py()
        try:
            with reading_parquet(path):
                footer = pq.ParquetFile(open_range_file(storage, path, size)).metadata
            return BaseFileSettings.from_footer(footer, path)
        except FormatError as error:
            damage.append(error)
    raise damage[0]


def _list_ranges(
    storage: Storage, properties: TableProperties, state: TableState
) -> tuple[str, ...]:
    if not properties.metadata_partitions:
        return ()
    return find_indexed_columns(storage, properties, state.timeline)
