"""Read only the wanted row groups and columns of a base file, one group at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from tests.memory_slices import MemoryFiles, parquet_bytes

GROUPS, ROWS = 12, 20_000
BASE = "f1-0_0-1-1_1.parquet"
RANDOM = np.random.default_rng(7)
TABLE = pa.table({"id": np.arange(GROUPS * ROWS), "x": RANDOM.random(GROUPS * ROWS)})
FILE = parquet_bytes(TABLE, row_group_size=ROWS, use_dictionary=False, compression="none")
#: bytes of a column in a row group, and at most of a footer
CHUNK, FOOTER = 8 * ROWS, 65_536


class Counting(MemoryFiles):
    bytes_read = 0

    def read_range(self, path, start, length):
        self.bytes_read += length
        return super().read_range(path, start, length)


def read(*kept, columns=None):
    """Return the ids or else the values, the bytes read, and the peak of Arrow memory."""
    source = Counting({BASE: FILE})
    reading = SliceReadOptions(
        rules=MergeRules(key_columns=("id",)), schema=TABLE.schema, columns=columns
    )
    mask = np.isin(np.arange(GROUPS), kept)
    before, most, found = pa.total_allocated_bytes(), 0, []
    files = SliceFiles(base=BASE, base_size=len(FILE))
    for batch in read_slice(files, reading, source, select_row_groups=lambda _: mask):
        most = max(most, pa.total_allocated_bytes() - before)
        found += batch.column(0).to_pylist()
    return found, source.bytes_read, most


def test_only_kept_row_groups_are_read():
    ids, size, _ = read(2, 3, 9)

    assert [*range(2 * ROWS, 4 * ROWS), *range(9 * ROWS, 10 * ROWS)] == ids
    assert 6 * CHUNK < size < 6.5 * CHUNK + FOOTER


def test_of_kept_row_groups_only_the_wanted_columns_are_read():
    values, size, _ = read(5, 11, columns=("x",))

    expected = TABLE["x"].to_pylist()
    assert expected[5 * ROWS : 6 * ROWS] + expected[11 * ROWS :] == values
    assert 2 * CHUNK < size < 2.5 * CHUNK + FOOTER


def test_without_kept_row_groups_only_the_footer_is_read():
    ids, size, _ = read()

    assert [] == ids
    assert size <= FOOTER


def test_row_groups_are_held_one_at_a_time():
    one, many = read(0)[2], read(*range(GROUPS))[2]

    assert many < one + 2 * CHUNK
