"""Savepoints of ours are Hudi's: it keeps, lists, restores and deletes them, and writes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

import reconciler
from tests.oracle import our_clean
from tests.oracle.hudi import data_files, keep_commits
from tests.oracle.prepared_tables import (
    PLAIN,
    assert_rows_and_listing,
    assert_still_correct,
    copy_table,
)
from tests.our_savepoints import list_savepoint_files, list_writes, make_spec, read_record
from tests.selection import long

pytestmark = pytest.mark.oracle
#: each version once, and both types; ``./ci/test --all`` takes all
KINDS = [kind if kind.merge_on_read == (kind.version == "1.0.2") else long(kind) for kind in PLAIN]


def apply(table, *savepoints, retention=""):
    """Plan and apply the savepoints of a table; a second plan is empty."""
    spec = make_spec(table.path, *savepoints, retention=retention)
    result = our_clean.apply_here(reconciler.plan(spec))

    assert 0 == result.exit_code, result.tables
    assert () == reconciler.plan(spec).tables[0].steps
    return result


def pin_fourth_last(table, retention=""):
    """Make a savepoint, and return its instant."""
    instant, completed = list_writes(table.path)[-4]
    apply(table, f'name: q, at: "{completed}"', retention=retention)
    return instant


def pinned_files(table):
    pinned = read_record(table.path).files
    return {f"{path}/{name}" for path, names in pinned.items() for name in names}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_hudi_keeps_deletes_and_restores_our_savepoint(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    copy_table(table.path, tmp_path / "twin")
    twin, rows = table.at(tmp_path / "twin"), hudi.rows(table)
    then = hudi.rows(table, as_of=list_writes(table.path)[-4][0])
    instant = pin_fourth_last(table, retention="commits: 1")
    hudi.savepoint(twin, instant)
    assert names_by_partition(twin) == names_by_partition(table)
    copy_table(table.path, tmp_path / "deleted")
    hudi.delete_savepoint(table.at(tmp_path / "deleted"), instant)
    assert [] == list_savepoint_files(tmp_path / "deleted")

    assert_still_correct(hudi, table, rows)
    for ts in (60, 61):
        hudi.write(table, [("a1", "a", ts), ("b1", "b", ts)])
    hudi.clean(table, keep_commits(1))
    hudi.archive(table)
    assert pinned_files(table) <= set(data_files(table.path))
    assert any(name.startswith(instant) for name in table.instants("commit"))
    hudi.restore(without_metadata(table) if kind.version == "0.15.0" else table, instant)
    assert then == hudi.rows(table)
    hudi.write(table, [("c9", "c", 70)])
    rows = sorted([*(row for row in then if row[0] != "c9"), ["c9", "c", 70, "v70", 70.0]])
    assert_rows_and_listing(hudi, table, rows)


def without_metadata(table):
    """Return the table for a restore: Hudi 0.15 cannot restore a young metadata table."""
    return replace(table, options={**table.options, "hoodie.metadata.enable": "false"})


def names_by_partition(table):
    return {path: sorted(names) for path, names in read_record(table.path).files.items()}


@pytest.mark.parametrize("kind", [long(kind) for kind in PLAIN], ids=str)
def test_hudi_goes_on_after_we_have_removed_a_savepoint(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    pin_fourth_last(table)
    pinned = pinned_files(table)
    apply(table)

    assert [] == list_savepoint_files(table.path)
    assert_rows_and_listing(hudi, table, rows)
    hudi.clean(table, keep_commits(1))
    assert not pinned <= set(data_files(table.path))
    hudi.write(table, [("a1", "a", 60)])
    hudi.archive(table)
    rows = [["a1", "a", 60, "v60", 60.0] if row[0] == "a1" else row for row in rows]
    assert_rows_and_listing(hudi, table, rows)


@pytest.mark.parametrize(
    "kind",
    [kind if kind.version == "0.15.0" and not kind.merge_on_read else long(kind) for kind in PLAIN],
    ids=str,
)
def test_hudi_goes_on_beside_our_half_made_savepoint(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows, instant = hudi.rows(table), pin_fourth_last(table)
    (completed,) = table.instants(".savepoint")
    (table.timeline / completed).unlink()

    assert_rows_and_listing(hudi, table, rows)
    hudi.write(table, [("a1", "a", 60)])
    hudi.clean(table, keep_commits(1))
    hudi.archive(table)
    rows = [["a1", "a", 60, "v60", 60.0] if row[0] == "a1" else row for row in rows]
    assert_rows_and_listing(hudi, table, rows)
    assert [f"{instant}.savepoint.inflight"] == list_savepoint_files(table.path)
    apply(table)
    assert [] == list_savepoint_files(table.path)
    assert_rows_and_listing(hudi, table, rows)
