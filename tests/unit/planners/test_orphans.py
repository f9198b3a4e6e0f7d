"""Which files that no write knows are removed, and why others stay."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.compose import plan_table
from reconciler.planners.orphans import find_orphans
from reconciler.plans.model import OrphansStep
from reconciler.spec.model import Concurrency, Lock, Orphans, TableSpec
from reconciler.state.model import Savepoint
from reconciler.state.orphan_facts import GONE, UNTOLD, OrphanFacts, find_unknown_rows
from tests.unit.planners.cow import base, commit, stamp, table

DAY = 24 * 3600
NOW = datetime(2024, 1, 11, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
OLD_MS = NOW_MS - 4 * DAY * 1000
#: its commit is at 2 and 4 o'clock; a write of 3 o'clock is unknown
KNOWN = [base("g", 2), base("g", 4)]
ORPHAN = base("o", 3)
SPEC = TableSpec(
    name="t",
    path="/t",
    orphans=Orphans(older_than=3 * DAY),
    concurrency=Concurrency(lock=Lock(provider="filesystem")),
)


def made(names, instants=(), *, modified_ms=OLD_MS, facts=None, **more):
    """A table with files of 2 and 4 o'clock and others, which are as old as given."""
    state = table({"a": [*KNOWN, *names]}, [commit(2), commit(4), *instants])
    state = replace(state, observed_ms=NOW_MS, **more)
    rows = find_unknown_rows(state.files, state.timeline)
    known = {
        "rows": rows,
        "modified_ms": np.full(len(rows), modified_ms, np.int64),
        "is_listed": np.zeros(len(rows), np.bool_),
    }
    return replace(state, orphan_facts=OrphanFacts(**{**known, **(facts or {})}))


def found(state, **options):
    """Name, whether it goes, and the reason of every orphan file."""
    report = find_orphans(state, 3 * DAY, NOW, **options)
    names = state.files.name.take(report.rows).to_pylist()
    return list(zip(names, report.is_removable.tolist(), report.because.to_pylist(), strict=True))


def stays_because(state, **options):
    ((name, is_removable, because),) = found(state, **options)
    assert (ORPHAN, False) == (name, is_removable)
    return because


def test_a_file_of_an_unknown_write_goes():
    because = f"no instant of the timeline knows its write {stamp(3)}; no reader sees it"

    assert [(ORPHAN, True, because)] == found(made([ORPHAN]))


def test_a_file_of_a_write_that_was_rolled_back_goes_and_the_rollback_is_named():
    state = made([ORPHAN], facts={"rolled_back": {stamp(3): stamp(5)}})
    because = f"rollback {stamp(5)} undid its write {stamp(3)} and left it; no reader sees it"

    assert [(ORPHAN, True, because)] == found(state)


@pytest.mark.parametrize("state", State)
def test_a_file_of_a_write_on_the_timeline_is_no_orphan(state):
    assert [] == found(made([ORPHAN], [commit(3, state)]))


@pytest.mark.parametrize("age", [3 * DAY, 3 * DAY - 1])
def test_a_file_counts_from_its_age_on(age):
    state = made([ORPHAN], modified_ms=NOW_MS - age * 1000)

    assert (age == 3 * DAY) == bool(found(state))


def test_a_later_now_than_the_listing_makes_no_file_older():
    state = replace(made([ORPHAN]), observed_ms=OLD_MS + DAY * 1000)

    assert [] == found(state)


def test_a_file_that_is_gone_is_no_orphan():
    assert [] == found(made([ORPHAN], modified_ms=GONE))


def test_a_file_without_a_time_stays():
    because = stays_because(made([ORPHAN], modified_ms=UNTOLD))

    assert because == "the store does not tell when it was written"


def test_a_file_from_before_the_timeline_stays_because_readers_read_it():
    ((_, is_removable, because),) = found(made([base("o", 1)]))

    assert not is_removable
    assert "take files from before the active timeline for committed and read it now" in because


def test_a_superseded_file_from_before_the_timeline_stays_too():
    ((_, is_removable, because),) = found(made([base("g", 1)]))

    assert not is_removable
    assert "for committed and may still read it" in because


def test_a_savepoint_moves_the_start_of_the_timeline_that_readers_see():
    """Archival beyond a savepoint leaves its commit, and readers look at the next one."""
    pin = Instant(stamp(2), Action.SAVEPOINT, State.COMPLETED, stamp(2))

    assert "from before the active timeline for committed" in stays_because(made([ORPHAN], [pin]))


def test_without_a_completed_write_nothing_goes():
    state = table({"a": [ORPHAN]}, [commit(4, State.INFLIGHT)])
    rows = find_unknown_rows(state.files, state.timeline)
    facts = OrphanFacts(rows=rows, modified_ms=np.array([OLD_MS]), is_listed=np.zeros(1, np.bool_))
    state = replace(state, observed_ms=NOW_MS, orphan_facts=facts)

    assert "the active timeline has no completed write but savepoints" in stays_because(state)


def test_a_file_that_the_metadata_table_lists_is_a_difference_and_stays():
    state = made([ORPHAN], facts={"is_listed": np.ones(1, np.bool_)})

    assert "the metadata table lists it" in stays_because(state)


def test_a_damaged_archive_keeps_everything():
    state = made([ORPHAN], facts={"archive_problem": "the archive is cut off"})

    assert "the archive is cut off" == stays_because(state)


def test_a_file_that_a_savepoint_names_stays():
    pin = Savepoint(instant=stamp(4), completed=True, files=frozenset({ORPHAN}))

    assert "a savepoint names it" == stays_because(made([ORPHAN], savepoints=(pin,)))


def test_a_log_file_of_version_6_stays_and_one_of_version_9_goes():
    log = f".g_{stamp(3)}.log.1_0-0-0"

    ((_, goes_9, _),) = found(made([log]))
    ((_, goes_6, because),) = found(made([log], table_version=6))
    ((_, goes_cdc, _),) = found(made([f"{log}.cdc"], table_version=6))

    assert (True, False, True) == (goes_9, goes_6, goes_cdc)
    assert "a log file of table version 6 may hold blocks of several writes" == because


def pending_since(ms, action=Action.COMMIT, hour=5):
    """A timeline as of ``made`` with a write that is pending since then."""
    instant = Instant(stamp(hour), action, State.REQUESTED)
    done = [TimelineFile(one, one.file_name, 1, 0) for one in (commit(2), commit(4))]
    return Timeline.from_files([*done, TimelineFile(instant, instant.file_name, 1, ms)])


def test_a_write_that_was_pending_when_a_file_was_written_may_own_it():
    because = stays_because(replace(made([ORPHAN]), timeline=pending_since(OLD_MS)))

    assert f"commit {stamp(5)} was pending when it was written: it may own it" == because


def test_a_write_that_began_later_owns_nothing_older():
    state = replace(made([ORPHAN]), timeline=pending_since(OLD_MS + 1))

    assert [True] == [goes for _, goes, _ in found(state)]


def test_a_pending_clean_or_a_write_that_the_plan_finishes_owns_nothing():
    clean = replace(made([ORPHAN]), timeline=pending_since(OLD_MS, Action.CLEAN))
    dead = replace(made([ORPHAN]), timeline=pending_since(OLD_MS))

    assert [True] == [goes for _, goes, _ in found(clean)]
    assert [True] == [goes for _, goes, _ in found(dead, finished={stamp(5)})]


def test_a_pending_rollback_of_its_write_removes_it():
    state = made([ORPHAN], facts={"being_rolled_back": frozenset({stamp(3)})})

    assert "a rollback of its write is pending and removes it" == stays_because(state)


def test_a_pending_rollback_that_cannot_be_read_keeps_everything():
    state = made([ORPHAN], facts={"rollback_problem": "x.rollback.requested: is damaged"})

    assert "x.rollback.requested: is damaged" in stays_because(state)


@pytest.mark.parametrize(("age", "goes"), [(3 * DAY - 1, False), (3 * DAY, True)])
def test_a_heartbeat_within_the_age_keeps_the_files_of_its_write(age, goes):
    state = made([ORPHAN], facts={"beats_ms": {stamp(3): NOW_MS - age * 1000}})

    assert [goes] == [removable for _, removable, _ in found(state)]


def test_files_that_another_step_removes_are_left_to_it():
    state = made([ORPHAN])

    assert [] == found(state, is_removed=np.ones(len(state.files), np.bool_))


# the plan


def test_a_plan_has_a_step_a_difference_and_the_sums():
    plan = plan_table(SPEC, made([ORPHAN]), NOW)
    (step,) = plan.steps
    (drift,) = plan.drift

    assert isinstance(step, OrphansStep)
    assert [ORPHAN] == step.files.name.to_pylist()
    assert (1, 10) == (plan.impact.files_removed, plan.impact.bytes_removed)
    assert ("orphans.olderThan", "3d", "4d") == (drift.field, drift.desired, drift.actual)


def test_a_spec_without_the_block_has_no_step_and_no_warning():
    plan = plan_table(replace(SPEC, orphans=None), made([ORPHAN, base("o", 1)]), NOW)

    assert ((), ()) == (plan.steps, plan.warnings)


def test_what_stays_is_a_warning_for_every_reason():
    state = made([ORPHAN, base("o", 1), base("q", 1)])
    plan = plan_table(SPEC, state, NOW)
    (warning,) = plan.warnings

    assert 1 == len(plan.steps)
    assert "orphans" == warning.rule
    assert f"2 files (20 B) stay, such as a/{base('o', 1)}: no instant" in warning.because


def test_files_older_than_the_archive_are_counted_and_not_judged():
    state = made([], facts={"undecided": np.array([0]), "archive_oldest": stamp(3)})
    (warning,) = plan_table(SPEC, state, NOW).warnings
    files = "1 file (10 B) cannot be told from orphans"

    assert f"{files}: the archived timeline begins only at {stamp(3)}" == warning.because
