"""What of a pending clean may still be done."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconciler.executor import session
from reconciler.executor.clean import payloads
from reconciler.hudi.timeline.instant import Action
from reconciler.planners.recovery import resume_clean
from reconciler.planners.recovery.resume_clean import revalidate_clean
from reconciler.state.model import (
    PendingClean,
    PendingClusteringSlice,
    PendingCompactionGroup,
    Savepoint,
)
from tests.unit.planners.cow import base, commit, stamp, table, upserts


def pending(*files, **more):
    return PendingClean(
        instant=stamp(9), state="INFLIGHT", started_ms=0, files={"a": files}, **more
    )


def allowed(found):
    return found.files.name.to_pylist()


def withheld(found):
    return dict(
        zip(found.withheld.name.to_pylist(), found.withheld.because.to_pylist(), strict=True)
    )


def test_what_nothing_needs_may_go():
    found = revalidate_clean(upserts(4), pending(base("g", 0), base("g", 1)))

    assert [base("g", 0), base("g", 1)] == allowed(found)
    assert {} == withheld(found)
    assert [True, True, False, False] == found.rows.tolist()


def test_what_is_gone_is_nowhere():
    found = revalidate_clean(upserts(4), pending(base("g", 0), base("gone", 0)))

    assert [base("g", 0)] == allowed(found)
    assert {} == withheld(found)


def test_a_file_of_another_partition_is_not_meant():
    state = table(
        {"a": [base("g", 0), base("g", 1)], "b": [base("g", 0), base("g", 1)]},
        [
            commit(0),
            commit(1),
        ],
    )
    found = revalidate_clean(state, pending(base("g", 0)))

    assert ["a"] == found.files.partition.to_pylist()


def test_a_savepoint_made_since_protects():
    saved = Savepoint(instant=stamp(1), completed=True, files=frozenset({base("g", 1)}))
    found = revalidate_clean(upserts(4, savepoints=(saved,)), pending(base("g", 0), base("g", 1)))

    assert [base("g", 0)] == allowed(found)
    assert {base("g", 1): f"savepoint {stamp(1)} pins its file slice"} == withheld(found)


def test_a_half_made_savepoint_protects_too():
    saved = Savepoint(instant=stamp(1), completed=False, files=frozenset())
    found = revalidate_clean(upserts(4, savepoints=(saved,)), pending(base("g", 0), base("g", 1)))

    assert [base("g", 0)] == allowed(found)


def test_the_newest_slice_stays_though_the_plan_names_it():
    found = revalidate_clean(upserts(2), pending(base("g", 0), base("g", 1)))

    assert [base("g", 0)] == allowed(found)
    assert {base("g", 1): "it belongs to the newest slice of its file group"} == withheld(found)


def test_a_replaced_group_may_go_whole():
    found = revalidate_clean(
        upserts(2, replaced={("a", "g"): stamp(1)}), pending(base("g", 0), base("g", 1))
    )

    assert [base("g", 0), base("g", 1)] == allowed(found)
    assert {"replaced"} == {("retention", "replaced")[code] for code in found.files.rule}


def test_inputs_of_pending_plans_stay():
    compaction = PendingCompactionGroup(
        instant=stamp(8),
        action=Action.COMPACTION,
        partition="a",
        file_id="g",
        base_instant=stamp(2),
    )
    clustering = PendingClusteringSlice(
        instant=stamp(7), partition="a", file_id="g", base_file=base("g", 1), log_files=()
    )
    state = upserts(4, compactions=(compaction,), clusterings=(clustering,))
    found = revalidate_clean(state, pending(*(base("g", hour) for hour in range(3))))

    assert [base("g", 0)] == allowed(found)
    assert {
        base("g", 1): f"pending clustering {stamp(7)} reads its file slice",
        base("g", 2): f"pending compaction {stamp(8)} reads its file slice",
    } == withheld(found)


def test_a_file_of_no_completed_write_stays():
    state = table(
        {"a": [base("g", hour) for hour in (0, 1, 2, 3)]},
        [
            commit(0),
            commit(1),
            commit(3),
        ],
    )
    found = revalidate_clean(state, pending(base("g", 0), base("g", 2)))

    assert [base("g", 0)] == allowed(found)
    assert {base("g", 2): "it belongs to no completed write"} == withheld(found)


def test_rows_taken_by_an_earlier_clean_are_not_taken_twice():
    taken = np.array([True, False, False, False])
    found = revalidate_clean(upserts(4), pending(base("g", 0), base("g", 1)), already_removed=taken)

    assert [base("g", 1)] == allowed(found)


def test_a_folder_goes_only_when_all_its_files_do():
    dead = {("a", "g"): stamp(1)}
    state = upserts(2, replaced=dead)
    clean = pending(base("g", 0), base("g", 1), delete_partitions=("a", "elsewhere", ""))

    assert ("a",) == revalidate_clean(state, clean).delete_partitions
    assert (
        ()
        == revalidate_clean(state, replace(clean, files={"a": (base("g", 0),)})).delete_partitions
    )


def test_our_own_folders_are_in_the_extra_metadata():
    state = upserts(2, replaced={("a", "g"): stamp(1)})
    clean = pending(base("g", 0), base("g", 1), extra={"reconciler.delete.partitions": '["a"]'})

    assert ("a",) == revalidate_clean(state, clean).delete_partitions
    broken = replace(clean, extra={"reconciler.delete.partitions": "["})
    assert () == revalidate_clean(state, broken).delete_partitions


def test_the_extra_metadata_is_spelled_as_apply_spells_it():

    assert (session.PLAN_DIGEST, payloads.DELETE_PARTITIONS) == (
        resume_clean.PLAN_DIGEST,
        resume_clean.DELETE_PARTITIONS,
    )
