"""Build rewrite jobs for tables on disk, and read the rows of the files that they write."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.range_file import open_range_file
from reconciler.file_slices.merge.slice_reader import SliceReadOptions
from reconciler.hudi.load import load_properties
from reconciler.layout.sizing.split_rule import SplitRule
from reconciler.reader.model import PATH, ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import get_slice_files
from reconciler.rewrite.model import RewriteGroup, RewriteJob, RowOrdering
from reconciler.state.observe import observe
from reconciler.state.schema import drops_partition_columns, has_meta_columns, read_declared_schema
from reconciler.storage.open import open_storage
from tests.trees import unpack

TABLES = Path(__file__).parent / "tables"
INSTANT = "20300101000000000"
SEED = "00112233445566778899aabbccddeeff"
FILE_NAME = "_hoodie_file_name"


def unpack_table(name, folder):
    """Unpack a table that real Hudi wrote and return its root."""
    unpack(TABLES / f"{name}.zip", folder)
    return min(folder.rglob("hoodie.properties"), key=lambda path: len(path.parts)).parents[1]


def make_rewrite(path, ordering=None, *, outputs=2, target=1 << 30, **more):
    """Return the storage, the rewrite job, and one group per partition with all its slices."""
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())
    properties = load_properties(storage)
    dropped = properties.partition_fields if drops_partition_columns(properties) else ()
    declared = read_declared_schema(storage, properties, observe(storage, None, observed_ms=0))
    schema = FileSchema.from_avro(declared.text, declared.path, dropped=dropped)
    has_keys = has_meta_columns(properties)
    work = RewriteJob(
        instant=INSTANT,
        seed=SEED,
        reading=SliceReadOptions(
            rules=scan.rules, schema=scan.table_schema, committed=scan.committed
        ),
        schema=schema,
        form=replace(_read_form(storage, scan), has_keys=has_keys),
        ordering=ordering or RowOrdering(),
        split=SplitRule(target=target),
        key_fields=() if has_keys else properties.record_keys,
    )
    return storage, replace(work, **more), _make_groups(scan, outputs)


def _read_form(storage, scan):
    for row in range(len(scan.slices)):
        files = get_slice_files(scan, row)
        if files.base:
            footer = pq.ParquetFile(open_range_file(storage, files.base, files.base_size)).metadata
            return BaseFileSettings.from_footer(footer, files.base)
    return BaseFileSettings()


def _make_groups(scan, outputs):
    rows = scan.slices.to_pylist()
    partitions = scan.partitions.column(PATH).to_pylist()
    found = []
    for number, partition in enumerate(partitions):
        of = [row for row, slice_ in enumerate(rows) if slice_["partition"] == number]
        found.append(
            RewriteGroup(
                number=len(found),
                partition=partition,
                slices=tuple(get_slice_files(scan, row) for row in of),
                outputs=outputs,
                bytes=sum(rows[row]["base_size"] + rows[row]["log_size"] for row in of),
                values={k: v.as_py() for k, v in scan.get_partition_values(number).items()},
            )
        )
    return found


def count_rows_before(storage, work, groups):
    """Count the rows of the groups by their text, without their file names."""
    from reconciler.file_slices.merge.slice_reader import read_slice  # noqa: PLC0415

    columns = [n for n in work.schema.columns.names if n in work.reading.schema.names]
    reading = replace(work.reading, columns=tuple(n for n in columns if n != FILE_NAME))
    return Counter(
        repr(row)
        for group in groups
        for one in group.slices
        for batch in read_slice(one, reading, storage)
        for row in batch.to_pylist()
    )


def count_rows_after(storage, work, groups, results):
    """Count the rows of the new files by their text, as a reader of the table sees them."""
    columns = [n for n in work.schema.columns.names if n in work.reading.schema.names]
    reading = replace(work.reading, columns=tuple(n for n in columns if n != FILE_NAME))
    found = Counter()
    for path, size in list_new_files(groups, results):
        from reconciler.file_slices.merge.slice_reader import SliceFiles, read_slice  # noqa: PLC0415

        ref = SliceFiles(base=path, base_size=size)
        for batch in read_slice(ref, reading, storage):
            found.update(map(repr, batch.to_pylist()))
    return found


def list_new_files(groups, results):
    """Return path and size of every new file in order."""
    partition = {group.number: group.partition for group in groups}
    return [
        (f"{partition[made.number]}/{file.name}".removeprefix("/"), file.size)
        for made in sorted(results, key=lambda made: made.number)
        for file in made.files
    ]


def read_file(storage, path):
    """Read a base file without merging."""
    data = storage.read(path)
    return pq.read_table(pa.BufferReader(data))
