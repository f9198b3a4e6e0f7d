"""Laws of policies: what they may change in a plan, and that no table spec can evade them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.planners.compose import plan_table
from reconciler.plans.decode import empty_removed_files
from reconciler.plans.document import compute_steps_digest
from reconciler.plans.guardrails import evaluate_policies
from reconciler.plans.model import CleanStep, Impact, TablePlan
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.spec.guard_policy import GuardPolicy, Waiver
from reconciler.spec.model import Concurrency, Lock, Policy, Retention, TableSpec
from reconciler.spec.rules import COUNT_BY_POLICY
from tests.laws.clean_tables import retentions, tables
from tests.selection import examples

LAW = settings(max_examples=examples(13, many=100), deadline=None)
NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
RULES = (
    "minRetention",
    "maxFilesRemoved",
    "maxBytesRemoved",
    "maxRewrite",
    "protected",
    "requireLock",
)
NAMES = ("fin.a", "fin.b", "web")
STEP = CleanStep(
    policy="KEEP_LATEST_COMMITS", earliest_instant_to_retain=None, files=empty_removed_files()
)
few = st.integers(0, 3)
limits = st.none() | few
days = st.integers(-3, 3).map(lambda n: (date(2026, 1, 1) + timedelta(days=n)).isoformat())
waivers = st.builds(
    Waiver,
    rule=st.sampled_from(RULES),
    table=st.sampled_from([*NAMES, "fin.*"]),
    until=days,
    reason=st.just("why"),
)
policies = st.builds(
    GuardPolicy,
    name=st.sampled_from(["one", "two", "three"]),
    min_retention=st.dictionaries(
        st.sampled_from(list(COUNT_BY_POLICY.values())), st.integers(1, 4)
    ),
    max_files_removed=limits,
    max_bytes_removed=limits,
    max_rewrite=limits,
    protected=st.lists(st.sampled_from(["fin.*", "web", "*"]), max_size=1).map(tuple),
    require_lock=st.booleans(),
    severity=st.sampled_from(["error", "error", "warn"]),
    waivers=st.lists(waivers, max_size=3).map(tuple),
)
guards = st.lists(policies, max_size=3).map(tuple)
#: two of three also refuse any removal, or few of these would refuse a step with files
strict_guards = st.tuples(guards, st.sampled_from([0, 0, None])).map(
    lambda drawn: (*drawn[0], GuardPolicy(name="strict", max_files_removed=drawn[1]))
)
plans = st.builds(
    TablePlan,
    name=st.just("t"),
    path=st.just("/t"),
    spec=st.just({}),
    spec_digest=st.just(""),
    steps=st.sampled_from([(), (STEP,)]),
    impact=st.builds(Impact, files_removed=few, bytes_removed=few, bytes_rewritten=few),
)
specs = st.builds(
    TableSpec,
    name=st.sampled_from(NAMES),
    path=st.just("/t"),
    retention=st.none()
    | st.builds(Retention, policy=st.sampled_from(Policy), keep=st.integers(1, 4)),
    concurrency=st.none()
    | st.sampled_from(["filesystem", "none"]).map(
        lambda provider: Concurrency(lock=Lock(provider=provider))
    ),
)


def refused_rules(plan, spec, policies, now=NOW):
    return evaluate_policies(plan, replace(spec, guarded_by=tuple(policies)), now).refusals


@LAW
@given(tables(), retentions(), strict_guards)
def test_policies_do_not_change_the_steps_of_a_plan(state, retention, policies):
    spec = TableSpec(name="fin.a", path="/t", retention=retention)
    free = plan_table(spec, state, NOW)
    guarded = plan_table(replace(spec, guarded_by=policies), state, NOW)

    assert compute_steps_digest(free) == compute_steps_digest(guarded)
    assert free.drift == guarded.drift
    assert (free.kept is None) == (guarded.kept is None)
    assert free.kept is None or free.kept.name.equals(guarded.kept.name)
    assert guarded.refusals[: len(free.refusals)] == free.refusals
    assert guarded.warnings[len(guarded.warnings) - len(free.warnings) :] == free.warnings


@LAW
@given(tables(), retentions(), strict_guards)
def test_sums_are_those_of_the_steps_that_no_refusal_of_a_kind_forbids(state, retention, policies):
    spec = TableSpec(name="fin.a", path="/t", retention=retention)
    free = plan_table(spec, state, NOW).impact
    guarded = plan_table(replace(spec, guarded_by=policies), state, NOW)
    is_refused = any(note.step == "clean" for note in guarded.refusals)

    assert guarded.impact == (
        replace(
            free,
            files_removed=0,
            bytes_removed=0,
            earliest_readable_after=free.earliest_readable_before,
        )
        if is_refused
        else free
    )
    assert not (guarded.refusals and list_applied_steps(guarded))


@LAW
@given(plans, specs, guards, policies)
def test_additional_policy_removes_no_refusal(plan, spec, policies, more):
    assert set(refused_rules(plan, spec, policies)) <= set(
        refused_rules(plan, spec, [*policies, more])
    )


@LAW
@given(plans, specs, policies, waivers)
def test_waiver_applies_to_its_rule_and_table_until_it_expires(plan, spec, policy, waiver):
    before = refused_rules(plan, spec, [replace(policy, waivers=())])
    after = refused_rules(plan, spec, [replace(policy, waivers=(waiver,))])
    is_meant = waiver.table == spec.name and waiver.until >= "2026-01-01"

    assert [note.rule for note in after] == [
        note.rule for note in before if not (is_meant and note.rule == waiver.rule)
    ]


@LAW
@given(plans, specs, policies)
def test_waived_findings_and_warnings_are_still_reported(plan, spec, policy):
    strict = replace(policy, waivers=(), severity="error")
    found = evaluate_policies(plan, replace(spec, guarded_by=(policy,)), NOW)

    assert sorted(note.rule for note in (*found.refusals, *found.warnings)) == sorted(
        note.rule for note in refused_rules(plan, spec, [strict])
    )


@LAW
@given(plans, specs, policies)
def test_no_retention_gets_below_the_minimum(plan, spec, policy):
    strict = replace(policy, waivers=(), severity="error")
    rules = {note.rule for note in refused_rules(plan, spec, [strict])}
    kept = spec.retention
    least = policy.min_retention.get(COUNT_BY_POLICY[kept.policy]) if kept else None
    is_enough = kept is None or (least is not None and kept.keep >= least)

    assert ("minRetention" not in rules) == (not policy.min_retention or is_enough)


@LAW
@given(plans, specs, policies, st.data())
def test_larger_plan_is_refused_at_least_as_often(plan, spec, policy, data):
    impact = plan.impact
    larger = replace(
        plan,
        steps=(STEP,),
        impact=Impact(
            files_removed=impact.files_removed + data.draw(few),
            bytes_removed=impact.bytes_removed + data.draw(few),
            bytes_rewritten=impact.bytes_rewritten + data.draw(few),
        ),
    )

    assert {note.rule for note in refused_rules(plan, spec, [policy])} <= {
        note.rule for note in refused_rules(larger, spec, [policy])
    }


@LAW
@given(plans, specs, policies, st.integers(0, 10))
def test_waivers_only_expire_with_time(plan, spec, policy, later):
    then = NOW + timedelta(days=later)

    assert {note.rule for note in refused_rules(plan, spec, [policy])} <= {
        note.rule for note in refused_rules(plan, spec, [policy], then)
    }
