from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler import canonical_json
from reconciler.errors import PlanError
from reconciler.planners.compose import plan_table
from reconciler.plans.document import load_plan
from reconciler.plans.model import Note, Selection
from reconciler.render.prometheus import status_prometheus
from reconciler.render.status import status_json, status_text
from reconciler.render.terminal import Terminal
from reconciler.spec.model import Concurrency, Policy, Retention, TableSpec
from reconciler.state.model import Savepoint
from reconciler.state.observe import observe
from reconciler.status.model import LastApply, LockStatus, TableStatus
from reconciler.status.table import SIZE_CLASSES, table_status
from reconciler.storage.open import open_storage
from tests.trees import unpack

TABLES = Path(__file__).parents[2] / "tables"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A version 6 table with a savepoint, two pending writes and a clean by Hudi."""
    root = tmp_path_factory.mktemp("table")
    unpack(TABLES / "v6_cow_part.zip", root, hollow=True)
    path = next(root.rglob(".hoodie")).parent
    spec = TableSpec(
        name="sales.orders",
        path=str(path),
        timezone="UTC",
        retention=Retention(policy=Policy.COMMITS, keep=1),
    )
    state = observe(open_storage(str(path)), spec, observed_ms=int(NOW.timestamp() * 1000))
    return spec, state, plan_table(spec, state, NOW)


def test_a_table_with_files_beyond_its_retention_has_drifted(table):
    found = table_status(*table)

    assert "drifted" == found.sync
    assert found.because[0].startswith("retention.commits: 8 file slices in 8 files exceed it")


def test_pending_instants_have_an_age_and_are_stuck_after_the_declared_time(table):
    found = table_status(*table).pending

    assert [
        ("20261121044641595", "replacecommit", "REQUESTED", True),
        ("20261121044653279", "commit", "INFLIGHT", True),
    ] == [(p.instant, p.action, p.state, p.is_stuck) for p in found]
    assert all(p.age_seconds > 3600 for p in found)


def test_a_savepoint_pins_what_no_newest_slice_has(table):
    spec, state, plan = table
    found = table_status(spec, state, plan).savepoints[0]
    named = {n for n in state.files.name.to_pylist() if n in state.savepoints[0].files}

    assert ("20261121044439672", True) == (found.instant, found.is_completed)
    assert len(named) == found.files
    assert 3 == found.pinned_files
    assert 0 < found.pinned_bytes <= found.bytes


def test_a_savepoint_of_everything_pins_all_but_the_newest_slices(table):
    spec, state, plan = table
    everything = Savepoint(
        instant="1", completed=True, files=frozenset(state.files.name.to_pylist())
    )
    found = table_status(spec, replace(state, savepoints=(everything,)), plan).savepoints[0]

    assert len(state.files) == found.files
    assert len(state.files) - 4 == found.pinned_files


def test_a_savepoint_frees_what_a_clean_would_remove_without_it(table):
    spec, state, plan = table
    (before,) = table_status(spec, state, plan).savepoints
    without = plan_table(spec, state.with_savepoints(()), NOW)
    files = without.impact.files_removed - plan.impact.files_removed
    freed = without.impact.bytes_removed - plan.impact.bytes_removed

    assert 0 < files
    assert (files, freed) == (before.freed_files, before.freed_bytes)
    assert "savepoint" not in str(without.kept.because.to_pylist())


def test_what_a_savepoint_frees_is_unknown_without_a_retention(table):
    spec, state, plan = table
    (found,) = table_status(replace(spec, retention=None), state, plan).savepoints

    assert (None, None) == (found.freed_files, found.freed_bytes)


def test_a_savepoint_has_an_age_and_a_maker(table):
    spec, state, plan = table
    savepoint = replace(
        state.savepoints[0],
        made_by="ann",
        made_ms=state.observed_ms - 5000,
        comment='reconciler savepoint "q" at 2026-09-30',
    )
    (found,) = table_status(spec, state.with_savepoints((savepoint,)), plan).savepoints

    assert ("ann", "q", 5) == (found.made_by, found.name, found.age_seconds)


def test_sizes_count_every_newest_base_file_once(table):
    found = table_status(*table)

    assert (*SIZE_CLASSES, None) == tuple(c.below for c in found.sizes)
    assert 4 == sum(c.files for c in found.sizes) == found.small_files


def test_the_last_clean_shows_what_writers_really_keep(table):
    found = table_status(*table)

    assert found.last_clean == found.last_foreign_clean
    assert "KEEP_LATEST_COMMITS" == found.last_clean.policy
    assert 1 == found.last_clean.commits
    assert not found.last_clean.is_ours


def test_our_own_cleans_are_distinguished_from_those_of_writers(table):
    spec, state, plan = table
    ours = replace(
        state.cleans[-1], instant="20261121090000000", extra={"reconciler.plan.digest": "x"}
    )
    found = table_status(spec, replace(state, cleans=(*state.cleans, ours)), plan)

    assert found.last_clean.is_ours
    assert state.cleans[-1].instant == found.last_foreign_clean.instant


def test_refused_unmanaged_and_unreadable_tables_say_so(table):
    spec, state, plan = table
    refused = replace(plan, refusals=(Note("suspend", "suspend: true"),))
    gone = replace(plan, error="nothing is there", observed=None)

    assert "blocked" == table_status(spec, state, refused).sync
    assert "suspend: true" == table_status(spec, state, refused).because[0]
    step = replace(plan, refusals=(Note("columns", "no x", step="cluster"),))
    found = table_status(spec, state, step)
    assert ("blocked in part", "no x") == (found.sync, found.because[0])
    assert step.refusals == found.refusals
    assert ("False", "BlockedInPart") == (found.conditions[0].status, found.conditions[0].reason)
    assert 'reconciler_synced{table="t",reason="BlockedInPart"} 0\n' in status_prometheus(
        [replace(found, name="t")], observed_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert "unmanaged" == table_status(replace(spec, retention=None), state, plan).sync
    assert ("error", "nothing is there") == (
        (found := table_status(spec, None, gone)).sync,
        found.error,
    )


def test_a_clustering_that_is_not_due_is_no_warning(table):
    spec, state, plan = table
    none = Note("nothingToDo", "no clustering: 1 file slice is not small")
    text = status_text([table_status(spec, state, replace(plan, warnings=(none,)))], Terminal())

    assert "  = no clustering  1 file slice is not small [nothingToDo]\n" in text
    assert "! warning" not in text


def test_without_drift_and_steps_a_table_is_in_sync(table):
    spec, state, plan = table

    assert "in sync" == table_status(spec, state, replace(plan, steps=(), drift=())).sync


def test_a_table_whose_layout_nobody_knows_is_not_in_sync(table):
    spec, state, plan = table
    unmeasured = Note("gain", "clustering.when.gainAbove is not checked: no statistics")
    found = table_status(spec, state, replace(plan, steps=(), drift=(), warnings=(unmeasured,)))
    text = status_text([found], Terminal())

    assert ("unknown", (unmeasured.because,)) == (found.sync, found.because)
    assert ("Unknown", "LayoutUnknown") == (found.conditions[0].status, found.conditions[0].reason)
    assert "sales.orders  unknown" in text
    assert 1 == text.count("is not checked: no statistics")
    assert text.endswith("Status: 1 table: 1 unknown; 1 unhealthy\n")
    assert "reconciler_synced" not in "".join(
        line
        for line in status_prometheus([found], observed_at=NOW).splitlines()
        if not line.startswith("#")
    )


def test_the_cause_of_a_held_boundary_has_its_remedy(table):
    spec, state, plan = table
    held = Note("pendingWrite", "commit 1 holds it back: roll it back")
    idle = Note("idle", "nothing to do: the newest commit is old")
    found = table_status(spec, state, replace(plan, warnings=(held, idle)))
    text = status_text([found], Terminal())
    document = json.loads(status_json([found], observed_at=NOW.isoformat(), tool="t 1"))

    assert (held, idle) == found.notes
    assert "! warning  commit 1 holds it back: roll it back [pendingWrite]\n" in text
    assert "= nothing to clean  the newest commit is old [idle]\n" in text
    assert [
        {"rule": "pendingWrite", "because": held.because},
        {"rule": "idle", "because": idle.because},
    ] == document["tables"][0]["notes"]


def test_a_held_lock_names_its_holder(table):
    lock = LockStatus(path="/w/t/.hoodie/lock", held_by="ann, 7 s ago", age_seconds=7)
    found = table_status(*table, lock=lock)

    assert "  locked  /w/t/.hoodie/lock is held by ann, 7 s ago\n" in status_text(
        [found], Terminal()
    )
    assert {
        "path": "/w/t/.hoodie/lock",
        "heldBy": "ann, 7 s ago",
        "ageSeconds": 7,
        "isStale": False,
    } == json.loads(status_json([found], observed_at=NOW.isoformat(), tool="t 1"))["tables"][0][
        "lock"
    ]


def test_tables_that_need_attention_come_first(table):
    found = status_text(
        [
            table_status(*table),
            TableStatus(name="b", path="/b", sync="in sync"),
            TableStatus(name="c", path="/c", sync="error", error="nothing is there"),
        ],
        Terminal(),
    )

    assert (
        found.index("c  error")
        < found.index("sales.orders  drifted, unhealthy")
        < found.index("b  in sync")
    )
    assert "! stuck  commit 20261121044653279 inflight for" in found
    assert "pins 3 files" in found
    assert "below 1 MiB" in found
    assert found.endswith("Status: 3 tables: 1 error, 1 drifted, 1 in sync; 1 unhealthy\n")


def test_the_document_has_what_the_text_shows(table):
    data = status_json([table_status(*table)], observed_at=NOW.isoformat(), tool="t 1")
    found = json.loads(data)

    assert data == canonical_json.to_bytes(found) + b"\n"
    assert "2026-11-22T00:00:00+00:00" == found["observedAt"] == found["createdAt"]
    assert "t 1" == found["tool"]
    assert 3 == found["tables"][0]["savepoints"][0]["pinnedFiles"]


def test_a_status_of_some_tables_shows_the_total():
    selection = Selection(tables=0, total=2, by=("--name t",))
    document = json.loads(
        status_json([], observed_at=NOW.isoformat(), tool="t", selection=selection)
    )

    assert "Status: 0 of 2 tables\n" == status_text([], Terminal(), selection=selection)
    assert {"tables": 0, "of": 2, "by": ["--name t"], "removed": []} == document["selection"]


def test_a_status_is_not_taken_for_a_plan(table):
    data = status_json([table_status(*table)], observed_at=NOW.isoformat(), tool="t 1")

    with pytest.raises(PlanError, match="is the output of `reconciler status`"):
        load_plan(data, "status.json")


def test_a_stuck_instant_makes_a_table_unhealthy_whatever_its_files_are(table):
    spec, state, plan = table
    found = table_status(spec, state, replace(plan, steps=(), drift=()))
    synced, healthy = found.conditions

    assert ("Synced", "True", "InSync") == (synced.type, synced.status, synced.reason)
    assert ("Healthy", "False", "StuckInstant") == (healthy.type, healthy.status, healthy.reason)
    assert healthy.message.startswith("replacecommit 20261121044641595 is requested for "), (
        healthy.message
    )
    assert "longer than concurrency.staleAfter, 1h" in healthy.message


def test_an_instant_pending_for_less_than_declared_is_not_stuck(table):
    spec, state, plan = table
    patient = replace(spec, concurrency=Concurrency(stale_after=10**9))

    assert "Healthy" == table_status(patient, state, plan).condition("Healthy").reason


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        (
            LockStatus(path="/l", held_by="ann", age_seconds=7, is_stale=True),
            "/l is held by ann: its holder is gone",
        ),
        (
            LockStatus(path="/l", held_by="a writer", age_seconds=3601),
            "/l is held by a writer: longer than concurrency.staleAfter, 1h",
        ),
    ],
)
def test_a_lock_of_a_holder_that_is_gone_is_stale(lock, message, table):
    found = table_status(*table, lock=lock)

    assert "StaleLock" == found.condition("Healthy").reason
    assert found.condition("Healthy").message.startswith(f"{message}; replacecommit ")
    assert found.lock.is_stale
    assert "  ! stale lock  /l is held by" in status_text([found], Terminal())


def test_the_earliest_readable_write_has_an_age_if_the_zone_is_known(table):
    spec, state, plan = table
    utc = table_status(spec, state, plan)
    tokyo = table_status(replace(spec, timezone="Asia/Tokyo"), state, plan)
    nowhere = table_status(replace(spec, timezone=None), state, plan)

    assert "20261121044439672" == utc.earliest_readable
    assert 69321 == utc.earliest_readable_age_seconds
    assert 69321 + 9 * 3600 == tokyo.earliest_readable_age_seconds
    assert nowhere.earliest_readable_age_seconds is None


def test_shares_and_sums_are_of_the_plan_and_the_newest_files(table):
    spec, state, plan = table
    found = table_status(spec, state, plan)
    refused = replace(plan, refusals=(Note("clock", "the clock is wrong"),))

    assert plan.impact.bytes_removed == found.bytes_reclaimable > 0
    assert 1.0 == found.small_file_share
    assert 11 == found.active_commits
    assert max(p.age_seconds for p in found.pending) == found.oldest_pending_age_seconds
    assert table_status(spec, state, refused).bytes_reclaimable is None


def test_the_last_apply_is_our_newest_clean_with_its_actor_and_commit(table):
    spec, state, plan = table
    extra = {
        "reconciler.plan.digest": "sha256:1",
        "reconciler.spec.digest": "sha256:2",
        "reconciler.spec.commit": "abc",
        "reconciler.actor": "ann",
    }
    older = replace(state.cleans[-1], instant="20261121080000000", extra=extra)
    newer = replace(older, instant="20261121090000123")
    foreign = replace(older, instant="20261121100000000", extra={})
    cleans = (*state.cleans, newer, older, foreign)
    found = table_status(spec, replace(state, cleans=cleans), plan).last_apply
    text = status_text([table_status(spec, replace(state, cleans=cleans), plan)], Terminal())

    assert (
        LastApply(
            instant="20261121090000123",
            at="2026-11-21T09:00:00.123+00:00",
            plan_digest="sha256:1",
            spec_digest="sha256:2",
            spec_commit="abc",
            actor="ann",
        )
        == found
    )
    assert "by ann from specs at abc, plan 1 " in " ".join(text.split())
    assert table_status(spec, state, plan).last_apply is None


def test_a_table_with_an_unusable_state_has_conditions_too(table):
    spec, _, plan = table
    restoring = replace(plan, refusals=(Note("pendingRestore", "restore 1 is half done"),))
    gone = replace(plan, error="nothing is there", observed=None)

    assert [("False", "Blocked"), ("False", "PendingRestore")] == [
        (c.status, c.reason) for c in table_status(spec, None, restoring).conditions
    ]
    assert [("Unknown", "Unreadable"), ("False", "Unreadable")] == [
        (c.status, c.reason) for c in table_status(spec, None, gone).conditions
    ]
