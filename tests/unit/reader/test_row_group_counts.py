"""Row groups that may match, by the footers of files that are read."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.row_group_counts import count_row_groups
from reconciler.reader.skipping import parse_condition
from reconciler.storage.open import open_storage
from tests.plain_tables import write_table

LEVELS = b"<)\x06\x19&\x00"


def damage_levels(file):
    """Change a column's levels from its schema; pyarrow crashes when it reads the column."""
    data = file.read_bytes()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[end:-8].replace(LEVELS, b"<)\x06\x19\x16", 1)
    assert len(footer) < len(data[end:-8])
    file.write_bytes(data[:end] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def test_a_file_that_pyarrow_would_die_of_is_not_looked_at(tmp_path):
    parts = [pa.table({"id": pa.array([n, n + 1])}) for n in (1, 5, 9)]
    write_table(tmp_path, {"": parts})
    storage = open_storage(str(tmp_path))
    scan = open_scan(storage, ReadRequest())
    asked = replace(scan, condition=parse_condition("id = 5", "UTC"))
    before = count_row_groups(storage, asked)
    damage_levels(min(tmp_path.glob("*.parquet")))
    damaged = open_scan(storage, ReadRequest())
    after = count_row_groups(storage, replace(damaged, condition=asked.condition))

    assert (3, 3, 3, 1) == (before.files, before.looked_at, before.groups, before.kept_groups)
    assert (3, 2, 2) == (after.files, after.looked_at, after.groups)
