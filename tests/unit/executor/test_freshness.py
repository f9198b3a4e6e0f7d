"""Reviewed ∩ fresh, and what a clean may claim afterwards."""

from __future__ import annotations

import pytest

from reconciler.arrays import to_arrow
from reconciler.executor.freshness import (
    choose_published_earliest,
    find_earliest_base,
    find_pending_replacements,
    find_replacing_instants,
    make_keys,
    select_fresh,
)
from reconciler.hudi.files.view import FileView, build_view
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Instant
from reconciler.plans.model import TablePlan
from tests.unit.executor.rows import (
    make_base_name,
    make_clean_step,
    make_kept_files,
    make_log_name,
    make_present_files,
    make_removed_files,
)

A1, A2, B1 = (
    f"p/{make_base_name('a', 1)}",
    f"p/{make_base_name('a', 2)}",
    f"q/{make_base_name('b', 1)}",
)


def test_what_both_plans_name_runs():
    found = select_fresh(
        make_clean_step(A1, A2),
        make_clean_step(A2, B1),
        None,
        make_present_files(A1, A2, B1),
        ("p", "q"),
        "5",
    )

    assert make_keys(found.files).to_pylist() == [A2]


def test_a_reviewed_file_that_the_fresh_plan_keeps_is_left_out_with_its_reason():
    fresh_keeps = make_kept_files("savepoint", A1, because="savepoint 3 pins it")
    found = select_fresh(
        make_clean_step(A1, A2),
        make_clean_step(A2),
        fresh_keeps,
        make_present_files(A1, A2),
        ("p", "q"),
        "5",
    )

    assert found.left_out.name.to_pylist() == [make_base_name("a", 1)]
    assert found.left_out.count_reasons() == (("savepoint 3 pins it", 1),)


def test_a_reviewed_file_without_a_reason_of_its_own_says_that_the_table_moved():
    found = select_fresh(make_clean_step(A1), None, None, make_present_files(A1), ("p", "q"), "5")

    assert [why for why, _ in found.left_out.count_reasons()] == [
        "a plan made now keeps it: the table has moved since the review"
    ]
    assert found.is_empty


def test_a_fresh_plan_that_keeps_nothing_gives_no_reasons():
    found = select_fresh(
        make_clean_step(A1),
        None,
        make_kept_files("readers"),
        make_present_files(A1),
        ("p", "q"),
        "5",
    )

    assert [len(found.left_out), found.left_out.count_reasons()[0][1]] == [1, 1]


def test_a_file_that_is_gone_is_counted_and_not_left_out():
    found = select_fresh(
        make_clean_step(A1, A2), make_clean_step(A2), None, make_present_files(A2), ("p", "q"), "5"
    )

    assert (found.gone, len(found.left_out)) == (1, 0)


def test_names_of_two_partitions_are_told_apart():
    here, there = f"p/{make_base_name('a', 1)}", f"q/{make_base_name('a', 1)}"
    found = select_fresh(
        make_clean_step(here, there),
        make_clean_step(there),
        None,
        make_present_files(here, there),
        ("p", "q"),
        "5",
    )

    assert make_keys(found.files).to_pylist() == [there]


def test_a_partition_goes_only_when_both_plans_say_so():
    found = select_fresh(
        make_clean_step(A1, partitions=("p", "q")),
        make_clean_step(A1, partitions=("q", "r")),
        None,
        make_present_files(A1),
        ("p", "q"),
        "5",
    )

    assert found.delete_partitions == ("q",)
    assert [note.rule for note in found.partitions_left] == ["p"]


def test_expired_files_that_stay_are_those_left_out_those_unreviewed_and_those_kept():
    a3, a4 = f"p/{make_base_name('a', 3)}", f"p/{make_base_name('a', 4)}"
    keeps = make_kept_files("readers", a3)
    found = select_fresh(
        make_clean_step(A1),
        make_clean_step(A2),
        keeps,
        make_present_files(A1, A2, a3, a4),
        ("p", "q"),
        "5",
    )

    assert sorted(found.staying.to_pylist()) == [A1, A2, a3]


def test_files_that_a_savepoint_keeps_do_not_hold_the_boundary_back():
    found = select_fresh(
        make_clean_step(A2),
        make_clean_step(A2),
        make_kept_files("savepoint", A1),
        make_present_files(A1, A2),
        ("p", "q"),
        "5",
    )

    assert found.staying.to_pylist() == []


@pytest.mark.parametrize(
    ("planned", "staying", "replaced", "expected"),
    [
        ("5", None, (), "5"),
        ("5", "3", (), "3"),
        ("5", "7", (), "5"),
        ("5", None, ("4", "9"), "4"),
        (None, None, ("4",), "4"),
        (None, "3", ("4",), "3"),
        (None, None, (), None),
    ],
)
def test_the_boundary_claimed_is_the_smallest(planned, staying, replaced, expected):
    assert choose_published_earliest(planned, staying, replaced) == expected


def make_view(*paths: str, version: int = 8, completions: dict[str, str] | None = None) -> FileView:
    commits = [Instant.parse(f"{n}.commit") for n in (1, 4, 9)]
    return build_view(
        make_present_files(*paths),
        Timeline.from_files(TimelineFile(instant, instant.file_name, 1, 0) for instant in commits),
        table_version=version,
        completions=completions or {},
        compactions={},
        replaced={},
    )


def test_the_base_of_a_log_file_named_by_its_base_is_in_its_name():
    it = f"p/{make_log_name('a', 4)}"

    assert (
        find_earliest_base(
            make_view(A1, f"p/{make_base_name('a', 4)}", it, version=6), to_arrow([it])
        )
        == "4"
    )


@pytest.mark.parametrize(("completed", "expected"), [("5", "4"), ("3", "1")])
def test_the_base_of_a_log_file_named_by_its_deltacommit_is_found_by_completion(
    completed, expected
):
    it = f"p/{make_log_name('a', 2)}"
    seen = make_view(A1, f"p/{make_base_name('a', 4)}", it, completions={"2": completed})

    assert find_earliest_base(seen, to_arrow([it])) == expected


def test_the_smallest_base_of_several_files_counts():
    seen = make_view(A1, f"p/{make_base_name('a', 4)}", B1, f"q/{make_base_name('b', 9)}")

    assert (
        find_earliest_base(
            seen, to_arrow([f"p/{make_base_name('a', 4)}", f"q/{make_base_name('b', 9)}"])
        )
        == "4"
    )
    assert find_earliest_base(seen, to_arrow([])) is None


def test_a_replaced_group_with_files_left_holds_its_replacing_instant():
    files = make_present_files(A1, A2, B1)
    replaced = {("p", "a-0"): "8", ("q", "b-0"): "6", ("r", "c-0"): "1"}

    assert find_replacing_instants(files, replaced, make_removed_files(A1)) == ("6", "8")
    assert find_replacing_instants(files, replaced, make_removed_files(A1, A2)) == ("6",)
    assert find_replacing_instants(files, replaced, make_removed_files(A1, A2, B1)) == ()
    assert find_replacing_instants(files, {}, make_removed_files()) == ()


def test_pending_replacements_are_still_replacing_and_completed_ones_are_not():
    names = (
        "1.replacecommit.requested",
        "1.replacecommit",
        "2.replacecommit.requested",
        "3.clustering.requested",
        "4.commit.requested",
    )
    files = (TimelineFile(Instant.parse(name), name, 1, 0) for name in names)

    assert find_pending_replacements(Timeline.from_files(files)) == ("2", "3")


def make_table(path: str = "/t", digest: str = "d") -> TablePlan:
    return TablePlan(name="t", path=path, spec={}, spec_digest=digest)


def test_a_partition_that_is_gone_is_not_left_out():
    found = select_fresh(
        make_clean_step(A1, partitions=("p",)), None, None, make_present_files(B1), ("q",), "5"
    )

    assert (found.delete_partitions, found.partitions_left) == ((), ())
