"""What a clean of ours leaves behind, real Hudi finds; and it takes no row away for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.plans.model import KEEP_RULES
from tests.oracle import our_clean
from tests.oracle.hudi import directory_listing, keep_commits, keep_hours, keep_versions
from tests.oracle.prepared_tables import PLAIN, assert_rows_and_listing, assert_still_correct
from tests.selection import EVERY_CASE, long, take_turns

pytestmark = pytest.mark.oracle
POLICIES = {
    "commits": ({"commits": 1}, keep_commits(1)),
    "hours": ({"hours": 1}, keep_hours(1)),
    "fileVersions": ({"fileVersions": 1}, keep_versions(1)),
}
#: each kind once, and both types with every policy: it only says which files go, and
#: test_clean has real Hudi judge that for every version; ``./ci/test --all`` takes all
PAIRS = [
    (kind, policy)
    for number, kind in enumerate(PLAIN)
    for turn, policy in enumerate(POLICIES)
    if number % len(POLICIES) == turn or EVERY_CASE
]


def just_within_an_hour(table):
    """When the last commit is not yet an hour old, and every other is."""
    last = datetime.strptime(table.last_instant(), "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    return last + timedelta(hours=1, milliseconds=-1)


def test_a_third_of_all_pairs_have_every_kind_and_each_policy_with_both_types():
    types = {(kind.merge_on_read, name) for kind, name in PAIRS}

    assert {(mor, name) for mor in (False, True) for name in POLICIES} == types
    assert {*PLAIN} == {kind for kind, _ in PAIRS}


@pytest.mark.parametrize(("kind", "policy"), PAIRS, ids=str)
def test_hudi_archives_and_cleans_on_after_a_partial_clean(library, tmp_path, kind, policy):
    retention, policy = POLICIES[policy]
    hudi, table = library.table(kind, tmp_path / "t")
    rows, now = hudi.rows(table), just_within_an_hour(table)
    whole = our_clean.make_plan(table, retention, now=now)
    planned = our_clean.list_names(our_clean.get_step(whole))
    result = our_clean.apply_here(our_clean.select_partition(whole, "a"), now=now)
    left = {(p, n) for p, n in planned if p != "a"}

    assert 0 == result.exit_code
    assert {"a", "b", "c"} == {partition for partition, _ in planned}
    assert left <= {(p, n) for p, names in directory_listing(table.path).items() for n in names}
    assert_hudi_removes(
        hudi, table, rows, left, keep_commits(1) if "hours" in retention else policy
    )


def assert_hudi_removes(hudi, table, rows, left, policy):
    """Hudi writes and archives on, finds what we left and removes it, and loses no row of it."""
    assert_rows_and_listing(hudi, table, rows)
    for ts in range(60, 64):  # one more than stay in the timeline
        hudi.write(table, [("a1", "a", ts)])
    hudi.archive(table)
    rows = [["a1", "a", 63, "v63", 63.0] if row[0] == "a1" else row for row in rows]
    assert_still_correct(hudi, table, rows)
    hudi.clean(table, policy)
    hudi.archive(table)
    assert_still_correct(hudi, table, rows)
    there = {(p, n) for p, names in directory_listing(table.path).items() for n in names}
    assert set() == left & there
    hudi.write(table, [("c9", "c", 70), ("b1", "b", 70)])
    new = {"c9": "c", "b1": "b"}
    rows = [[r[0], new[r[0]], 70, "v70", 70.0] if r[0] in new else r for r in rows]
    assert_rows_and_listing(hudi, table, rows)


def kept_for_readers(plan):
    kept = plan.tables[0].kept
    rows = zip(kept.partition.to_pylist(), kept.name.to_pylist(), kept.rule, strict=True)
    return {(path, name) for path, name, rule in rows if KEEP_RULES[rule] == "readers"}


@pytest.mark.parametrize(
    ("kind", "retention"),
    [
        (PLAIN[1], {"commits": 1}),
        (PLAIN[-2], {"fileVersions": 1}),
        long(PLAIN[-1], {"commits": 1}),
    ],
    ids=str,
)
def test_hudi_archives_and_cleans_on_after_a_clean_that_left_files_to_readers(
    library, tmp_path, kind, retention
):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    (replaced,) = {n.partition(".")[0].partition("_")[0] for n in table.instants("replacecommit")}
    now = datetime.strptime(replaced, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC) + timedelta(hours=1)
    plan = our_clean.make_plan(table, retention, now=now, readers="{longestQuery: 1h}")
    left = kept_for_readers(plan)
    result = our_clean.apply_here(plan, now=now)

    assert 0 == result.exit_code
    assert our_clean.list_names(our_clean.get_step(plan))
    assert {"a", "b", "c"} == {partition for partition, _ in left}
    assert left <= {(p, n) for p, names in directory_listing(table.path).items() for n in names}
    policy = keep_commits(1) if "commits" in retention else keep_versions(1)
    assert_hudi_removes(hudi, table, rows, left, policy)


@pytest.mark.parametrize(
    "kind", [k if k.merge_on_read == (k.version == "1.2.0") else long(k) for k in PLAIN], ids=str
)
def test_a_savepoint_made_after_the_review_keeps_its_files(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    plan = our_clean.make_plan(table, {"commits": 1})
    instants = [n for n in table.instants("commit") if not n.endswith(".commit.requested")]
    pinned = sorted({name.split(".")[0].split("_")[0] for name in instants})[1]
    hudi.savepoint(table, pinned)
    then, rows = hudi.rows(table, as_of=pinned), hudi.rows(table)
    result = our_clean.apply_here(plan)

    assert 4 == result.exit_code
    assert 0 < result.tables[0].removed < len(our_clean.list_names(our_clean.get_step(plan)))
    assert then == hudi.rows(table, as_of=pinned)
    assert_rows_and_listing(hudi, table, rows)
    hudi.delete_savepoint(table, pinned)
    hudi.write(table, [("a1", "a", 60)])
    hudi.clean(table, keep_commits(1))
    rows = [["a1", "a", 60, "v60", 60.0] if row[0] == "a1" else row for row in rows]
    assert_rows_and_listing(hudi, table, rows)
    assert () == our_clean.make_plan(table, {"commits": 1}).tables[0].steps


@pytest.mark.parametrize(
    ("move", "kind"),
    take_turns(["commits", "clean", "rollback", "replacement"], [PLAIN[0], PLAIN[3], PLAIN[5]]),
    ids=str,
)
def test_a_table_that_moved_since_the_review_loses_no_row(library, tmp_path, kind, move):
    hudi, table = library.table(kind, tmp_path / "t")
    if move == "rollback":  # of a write younger than the metadata table's last compaction
        hudi.write(table, [("a1", "a", 60)])
    plan = our_clean.make_plan(table, {"commits": 1})
    reviewed = set(our_clean.list_names(our_clean.get_step(plan)))
    match move:
        case "commits":
            hudi.write(table, [("a1", "a", 60)])
            hudi.write(table, [("c9", "c", 60)])
        case "clean":
            hudi.clean(table, keep_commits(2))
        case "rollback":
            hudi.rollback(table, table.last_instant())
        case "replacement":
            hudi.write(table, [("b7", "b", 60)], "insert_overwrite")
    rows, before = hudi.rows(table), directory_listing(table.path)
    result = our_clean.apply_here(plan)
    gone = {(p, n) for p, names in before.items() for n in names} - {
        (p, n) for p, names in directory_listing(table.path).items() for n in names
    }

    assert result.exit_code in (0, 4)
    assert gone <= reviewed
    assert_rows_and_listing(hudi, table, rows)
    hudi.clean(table, keep_commits(1))
    assert_rows_and_listing(hudi, table, rows)
