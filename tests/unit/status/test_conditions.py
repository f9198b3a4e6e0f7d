from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.plans.model import Finding, Note, ResumeStep, RollbackStep, TablePlan
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.status.conditions import (
    HEALTH_REASONS,
    SYNC_REASONS,
    healthy_condition,
    synced_condition,
)

SPEC = TableSpec(name="t", path="/t", retention=Retention(policy=Policy.COMMITS, keep=1))
PLAN = TablePlan(name="t", path="/t", spec={}, spec_digest="")
DRIFT = (Finding("retention.commits", 1, 3, "2 file slices exceed it"),)
RESUME = (ResumeStep(instant="1", action="clean", files=None, because="clean 1 was left"),)
ROLLBACK = (RollbackStep(instant="2", action="commit", files=None, because="commit 2 was left"),)
SUSPENDED = Note("suspend", "suspend: true in the spec")
UNMEASURED = Note("gain", "gainAbove is not checked")


@pytest.mark.parametrize(
    ("changes", "status", "reason", "message"),
    [
        ({}, "True", "InSync", "the plan is empty"),
        ({"drift": DRIFT}, "False", "Drifted", "retention.commits: 2 file slices exceed it"),
        ({"steps": RESUME}, "False", "Drifted", "clean 1 was left"),
        ({"steps": RESUME + ROLLBACK}, "False", "Drifted", "clean 1 was left; commit 2 was left"),
        ({"refusals": (SUSPENDED,)}, "True", "Suspended", "suspend: true in the spec"),
        (
            {"refusals": (SUSPENDED,), "drift": DRIFT},
            "False",
            "Suspended",
            "suspend: true in the spec; retention.commits: 2 file slices exceed it",
        ),
        (
            {"refusals": (SUSPENDED, Note("maxFilesRemoved", "too many"))},
            "False",
            "Blocked",
            "too many",
        ),
        (
            {"refusals": (Note("columns", "no x", step="cluster"),), "drift": DRIFT},
            "False",
            "BlockedInPart",
            "no x; retention.commits: 2 file slices exceed it",
        ),
        (
            {"refusals": (Note("columns", "no x", step="cluster"), SUSPENDED)},
            "False",
            "Suspended",
            "suspend: true in the spec; no x",
        ),
        ({"warnings": (UNMEASURED,)}, "Unknown", "LayoutUnknown", "gainAbove is not checked"),
        (
            {"warnings": (UNMEASURED,), "drift": DRIFT},
            "False",
            "Drifted",
            "retention.commits: 2 file slices exceed it",
        ),
        (
            {"warnings": (UNMEASURED,), "refusals": (SUSPENDED,)},
            "Unknown",
            "Suspended",
            "suspend: true in the spec; gainAbove is not checked",
        ),
        ({"error": "/t: is not there"}, "Unknown", "Unreadable", "/t: is not there"),
    ],
)
def test_a_table_is_in_sync_if_its_plan_is_empty_and_not_refused(changes, status, reason, message):
    found = synced_condition(SPEC, replace(PLAN, **changes))

    assert ("Synced", status, reason, message) == (
        found.type,
        found.status,
        found.reason,
        found.message,
    )


def test_an_unmanaged_table_is_not_known_to_be_in_sync():
    found = synced_condition(replace(SPEC, retention=None), PLAN)

    assert ("Unknown", "Unmanaged") == (found.status, found.reason)


def test_an_unmanaged_table_reports_what_a_dead_write_has_left():
    found = synced_condition(replace(SPEC, retention=None), replace(PLAN, steps=ROLLBACK))

    assert ("False", "Drifted", "commit 2 was left") == (found.status, found.reason, found.message)


def test_drift_and_refusals_make_no_table_unhealthy():
    drifted = replace(PLAN, drift=DRIFT, refusals=(SUSPENDED, Note("protected", "no")))
    found = healthy_condition(drifted, stuck=(), stale_lock=None)

    assert ("Healthy", "True", "Healthy") == (found.type, found.status, found.reason)


def test_the_reason_is_the_worst_and_the_message_has_all():
    restoring = replace(PLAN, refusals=(Note("pendingRestore", "restore 1 is half done"),))
    found = healthy_condition(restoring, stuck=["commit 2 hangs"], stale_lock="/l is held by ann")

    assert "PendingRestore" == found.reason
    assert "restore 1 is half done; /l is held by ann; commit 2 hangs" == found.message


def test_a_message_does_not_name_a_hundred_instants():
    found = healthy_condition(
        PLAN, stuck=[f"commit {i} hangs" for i in range(100)], stale_lock=None
    )

    assert found.message.startswith("commit 0 hangs; commit 1 hangs; ")
    assert found.message.endswith("commit 4 hangs; and 95 more")


def test_every_reason_is_declared():
    assert {
        "InSync",
        "Drifted",
        "LayoutUnknown",
        "Blocked",
        "BlockedInPart",
        "Suspended",
        "Unmanaged",
        "Unreadable",
    } == set(SYNC_REASONS)
    assert {"Healthy", "StuckInstant", "StaleLock", "PendingRestore", "Unreadable"} == set(
        HEALTH_REASONS
    )
