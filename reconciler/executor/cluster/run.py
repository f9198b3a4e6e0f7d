"""Run a reviewed clustering: choose the groups that may still run, and request them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.errors import AlreadyExistsError, PartialError
from reconciler.executor.cluster.execution import (
    ClusterExecution,
    RewrittenGroups,
    check_no_foreign_writes,
    require_rewriter,
)
from reconciler.executor.cluster.group_selection import GroupSelection, drop_groups, select_groups
from reconciler.executor.cluster.hudi_execution import (
    check_layout,
    execute_clustering_by_hudi,
    make_executor_extra,
)
from reconciler.executor.cluster.rewrite_job import find_bucket_groups
from reconciler.executor.cluster.work import (
    ClusterWork,
    get_clustering_action,
    make_circumstances_extra,
    make_claims,
    make_layout_extra,
    make_requested_plan,
)
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.gate import RefusedError
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.sync_decisions import decide_rewrite_sync
from reconciler.hudi.timeline.active import Timeline
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.passes import build_pass_metadata
from reconciler.planners.cluster.quiet_partitions import find_busy_partitions
from reconciler.planners.picture import TablePicture
from reconciler.plans.model import ClusterStep, Note
from reconciler.rewrite.facts import TableFacts, read_table_facts
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.schema_versions import SCHEMA_FOLDER
from reconciler.storage.paths import list_if_exists
from reconciler.transaction.conflicts import find_conflicts
from reconciler.transaction.footprints import collect_completed_writes, read_footprints
from reconciler.transaction.recovery.damaged_files import find_damaged_files
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Change, Ended, run_change


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """The groups to run now, and facts behind them. ``passes``: extra metadata about passes."""

    fresh: FreshPlan
    chosen: GroupSelection
    layout: ClusteringLayout
    facts: TableFacts
    passes: Mapping[str, str]


def run_cluster(session: ApplySession, step: ClusterStep, fresh: FreshPlan | None) -> StepOutcome:
    """Rewrite the groups that are both reviewed and unchanged, and report the rest.

    ``fresh`` is a plan that was made just now, if there is one. Raises RefusedError, BusyError and
    UnsupportedError before anything is written; what goes wrong later is undone before it is
    raised.
    """
    if session.context.hudi is not None:
        return run_change(_ClusterStepByHudi(session=session, fresh=fresh, step=step))
    require_rewriter(session)
    return run_change(_ClusterStep(session=session, fresh=fresh, step=step))


@dataclass(kw_only=True, eq=False)
class _ClusterStep(ClusterExecution, Change[_Decision, ClusterWork, RewrittenGroups, StepOutcome]):
    """A reviewed clustering."""

    activity = "a clustering was being prepared"
    refusable = "cluster"

    step: ClusterStep

    def prepare(self) -> _Decision | Ended[StepOutcome]:
        fresh = self.take_fresh_plan()
        check_no_foreign_writes(self.session, fresh)
        decision = _decide(self.session, self.step, fresh)
        if not len(decision.chosen.groups):
            return _report_unchanged(decision.chosen)
        return decision

    def request(
        self, prepared: _Decision, should_wait: ShouldWait
    ) -> ClusterWork | Ended[StepOutcome] | None:
        """Announce the groups that no other write has touched since the fresh plan."""
        session, chosen = self.session, prepared.chosen
        before = prepared.fresh.state.timeline
        timeline, writes = read_footprints(session, collect_completed_writes(before), None)
        if _has_vanished(before, timeline) or _has_schema_changed(session, before):
            return None
        claims = make_claims(chosen.groups, prepared.fresh.state, session.spec)
        if should_wait(claims, writes):
            return None
        chosen = drop_groups(chosen, find_conflicts(claims, writes))
        if not len(chosen.groups):
            return _report_unchanged(chosen)
        return _write_request(session, replace(prepared, chosen=chosen), timeline)


@dataclass(kw_only=True, eq=False)
class _ClusterStepByHudi(_ClusterStep):
    """A reviewed clustering that Hudi executes from its inflight file to its end."""

    def begin(self, pending: ClusterWork) -> None:
        pass

    def work(self, pending: ClusterWork) -> Ended[StepOutcome]:
        hudi = self.session.context.hudi
        assert hudi is not None, "it was chosen for its Hudi"
        return Ended(execute_clustering_by_hudi(self.session, hudi, pending))

    def is_undone_after(self, error: BaseException) -> bool:
        """After a PartialError Hudi is still at work."""
        return not isinstance(error, PartialError)


def _decide(session: ApplySession, step: ClusterStep, fresh: FreshPlan) -> _Decision:
    facts = read_table_facts(session.storage, fresh.state)
    properties = load_properties(session.storage)
    chosen = select_groups(
        step.groups,
        fresh.state,
        done=_find_earlier_clusterings(session, fresh),
        refusal=facts.merge_refusal,
        damage=find_damaged_files(session.storage, properties, fresh.state, step.groups),
    )
    chosen = drop_groups(chosen, _find_busy_groups(session, fresh, chosen))
    if len(chosen.groups):
        decide_rewrite_sync(
            properties.metadata_partitions,
            table_version=properties.table_version,
            rows=0,
            inflight=properties.metadata_partitions_inflight,
        )
    layout = ClusteringLayout(columns=step.columns, curve=step.curve, mapping=step.mapping)
    if session.context.hudi is not None:
        check_layout(layout, facts)
        _check_no_buckets(chosen)
    return _Decision(
        fresh=fresh,
        chosen=chosen,
        layout=layout,
        facts=facts,
        passes=build_pass_metadata(session.spec, fresh.state, chosen.groups),
    )


def _find_busy_groups(
    session: ApplySession, fresh: FreshPlan, chosen: GroupSelection
) -> dict[int, str]:
    """Return the groups in partitions that were written within ``files.quiet``, with the reason."""
    now = session.context.get_policy_time()
    busy = find_busy_partitions(TablePicture(session.spec, fresh.state, now))
    paths = enumerate(chosen.groups.partition.to_pylist())
    return {number: busy[path] for number, path in paths if path in busy}


def _check_no_buckets(chosen: GroupSelection) -> None:
    """Raise RefusedError for buckets: Hudi executes a clustering without knowing their number."""
    if find_bucket_groups(chosen.groups).any():
        text = (
            "file groups of a bucket index would get names without their bucket's number from "
            "--executor hudi; apply without it"
        )
        raise RefusedError((Note("bucketIndex", text, step="cluster"),))


def _find_earlier_clusterings(session: ApplySession, fresh: FreshPlan) -> frozenset[str]:
    """The completed clusterings of this very plan."""
    evidence = fresh.state.clustering_facts
    past = evidence.clusterings if evidence else ()
    return frozenset(one.instant for one in past if one.extra.get(PLAN_DIGEST) == session.digest)


def _write_request(
    session: ApplySession, decision: _Decision, timeline: Timeline
) -> ClusterWork | None:
    """Write the requested file; None when its name was taken meanwhile (``lock: none``)."""
    state, chosen = decision.fresh.state, decision.chosen
    extra = {
        **session.make_extra(),
        **make_layout_extra(decision.layout),
        **decision.passes,
        **make_circumstances_extra(session),
        **make_executor_extra(session),
    }
    plan = make_requested_plan(chosen.groups, state, session.spec, decision.layout, extra)
    data = plan.encode(session.storage.location, version=state.table_version)
    session.lock.confirm()
    try:
        instant = session.request_instant(
            get_clustering_action(state.table_version), timeline, data
        )
    except AlreadyExistsError:
        return None
    return ClusterWork(
        instant=instant,
        selection=chosen,
        layout=decision.layout,
        facts=decision.facts,
        state=state,
        extra=extra,
        attempt=session.owner.token,
    )


def _has_vanished(before: Timeline, now: Timeline) -> bool:
    """Return True if a write that was completed is not any more: undone, or archived."""
    return bool(collect_completed_writes(before) - collect_completed_writes(now))


def _has_schema_changed(session: ApplySession, before: Timeline) -> bool:
    """Return True if columns were renamed or retyped since (InternalSchemaCache).

    Readers take the columns of a file for those of the last version before its instant.
    """
    versions = list_if_exists(session.storage, SCHEMA_FOLDER)
    newest = before.newest_time or ""
    times = (entry.name.partition(".")[0] for entry in versions)
    return any(time.isdigit() and time > newest for time in times)


def _report_unchanged(chosen: GroupSelection) -> Ended[StepOutcome]:
    return Ended(StepOutcome(kind="cluster", how="nothing", rewritten=chosen.unchanged))
