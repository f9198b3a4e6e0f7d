"""Real Hudi goes on with a table whose rows were written without it."""

from __future__ import annotations

import pytest

from reconciler.hudi.timeline.instant import Action
from tests.manual_write import KEY, ManualWrite
from tests.oracle.hudi import COMPACT_METADATA, FEW_GROUPS, INDEXES, directory_listing, keep_commits
from tests.oracle.prepared_tables import Variant
from tests.selection import long

pytestmark = pytest.mark.oracle
OPTIONS = INDEXES | FEW_GROUPS | {"hoodie.index.type": "RECORD_INDEX"}
#: what to ask for, and the same of a row: id, p, ts, x, n
FILTERS = {
    "n < -1": lambda row: row[4] < -1,
    "n > 90": lambda row: row[4] > 90,
    "n > 2 and p = 'a'": lambda row: row[4] > 2 and row[1] == "a",
    "id = 'a5' or x > 'v5'": lambda row: row[0] == "a5" or row[3] > "v5",
}


def write_every_index(hudi, path, _variant):
    """Write a1 to a4 in three files of one partition, whose bounds are a1's, and b1 in another.

    The metadata table has every index, and was compacted.
    """
    table = hudi.table(path, options=OPTIONS)
    hudi.write(table, [row("a1", "a", 1, 95), ("b1", "b", 1)], "insert")
    hudi.write(table, [("a2", "a", 2), ("a3", "a", 3)], "insert", COMPACT_METADATA)
    hudi.write(table, [("a4", "a", 4)], "insert", COMPACT_METADATA)
    return table


@pytest.fixture
def made(library):
    """``made(version, path)``: a copy of a table, and its Hudi."""

    def copy(version, path):
        return library.table(Variant(version=version), path, write_every_index)

    return copy


def assert_right(hudi, table, rows):
    """Hudi finds the rows, whatever it skips, and the files that are there."""
    assert directory_listing(table.path) == hudi.listing(table)
    assert sorted(rows) == hudi.rows(table)
    assert sorted(rows) == hudi.rows(table, metadata=True)
    for where, is_wanted in FILTERS.items():
        assert sorted(filter(is_wanted, rows)) == hudi.rows(table, where=where, metadata=True), (
            where
        )


def assert_synced(write):
    """The metadata table is told, nothing of it goes, and the commit is completed."""
    live = write.properties.metadata_partitions
    planned = write.sync()
    write.complete()

    assert () == planned.dropped_partitions
    assert live == tuple(sorted(write.metadata().live_partitions))


def row(key, path, ts, n=None):
    return [key, path, ts, f"v{ts}", float(ts if n is None else n)]


def stored(of, path, key, *rows):
    """Rows as files hold them, after the one of a key."""
    return [
        of.changed_row(path, key)
        | {KEY: one[0], "_hoodie_partition_path": one[1]}
        | dict(zip(("id", "p", "ts", "x", "n"), one, strict=True))
        for one in rows
    ]


@pytest.mark.parametrize("version", ["0.15.0", long("1.0.2"), "1.2.0"])
def test_hudi_reads_skips_and_writes_on_after_a_commit(made, tmp_path, version):
    hudi, table = made(version, tmp_path / "t")
    write = ManualWrite(table.path).begin()
    at = {key: n for n, name in enumerate(write.before["a"]) for key in write.keys_of("a", name)}
    like = "a", write.before["a"][0]
    # a2 is changed beyond the partition's bounds, a5 is new beside it, a4 is gone, c is new
    write.update_group(
        "a", at["a2"], put=stored(write, "a", "a2", row("a2", "a", 5, -9), row("a5", "a", 6))
    )
    write.update_group("a", at["a4"], gone=["a4"])
    write.start_group("c", stored(write, "a", "a1", row("c1", "c", 99)), like)
    assert_synced(write)
    rows = {
        "a1": row("a1", "a", 1, 95),
        "a2": row("a2", "a", 5, -9),
        "a3": row("a3", "a", 3),
        "a5": row("a5", "a", 6),
        "b1": row("b1", "b", 1),
        "c1": row("c1", "c", 99),
    }
    assert_right(hudi, table, rows.values())

    # by the record index: two keys that we placed, one that we deleted, one that nobody knew
    hudi.write(table, [("a5", "a", 7), ("c1", "c", 100), ("a4", "a", 8), ("a6", "a", 9)])
    rows |= {key: row(key, path, ts) for key, path, ts in (
        ("a5", "a", 7), ("c1", "c", 100), ("a4", "a", 8), ("a6", "a", 9),
    )}  # fmt: skip
    assert_right(hudi, table, rows.values())

    hudi.write(table, [("a5", "a", 10)], "delete", COMPACT_METADATA)
    hudi.write(table, [("b1", "b", 95), ("c1", "c", 101)], options=COMPACT_METADATA)
    del rows["a5"]
    rows |= {"b1": row("b1", "b", 95), "c1": row("c1", "c", 101)}
    assert_right(hudi, table, rows.values())

    hudi.clean(table, keep_commits(1))
    assert_right(hudi, table, rows.values())


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", long("1.2.0")])
def test_hudi_reads_skips_and_writes_on_after_replacecommits(made, tmp_path, version):
    hudi, table = made(version, tmp_path / "t")
    write = ManualWrite(table.path).begin(Action.REPLACECOMMIT, "INSERT_OVERWRITE")
    like = "a", write.before["a"][0]
    write.start_group(
        "a", stored(write, "a", "a1", row("a1", "a", 91), row("a7", "a", 3, -7)), like
    )
    write.replace_partition("a")
    assert_synced(write)
    rows = {
        "a1": row("a1", "a", 91),
        "a7": row("a7", "a", 3, -7),
        "b1": row("b1", "b", 1),
    }
    assert_right(hudi, table, rows.values())

    write = ManualWrite(table.path).begin(Action.REPLACECOMMIT, "DELETE_PARTITION")
    write.replace_partition("b")
    assert_synced(write)
    del rows["b1"]
    assert_right(hudi, table, rows.values())

    # keys of replaced files are new, wherever they were; a1 and a7 are where we put them
    hudi.write(table, [("a2", "a", 92), ("b1", "b", 8), ("a7", "a", 9)])
    rows |= {key: row(key, path, ts) for key, path, ts in (
        ("a2", "a", 92), ("b1", "b", 8), ("a7", "a", 9),
    )}  # fmt: skip
    assert_right(hudi, table, rows.values())

    hudi.write(table, [("a1", "a", 93)], options=COMPACT_METADATA)
    hudi.clean(table, keep_commits(1))
    rows["a1"] = row("a1", "a", 93)
    assert_right(hudi, table, rows.values())
