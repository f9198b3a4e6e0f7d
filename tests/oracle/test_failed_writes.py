"""Writes of real Hudi that died, rolled back by us, in the hands of real Hudi again."""

from __future__ import annotations

import pytest

from tests.oracle import failed_writes
from tests.oracle.hudi import COMPACT_METADATA, data_files, directory_listing, keep_commits
from tests.oracle.prepared_tables import (
    KINDS,
    PLAIN,
    assert_hudi_goes_on,
    assert_reads,
    assert_rows_and_listing,
)
from tests.selection import EVERY_CASE, long

pytestmark = pytest.mark.oracle


#: each version once, both table types, both forms of markers, shared and unshared log files
USUAL = {"0.15.0-mor-served", "1.0.2-mor-nopart-direct", "1.2.0-cow-direct"}


def assert_goes_on(hudi, table, rows, kind):
    """Hudi writes on, and under --all does everything, as after the first test's rollbacks."""
    if EVERY_CASE:
        assert_hudi_goes_on(hudi, table, rows, merge_on_read=kind.merge_on_read)
        return
    hudi.write(table, [("a1", "a", 50)], options=COMPACT_METADATA)
    assert_rows_and_listing(hudi, table, [["a1", "a", 50, "v50", 50.0], *rows[1:]])


def choose(kind, *more):
    """Return the case of a kind; it is long if others prove as much."""
    name = "-".join([str(kind), *more])
    return pytest.param(kind, *more) if name in USUAL else long(kind, *more)


@pytest.mark.parametrize(
    ("kind", "markers"),
    [choose(kind, markers) for kind in KINDS for markers in ("direct", "served")],
    ids=str,
)
def test_after_our_rollback_real_hudi_reads_the_same_rows_and_goes_on(
    library, tmp_path, kind, markers
):
    hudi, table = library.table(kind, tmp_path / "t")
    rows, before = hudi.rows(table), data_files(table.path)
    instant = failed_writes.fail_write(
        hudi, table, options=failed_writes.SERVED_MARKERS if markers == "served" else {}
    )
    written = set(data_files(table.path)) - set(before)
    step = failed_writes.get_step(failed_writes.make_plan(table))
    result = failed_writes.roll_back(table)

    assert len(written) >= 2
    assert (instant, "foreign") == (step.instant, step.writer)
    assert result.tables[0].outcomes[0].removed == len(failed_writes.list_named(step))
    assert not failed_writes.list_written(table, instant)
    assert [] == [name for name in table.instants() if name.startswith(instant)]
    assert_rows_and_listing(hudi, table, rows)
    assert_hudi_goes_on(hudi, table, rows, merge_on_read=kind.merge_on_read)


@pytest.mark.parametrize(
    "kind", [kind if str(kind) == "0.15.0-cow" else long(kind) for kind in PLAIN], ids=str
)
def test_a_write_that_died_after_its_metadata_entries_is_forgotten_there_too(
    library, tmp_path, kind
):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    failed_writes.break_off(hudi, table)
    failed_writes.roll_back(table)

    assert_rows_and_listing(hudi, table, rows)
    assert_goes_on(hudi, table, rows, kind)


@pytest.mark.parametrize(
    "kind",
    [
        kind if str(kind) == "1.0.2-mor" else long(kind)
        for kind in PLAIN
        if kind.version != "0.15.0"
    ],
    ids=str,
)
def test_a_write_is_forgotten_before_which_hudi_has_compacted_its_metadata_table(
    library, tmp_path, kind
):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    instant = failed_writes.break_off(hudi, table, with_markers=True, options=COMPACT_METADATA)
    compacted = max(table.at(table.path / ".hoodie" / "metadata").instants(".commit"))
    failed_writes.roll_back(table)

    assert instant < compacted
    assert_rows_and_listing(hudi, table, rows)
    assert_goes_on(hudi, table, rows, kind)


@pytest.mark.parametrize(
    "kind",
    [kind if str(kind) == "0.15.0-mor" else long(kind) for kind in PLAIN],
    ids=str,
)
def test_real_hudi_finishes_a_rollback_that_we_left(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    instant = failed_writes.fail_write(hudi, table)
    failed_writes.die_in_rollback(table)
    assert table.instants(".rollback.requested")
    hudi.clean(table, {**failed_writes.LAZY, **keep_commits(50)})

    assert [] == [name for name in table.instants() if name.startswith(instant)]
    assert table.instants(".rollback")
    assert () == failed_writes.make_plan(table).tables[0].steps
    # 0.15.0 lists the log files of every write that it rolls back with a size of 1
    listed = {path: {*names} for path, names in hudi.listing(table).items()}
    assert {path: {*names} for path, names in directory_listing(table.path).items()} == listed
    assert_reads(hudi, table, rows)
    hudi.write(table, [("a1", "a", 50)])
    assert_reads(hudi, table, [["a1", "a", 50, "v50", 50.0], *rows[1:]])


@pytest.mark.parametrize("kind", [long(kind) for kind in PLAIN if kind.version != "1.0.2"], ids=str)
def test_we_finish_a_rollback_that_real_hudi_left(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    instant = failed_writes.fail_write(hudi, table)
    failed_writes.leave_rollback(hudi, table, instant)
    step = failed_writes.get_step(failed_writes.make_plan(table))
    failed_writes.roll_back(table)

    assert step.rollback is not None
    assert [] == [name for name in table.instants() if name.startswith(instant)]
    assert_rows_and_listing(hudi, table, rows)
    assert_goes_on(hudi, table, rows, kind)


@pytest.mark.parametrize(
    "kind",
    [kind if str(kind) == "1.2.0-cow" else long(kind) for kind in PLAIN],
    ids=str,
)
def test_a_clustering_that_nobody_finishes_is_rolled_back(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    instant = failed_writes.break_off_clustering(hudi, table)
    step = failed_writes.get_step(failed_writes.make_plan(table))
    failed_writes.roll_back(table)

    assert (instant, True) == (step.instant, len(step.files) > 0)
    assert_rows_and_listing(hudi, table, rows)
    assert_goes_on(hudi, table, rows, kind)
