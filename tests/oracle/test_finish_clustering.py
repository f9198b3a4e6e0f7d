"""Clusterings that real Hudi left, finished by us, in the hands of real Hudi again."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from tests.oracle import failed_writes, finished_clusterings
from tests.oracle.hudi import COMPACT_METADATA, HudiFailedError
from tests.oracle.prepared_tables import (
    KINDS,
    PLAIN,
    assert_hudi_goes_on,
    assert_reads,
    assert_rows_and_listing,
)
from tests.selection import long

pytestmark = pytest.mark.oracle

HOW = ("requested", "dead", "broken")
#: every way to leave a clustering for plain tables, and one in turn for the others
CASES = [
    (kind, how)
    for number, kind in enumerate(KINDS)
    for how in (HOW if kind in PLAIN else [HOW[number % 3]])
]
#: each version once, both table types, each way to leave a clustering
USUAL = {"0.15.0-mor-dead", "1.0.2-mor-requested", "1.2.0-cow-broken"}


def list_new_files(table, instant):
    """Return the base files of an instant that are there."""
    return sorted(table.path / name for name in failed_writes.list_written(table, instant))


@pytest.mark.parametrize(
    ("kind", "how"),
    [case if "-".join(map(str, case)) in USUAL else long(*case) for case in CASES],
    ids=str,
)
def test_after_we_finished_it_real_hudi_reads_the_same_rows(library, tmp_path, kind, how):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    instant = finished_clusterings.leave_clustering(hudi, table, how, finished_clusterings.SORTED)
    earlier = list_new_files(table, instant)
    step = finished_clusterings.get_step(finished_clusterings.make_plan(table))
    result = finished_clusterings.finish(table)
    new = list_new_files(table, instant)

    (done,) = result.tables[0].outcomes
    assert (instant, "foreign", len(earlier), "completed", len(earlier)) == (
        step.instant,
        step.writer,
        len(step.attempt or ()),
        done.how,
        done.removed,
    )
    assert (int(step.groups.outputs.sum()), set()) == (len(new), {*new} & {*earlier})
    for path in new:
        values = pq.read_table(path, columns=["n", "id"]).to_pylist()
        assert sorted(values, key=lambda row: (row["n"], row["id"])) == values
    assert_rows_and_listing(hudi, table, rows)


@pytest.mark.parametrize(("kind", "how"), [long(*case) for case in CASES], ids=str)
def test_after_we_finished_it_real_hudi_goes_on(library, tmp_path, kind, how):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    finished_clusterings.leave_clustering(hudi, table, how)
    finished_clusterings.finish(table)

    assert_hudi_goes_on(hudi, table, rows, merge_on_read=kind.merge_on_read)


@pytest.mark.parametrize("kind", [long(kind) for kind in PLAIN], ids=str)
def test_what_real_hudi_wrote_since_it_was_planned_stays(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    finished_clusterings.leave_clustering(hudi, table, "dead")
    for number in range(3):
        hudi.write(table, [(f"d{number}", "d", 70 + number)], "insert", options=COMPACT_METADATA)
    rows += [[f"d{n}", "d", 70 + n, f"v{70 + n}", 70.0 + n] for n in range(3)]
    finished_clusterings.finish(table)

    assert_rows_and_listing(hudi, table, rows)
    hudi.write(table, [("a1", "a", 80)], options=COMPACT_METADATA)
    rows[0] = ["a1", "a", 80, "v80", 80.0]
    assert_rows_and_listing(hudi, table, rows)


@pytest.mark.parametrize("kind", [long(kind) for kind in PLAIN], ids=str)
def test_real_hudi_cannot_execute_it_once_more(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    instant = finished_clusterings.leave_clustering(hudi, table, "dead")
    finished_clusterings.finish(table)
    with pytest.raises(HudiFailedError):
        hudi.cluster(table, instant)

    assert_rows_and_listing(hudi, table, rows)
    assert_hudi_goes_on(hudi, table, rows, merge_on_read=kind.merge_on_read)


@pytest.mark.parametrize("kind", [long(kind) for kind in PLAIN if not kind.merge_on_read], ids=str)
def test_real_hudi_takes_it_back_by_a_restore(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    pinned = table.last_instant()
    hudi.savepoint(table, pinned)
    finished_clusterings.leave_clustering(hudi, table, "requested")
    finished_clusterings.finish(table)
    hudi.write(table, [("a1", "a", 60)])
    hudi.restore(table, pinned)

    assert_reads(hudi, table, rows)


@pytest.mark.parametrize("kind", [long(kind) for kind in PLAIN if kind.version == "1.2.0"], ids=str)
def test_a_plan_of_real_hudi_does_not_tell_the_layout_of_its_writer(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    instant = finished_clusterings.leave_clustering(
        hudi, table, "requested", finished_clusterings.CURVED
    )
    step = finished_clusterings.get_step(finished_clusterings.make_plan(table))
    finished_clusterings.finish(table)

    assert "with rows sorted by n, id" in step.because
    for path in list_new_files(table, instant):
        values = pq.read_table(path, columns=["n", "id"]).to_pylist()
        assert sorted(values, key=lambda row: (row["n"], row["id"])) == values
    assert_rows_and_listing(hudi, table, rows)
