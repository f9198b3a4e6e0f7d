"""Read what a rewrite must know of a table: its schema, the settings of its files, its ranges."""

from __future__ import annotations

from dataclasses import replace
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
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import ReadRequest, Scan
from reconciler.reader.open_scan import open_scan
from reconciler.state.model import TableState
from reconciler.state.schema import drops_partition_columns, has_meta_columns, read_declared_schema
from reconciler.storage.api import Storage
from reconciler.transaction.metadata.rewrite_sync import find_indexed_columns

#: the instant in a base file's name
_INSTANT_IN_NAME: Final = r"_(?P<time>\d+)\.[a-z]+$"
#: how many base files are tried until a footer can be read
_MAX_FOOTERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableFacts:
    """A table as a rewrite finds it.

    ``avro``: its schema as commits carry it. ``dropped_columns``: columns that only folder names
    hold.
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
        """Why log files of this table cannot be merged; empty if they can."""
        return self.scan.rules.refusal


def read_table_facts(storage: Storage, state: TableState) -> TableFacts:
    """Read the facts of a table; only a few small files are read.

    Raises UnsupportedError if rows of the table cannot be read or written here, FormatError for
    damage and if no file declares the table's schema.
    """
    properties = load_properties(storage)
    declared = read_declared_schema(storage, properties, state)
    if declared is None:
        raise UnsupportedError(
            f"{state.location}: no commit declares the table's schema, so its files cannot be "
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
    """Return the settings of the newest base file that readers see; Hudi's defaults if none is.

    Other files may be unfinished, left by a dead write. A damaged file is skipped, because it may
    be in no group; if all that are tried are damaged, the newest one's error is raised.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    slices = scan.slices.filter(pc.is_valid(scan.slices.column("base")))
    if not len(slices):
        return BaseFileSettings()
    times = pc.struct_field(pc.extract_regex(slices.column("base"), _INSTANT_IN_NAME), "time")
    newest = pc.sort_indices(pa.table({"time": times}), sort_keys=[("time", "descending")])
    damaged: list[FormatError] = []
    for row in newest[:_MAX_FOOTERS].to_pylist():
        path, size = slices.column("base")[row].as_py(), slices.column("base_size")[row].as_py()
        try:
            with reading_parquet(path):
                footer = pq.ParquetFile(open_range_file(storage, path, size)).metadata
            return BaseFileSettings.from_footer(footer, path)
        except FormatError as error:
            damaged.append(error)
    raise damaged[0]


def _list_ranges(
    storage: Storage, properties: TableProperties, state: TableState
) -> tuple[str, ...]:
    if not properties.metadata_partitions:
        return ()
    return find_indexed_columns(storage, properties, state.timeline)
