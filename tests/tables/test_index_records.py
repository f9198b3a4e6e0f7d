"""What the metadata table's indexes say of base files, made anew byte for byte."""

from __future__ import annotations

from datetime import datetime
from functools import reduce
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.file_slices.base_file.column_ranges import RangeCollector
from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.log_blocks import BlockType, get_block_schema, read_blocks
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.metadata.index_keys import find_record_groups
from reconciler.hudi.metadata.record_encoder import BoundWrapper, ColumnRange, RecordEncoder
from tests.trees import unpack

INDEXED = Path(__file__).parent / "indexed"
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
#: what versions keep of 15 columns and three meta columns: 1.0 no decimals beyond 30 digits
COLUMNS = {"0.15.0": 18, "1.0.2": 17, "1.2.0": 18}

COLUMN_NAMES = [
    "_hoodie_commit_time",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    *("id", "b", "i", "l", "f", "d", "s", "bin", "d7", "d18", "d38", "dt", "ts", "nul", "p"),
]


class Indexed:
    """A table by real Hudi with all indexes: base files, and cells of log blocks by key."""

    def __init__(self, version, folder):
        self.folder = unpack(INDEXED / f"{version}.zip", folder)
        self.schema = ""
        self.files = sorted(
            (path.parent.name, path.name, pq.ParquetFile(path))
            for path in folder.rglob("*.parquet")
            if ".hoodie" not in path.parts
        )

    def cells(self, index):
        """Key -> value of the newest block that has it, and file group -> its keys."""
        found, groups = {}, {}
        for path in sorted((self.folder / ".hoodie/metadata" / index).glob(".*.log.*")):
            for block in read_blocks(path.read_bytes(), path.name):
                if block.type is BlockType.HFILE_DATA:
                    self.schema = get_block_schema(block)
                    cells = dict(hfile_reader.parse_hfile(block.content, path.name).scan_all())
                    found.update(cells)
                    groups.setdefault(path.name.split("_")[0], set()).update(cells)
        return found, groups

    def records(self):
        return RecordEncoder(schema=self.schema, path="metadata")


@pytest.fixture(scope="module", params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def table(version, tmp_path_factory):
    return Indexed(version, tmp_path_factory.mktemp("indexed"))


def ranges(file, columns):
    found = RangeCollector(columns, "f")
    for batch in file.read().to_batches():
        found.add(batch)
    return found.build_ranges(file.metadata)


def as_hudi_says(found):
    """Hudi says that a column of nulls ranges from 0 to 0."""
    if found.least is not None:
        return found
    values = {name: getattr(found, name) for name in ("column", "values", "nulls", "size")}
    return ColumnRange(**values, plain_size=found.plain_size, least=0, greatest=0)


def test_column_stats_are_the_bytes_that_hudi_wrote(table, version):
    cells, _ = table.cells("column_stats")
    wrappings = BoundWrapper.learn(cells.values(), table.schema, "metadata", COLUMN_NAMES)
    made = {}
    for partition, name, file in table.files:
        found = [as_hudi_says(one) for one in ranges(file, list(wrappings))]
        made |= table.records().encode_column_stats(partition, name, found, wrappings)

    assert COLUMNS[version] == len(wrappings)
    assert 3 * COLUMNS[version] == len(made)
    assert cells == made


def test_partition_stats_are_the_bytes_that_hudi_wrote(table, version):
    cells, _ = table.cells("partition_stats")
    if version == "0.15.0":
        assert {} == cells
        return
    wrappings = BoundWrapper.learn(cells.values(), table.schema, "metadata", COLUMN_NAMES)
    made = {}
    for partition in {partition for partition, _, _ in table.files}:
        of_files = [
            [as_hudi_says(one) for one in ranges(file, list(wrappings))]
            for other, _, file in table.files
            if other == partition
        ]
        merged = [reduce(ColumnRange.merge, each) for each in zip(*of_files, strict=True)]
        made |= table.records().encode_partition_stats(partition, merged, wrappings)

    assert 2 * COLUMNS[version] == len(made)
    assert cells == made


def test_bloom_filters_are_the_bytes_that_hudi_wrote(table):
    cells, groups = table.cells("bloom_filters")
    made = {}
    for partition, name, file in table.files:
        said = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
        code, text = said["hoodie_bloom_filter_type_code"], said["org.apache.hudi.bloomfilter"]
        instant = BaseName.parse(name).instant
        made |= [table.records().encode_bloom_filter(partition, name, instant, code, text)]

    assert cells == made
    assert 3 == sum(map(len, groups.values()))


def test_record_locations_are_the_bytes_that_hudi_wrote(table):
    cells, groups = table.cells("record_index")
    made, in_groups = {}, {}
    for partition, name, file in table.files:
        written = datetime.strptime(f"{BaseName.parse(name).instant}000+0000", "%Y%m%d%H%M%S%f%z")
        instant_ms = round(written.timestamp() * 1000)
        value = table.records().encode_record_location(partition, name, instant_ms)
        (keys,) = file.read(["_hoodie_record_key"])
        keys = keys.combine_chunks()
        made |= {key.encode(): value for key in keys.to_pylist()}
        for key, group in zip(keys.to_pylist(), find_record_groups(keys, 2).tolist(), strict=True):
            in_groups.setdefault(f".record-index-{group:04}-0", set()).add(key.encode())

    assert cells == made
    assert {name: keys for name, keys in groups.items() if keys} == in_groups
