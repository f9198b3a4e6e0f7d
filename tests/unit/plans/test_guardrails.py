"""What policies say about one table's plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from reconciler.plans.compact_step import CompactStep
from reconciler.plans.decode import empty_orphan_files, empty_removed_files
from reconciler.plans.groups import empty_rewrites
from reconciler.plans.guardrails import evaluate_policies
from reconciler.plans.model import (
    CleanStep,
    Impact,
    Note,
    OrphansStep,
    ResumeStep,
    TablePlan,
)
from reconciler.spec.guard_policy import GuardPolicy, Waiver
from reconciler.spec.model import Concurrency, Lock, Policy, Retention, TableSpec

NOW = datetime(2026, 2, 28, 23, 59, tzinfo=UTC)
GIB = 1024**3
STEP = CleanStep(
    policy="KEEP_LATEST_COMMITS", earliest_instant_to_retain=None, files=empty_removed_files()
)

ORPHANS = OrphansStep(files=empty_orphan_files())


def policy(**limits):
    return GuardPolicy(name="gold", **limits)


def waiver(rule, until, table="fin.a", reason="backfill"):
    return Waiver(rule=rule, table=table, until=until, reason=reason)


def spec(*policies, keep=3, kind=Policy.COMMITS, lock="filesystem"):
    return TableSpec(
        name="fin.a",
        path="/t",
        retention=Retention(policy=kind, keep=keep),
        concurrency=Concurrency(lock=Lock(provider=lock)) if lock else None,
        guarded_by=policies,
    )


def plan(steps=(STEP,), **impact):
    return TablePlan(
        name="fin.a", path="/t", spec={}, spec_digest="", steps=steps, impact=Impact(**impact)
    )


def refused(policies, made=None, now=NOW, **declared):
    found = evaluate_policies(made or plan(), spec(*policies, **declared), now)
    assert () == found.warnings
    return [(note.rule, note.because) for note in found.refusals]


def test_without_policies_nothing_is_said():
    made = plan(files_removed=10**6)

    assert [] == refused([], made)


def test_a_retention_below_the_least_is_refused_without_any_step():
    because = (
        "policy gold requires retention.commits of 4 or more, but the spec has 3; raise it, or "
        "ask its owner for a waiver"
    )

    assert [("minRetention", because)] == refused(
        [policy(min_retention={"commits": 4})], plan(steps=())
    )
    assert [] == refused([policy(min_retention={"commits": 3})])


def test_a_retention_of_another_kind_cannot_be_compared():
    limited = policy(min_retention={"hours": 168, "commits": 10}, owner="the platform team")
    because = (
        "policy gold has a minimum for commits and hours but none for fileVersions, so "
        "retention.fileVersions: 99 cannot be checked; declare commits: 10 or hours: 168 or "
        "more instead, or ask the platform team for a waiver"
    )

    assert [("minRetention", because)] == refused(
        [limited], plan(steps=()), keep=99, kind=Policy.FILE_VERSIONS
    )


def test_a_table_without_retention_loses_nothing_and_is_not_compared():
    bare = replace(spec(policy(min_retention={"commits": 4})), retention=None)

    assert () == evaluate_policies(plan(steps=()), bare, NOW).refusals


@pytest.mark.parametrize(
    ("limits", "impact", "because"),
    [
        (
            {"max_files_removed": 10},
            {"files_removed": 11},
            (
                "policy gold lets a plan remove 10 files, but this one removes 11; remove less at "
                "a time with retention.maxCommitsPerRun, or keep more, or ask its owner for a "
                "waiver"
            ),
        ),
        (
            {"max_bytes_removed": GIB},
            {"bytes_removed": GIB + 1},
            (
                "policy gold lets a plan remove 1GiB, but this one removes 1.01GiB; remove less "
                "at a time with retention.maxCommitsPerRun, or keep more, or ask its owner for a "
                "waiver"
            ),
        ),
        (
            {"max_rewrite": 0},
            {"bytes_rewritten": 1},
            (
                "policy gold lets a plan rewrite 0B, but this one rewrites 1B; lower "
                "clustering.budget.rewrite, or ask its owner for a waiver"
            ),
        ),
    ],
)
def test_a_plan_above_a_limit_is_refused_and_one_at_it_is_not(limits, impact, because):
    [(name, above)] = impact.items()

    assert [because] == [why for _, why in refused([policy(**limits)], plan(**impact))]
    assert [] == refused([policy(**limits)], plan(**{name: above - 1}))


@pytest.mark.parametrize(
    ("steps", "kinds"),
    [
        ((STEP,), ["clean"]),
        ((ORPHANS,), ["orphans"]),
        ((STEP, ORPHANS), ["clean", "orphans"]),
    ],
)
def test_a_limit_on_removed_files_refuses_all_that_removes_some(steps, kinds):
    made = plan(steps, files_removed=11)
    found = evaluate_policies(made, spec(policy(max_files_removed=10)), NOW).refusals

    assert kinds == [note.step for note in found]


def test_the_remedy_for_too_many_orphans_is_theirs():
    (said,) = refused([policy(max_files_removed=0)], plan((ORPHANS,), files_removed=1))

    assert "raise orphans.olderThan, or find out what leaves so many files" in said[1]


def test_a_protected_table_is_refused_where_there_are_steps():
    assert [
        (
            "protected",
            (
                "policy gold protects fin.a (fin.*): leave the table as it is, or ask its owner "
                "for a waiver"
            ),
        )
    ] == refused([policy(protected=("web.*", "fin.*"))])
    assert [] == refused([policy(protected=("fin.*",))], plan(steps=()))
    assert [] == refused([policy(protected=("FIN.*", "fin", "a"))])


@pytest.mark.parametrize(
    ("lock", "declared"),
    [(None, "no concurrency.lock"), ("none", "concurrency.lock.provider none")],
)
def test_a_lock_may_be_asked_for_without_any_step(lock, declared):
    [(rule, because)] = refused([policy(require_lock=True)], plan(steps=()), lock=lock)

    assert "requireLock" == rule
    assert f"policy gold requires a lock, but the spec has {declared}; declare" in because
    assert [] == refused([policy(require_lock=True)])


def test_every_policy_is_asked():
    policies = [
        policy(max_files_removed=10),
        GuardPolicy(name="all", max_files_removed=100),
        GuardPolicy(name="strict", max_files_removed=50, require_lock=True),
    ]
    found = refused(policies, plan(files_removed=60), lock=None)

    assert ["maxFilesRemoved", "requireLock", "maxFilesRemoved"] == [rule for rule, _ in found]
    assert ["gold", "strict", "strict"] == [because.split()[1] for _, because in found]


def test_a_policy_may_only_warn():
    found = evaluate_policies(
        plan(files_removed=2), spec(policy(max_files_removed=1, severity="warn")), NOW
    )

    assert () == found.refusals
    assert (
        Note(
            "maxFilesRemoved",
            "policy gold lets a plan remove 1 file, but this one removes 2; remove less at a time "
            "with retention.maxCommitsPerRun, or keep more",
        ),
    ) == found.warnings


def test_a_waiver_in_force_turns_a_refusal_into_a_warning_that_names_it():
    limited = policy(max_files_removed=1, waivers=(waiver("maxFilesRemoved", "2026-02-28"),))
    found = evaluate_policies(plan(files_removed=2), spec(limited), NOW)

    assert () == found.refusals
    assert (
        Note(
            "maxFilesRemoved",
            "waived until 2026-02-28 (backfill): policy gold lets a plan remove 1 file, but this "
            "one removes 2; remove less at a time with retention.maxCommitsPerRun, or keep more",
        ),
    ) == found.warnings


@pytest.mark.parametrize(
    ("now", "is_refused"),
    [
        (NOW + timedelta(seconds=59), False),
        (NOW + timedelta(seconds=60), True),
        (datetime(2026, 3, 1, 1, tzinfo=timezone(timedelta(hours=2))), False),
        (datetime(2026, 2, 28, 20, tzinfo=timezone(timedelta(hours=-5))), True),
    ],
)
def test_a_waiver_is_in_force_up_to_the_end_of_its_day_in_utc(now, is_refused):
    limited = policy(max_files_removed=1, waivers=(waiver("maxFilesRemoved", "2026-02-28"),))
    found = evaluate_policies(plan(files_removed=2), spec(limited), now)

    assert is_refused == bool(found.refusals)
    assert is_refused != bool(found.warnings)


def test_a_waiver_that_is_over_is_named():
    over = (waiver("maxFilesRemoved", "2026-01-31"), waiver("maxFilesRemoved", "2025-12-31"))
    [(_, because)] = refused([policy(max_files_removed=1, waivers=over)], plan(files_removed=2))

    assert because.endswith(
        ", or ask its owner for a waiver; the last waiver ended on 2026-01-31 (backfill)"
    )


@pytest.mark.parametrize(
    "other",
    [
        waiver("maxBytesRemoved", "2026-12-31"),
        waiver("maxFilesRemoved", "2026-12-31", table="fin.b"),
        waiver("maxFilesRemoved", "2026-12-31", table="fin.*"),
    ],
)
def test_a_waiver_is_for_its_rule_and_its_table_alone(other):
    limited = policy(max_files_removed=1, waivers=(other,))

    assert ["maxFilesRemoved"] == [rule for rule, _ in refused([limited], plan(files_removed=2))]


def test_a_waiver_waives_nothing_of_another_policy():
    waived = policy(max_files_removed=1, waivers=(waiver("maxFilesRemoved", "2026-12-31"),))
    strict = GuardPolicy(name="strict", max_files_removed=1)
    found = evaluate_policies(plan(files_removed=2), spec(waived, strict), NOW)

    assert ["strict"] == [note.because.split()[1] for note in found.refusals]
    assert 1 == len(found.warnings)


@pytest.mark.parametrize(
    ("rule", "step"),
    [
        ({"max_files_removed": 1}, "clean"),
        ({"max_bytes_removed": 1}, "clean"),
        ({"min_retention": {"commits": 99}}, "clean"),
        ({"max_rewrite": 1}, "cluster"),
        ({"protected": ("*",)}, None),
        ({"require_lock": True}, None),
    ],
)
def test_a_rule_about_one_kind_of_step_refuses_that_kind(rule, step):
    made = plan(files_removed=2, bytes_removed=2, bytes_rewritten=2)
    found = evaluate_policies(made, spec(policy(**rule), lock=None), NOW)

    assert [step] == [note.step for note in found.refusals]


@pytest.mark.parametrize(
    ("actions", "kinds", "remedy"),
    [
        (("compaction",), ["compact"], "set concurrency.pending.compaction to report"),
        (("clustering",), ["cluster"], "lower clustering.budget.rewrite"),
        (("compaction", "clustering"), ["compact", "cluster"], "lower clustering.budget.rewrite"),
    ],
)
def test_a_limit_on_rewritten_bytes_refuses_all_that_rewrites(actions, kinds, remedy):
    steps = tuple(
        ResumeStep(instant=action, action=action, files=empty_removed_files()) for action in actions
    )
    made = plan(steps, bytes_rewritten=2)
    notes = evaluate_policies(made, spec(policy(max_rewrite=1)), NOW).refusals

    assert kinds == [note.step for note in notes]
    assert all(remedy in note.because for note in notes)


def test_what_a_planned_compaction_rewrites_counts_too():
    step = CompactStep(order="logBytes", groups=empty_rewrites(), expected=())
    made = plan((step,), bytes_rewritten=2)
    (note,) = evaluate_policies(made, spec(policy(max_rewrite=1)), NOW).refusals

    assert "compact" == note.step
    assert "lower compaction.budget.rewrite" in note.because


def test_a_warning_names_no_kind_of_step():
    warns = GuardPolicy(name="w", max_files_removed=1, severity="warn")
    found = evaluate_policies(plan(files_removed=2), spec(warns), NOW)

    assert [("maxFilesRemoved", None)] == [(note.rule, note.step) for note in found.warnings]
