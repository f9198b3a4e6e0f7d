"""Running a reviewed clustering: choose, announce, rewrite, publish what nobody has touched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from reconciler.errors import (
    AlreadyExistsError,
    BusyError,
    NotFoundError,
    ReconcilerError,
    UnsupportedError,
)
from reconciler.executor.clean.execution import run_with_heartbeat
from reconciler.executor.clean.payloads import make_own_metadata
from reconciler.executor.cluster.cut_logs import find_cut_logs
from reconciler.executor.cluster.damaged_input import find_damaged_input
from reconciler.executor.cluster.group_selection import GroupSelection, select_groups, take_groups
from reconciler.executor.cluster.hudi_execution import (
    check_layout,
    execute_clustering_by_hudi,
    make_executor_extra,
)
from reconciler.executor.cluster.lost_files import explain_lost_files
from reconciler.executor.cluster.publish import (
    abandon_clustering,
    group_new_files,
    publish_clustering,
    remove_strays,
)
from reconciler.executor.cluster.query_measurement import list_new_files, measure_queries
from reconciler.executor.cluster.rewrite_job import make_groups, make_rewrite
from reconciler.executor.cluster.work import (
    ClusterWork,
    check_results,
    get_clustering_action,
    make_circumstances_extra,
    make_claims,
    make_layout_extra,
    make_requested_plan,
)
from reconciler.executor.gate import FreshPlan, RefusedError
from reconciler.executor.result import ClusterOutcome as Done
from reconciler.executor.result import LeftGroup, StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.executor.waiting import ShouldWait, retry_until_known
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.sync_decisions import decide_rewrite_sync
from reconciler.hudi.timeline.active import Timeline
from reconciler.planners.cluster.passes import build_pass_metadata
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import ClusterStep, Note
from reconciler.rewrite.facts import TableFacts, read_table_facts
from reconciler.rewrite.model import Rewriter, RewrittenGroup
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.model import PLAN_DIGEST
from reconciler.state.schema_versions import SCHEMA_FOLDER
from reconciler.transaction.conflicts import find_conflicts
from reconciler.transaction.footprints import (
    collect_completed_writes,
    find_foreign_writes,
    read_footprints,
)
from reconciler.transaction.locks.file_lock import NoLock
from reconciler.transaction.metadata.rewrite_sync import find_listing_differences

#: how often a timeline may change under our eyes before we let its writers be
_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """What runs now, and the state it follows from. ``passes``: what the instant says of them."""

    fresh: FreshPlan
    chosen: GroupSelection
    layout: ClusteringLayout
    ground: TableFacts
    passes: Mapping[str, str]


def run_cluster(session: ApplySession, step: ClusterStep, fresh: FreshPlan | None) -> StepOutcome:
    """Rewrite reviewed ∩ fresh, group by group, and report the rest.

    ``fresh`` is one just taken, if there is one. Raises RefusedError, BusyError, UnsupportedError
    before anything is written; what goes wrong later is undone before it is raised.
    """
    if session.context.hudi is None:
        require_rewriter(session)
    for _attempt in range(_ATTEMPTS):
        if fresh is None:
            with session.phase("observe"):
                fresh = session.make_fresh_plan()
        check_no_foreign_writes(session, fresh)
        decision = _decide(session, step, fresh)
        fresh = None
        if not len(decision.chosen.groups):
            return _make_empty_outcome(decision.chosen.left, decision.chosen.gone)
        with session.phase("request"):
            work = retry_until_known(session, partial(_request, session, decision))
        if isinstance(work, StepOutcome):
            return work
        if work is not None:
            outcome = run_with_heartbeat(session, work.instant, _choose_execution(session, work))
            return replace(outcome, kind="cluster")
    raise BusyError(
        f"{session.plan.name}: its timeline changed {_ATTEMPTS} times while a clustering was being "
        "prepared; run apply again when its writers are quieter"
    )


def _choose_execution(session: ApplySession, work: ClusterWork) -> Callable[[], StepOutcome]:
    """What executes a clustering just requested: we, or the Hudi that was asked for."""
    if (hudi := session.context.hudi) is not None:
        return partial(execute_clustering_by_hudi, session, hudi, work)
    return partial(execute_clustering, session, work, partial(begin_clustering, session, work))


def execute_clustering(
    session: ApplySession, work: ClusterWork, begin: Callable[[], None]
) -> StepOutcome:
    """Inflight to completed; whatever goes wrong takes everything back, as far as it can.

    Once that is done a damaged file among those to be read is a failed step: it says nothing of
    other steps, which go on. All else is raised.
    """
    begin()
    is_rewritten = False
    try:
        results = _rewrite(session, work)
        is_rewritten = True
        work = replace(
            work, measurement=measure_queries(session, work, list_new_files(work, results))
        )
        with session.phase("complete"):
            outcome = retry_until_known(
                session, partial(publish_clustering, session, work, results)
            )
    except (Exception, KeyboardInterrupt) as error:
        with contextlib.suppress(ReconcilerError):  # else it stays pending, for the next apply
            abandon_clustering(session, work)
            if (
                not is_rewritten
                and (damage := find_damaged_input(work, error))
                and _is_withdrawn(session, work)
            ):
                return _make_failed_outcome(work, damage)
        raise
    assert outcome is not None, "it waits no longer"
    if outcome.how == "undone":
        return outcome
    with session.phase("check"):
        return remove_strays(session, work, check_listing(session, work, results, outcome))


def _is_withdrawn(session: ApplySession, work: ClusterWork) -> bool:
    """Whether nothing of a clustering is on the timeline."""
    return all(file.instant.requested != work.instant for file in session.reload_timeline().files)


def _make_failed_outcome(work: ClusterWork, damage: str) -> StepOutcome:
    """A clustering that cannot be: all of its groups stay, and other steps need not wait for it."""
    partitions, sizes = work.groups.partition.to_pylist(), np.diff(work.groups.starts).tolist()
    left = (
        LeftGroup(partition=partition, slices=size, because=damage)
        for partition, size in zip(partitions, sizes, strict=True)
    )
    done = Done(left=(*work.left, *left), gone=work.gone)
    return StepOutcome(kind="cluster", how="failed", rewritten=done)


def check_listing(
    session: ApplySession, work: ClusterWork, results: list[RewrittenGroup], outcome: StepOutcome
) -> StepOutcome:
    """Compare what the metadata table lists with the new files, as far as it can be read."""
    if outcome.how != "completed":
        return outcome
    try:
        timeline = session.reload_timeline()
        added = group_new_files(session, work, results)
        found = find_listing_differences(
            session.storage, load_properties(session.storage), timeline, added
        )
    except ReconcilerError as error:  # it is completed all the same
        said = f"the clustering is completed; its metadata table could not be compared: {error}"
        return replace(outcome, warnings=(*outcome.warnings, Note("metadataListing", said)))
    notes = tuple(
        Note(
            "metadataListing",
            f"the metadata table and the disk differ in {pluralize(len(names), 'file')} of partition "
            f"{path!r}, for example {', '.join(names[:5])}",
        )
        for path, names in sorted(found.items())
    )
    return replace(outcome, differences=notes)


def check_no_foreign_writes(
    session: ApplySession, fresh: FreshPlan, own: str | None = None
) -> None:
    """Without a lock nobody waits for us, so nobody else may be writing."""
    pending = find_foreign_writes(fresh.state.timeline, own)
    if isinstance(session.lock, NoLock) and pending:
        first = pending[0]
        note = Note(
            "lock",
            f"{first.action} {first.requested} is pending, and without a lock it could write to "
            "what is being rewritten; configure concurrency.lock or wait",
        )
        raise RefusedError((note,))


def require_rewriter(session: ApplySession) -> Rewriter:
    """What rewrites files; raises UnsupportedError where there is nothing that does."""
    rewriter = session.context.rewriter
    if rewriter is None:
        raise UnsupportedError(
            f"{session.plan.name}: there is nothing here that rewrites files; run `reconciler apply` "
            "with PySpark installed"
        )
    return rewriter


def _decide(session: ApplySession, step: ClusterStep, fresh: FreshPlan) -> _Decision:
    ground = read_table_facts(session.storage, fresh.state)
    properties = load_properties(session.storage)
    chosen = select_groups(
        step.groups,
        fresh.state,
        done=_find_earlier_clusterings(session, fresh),
        refusal=ground.merge_refusal,
        cut=find_cut_logs(session.storage, properties, fresh.state, step.groups),
        lost=explain_lost_files(session.storage, properties, fresh.state, step.groups),
    )
    if len(chosen.groups):
        decide_rewrite_sync(
            properties.metadata_partitions,
            table_version=properties.table_version,
            rows=0,
            inflight=properties.metadata_partitions_inflight,
        )
    layout = ClusteringLayout(columns=step.columns, curve=step.curve, mapping=step.mapping)
    if session.context.hudi is not None:
        check_layout(layout, ground)
    return _Decision(
        fresh=fresh,
        chosen=chosen,
        layout=layout,
        ground=ground,
        passes=build_pass_metadata(session.spec, fresh.state, chosen.groups),
    )


def _find_earlier_clusterings(session: ApplySession, fresh: FreshPlan) -> frozenset[str]:
    """The completed clusterings of this very plan."""
    evidence = fresh.state.clustering_facts
    past = evidence.clusterings if evidence else ()
    return frozenset(one.instant for one in past if one.extra.get(PLAN_DIGEST) == session.digest)


def _request(
    session: ApplySession, decision: _Decision, waits: ShouldWait
) -> ClusterWork | StepOutcome | None:
    """Announce what no other write has touched since the look; None when the world has moved.

    The table's lock is held.
    """
    before, chosen = decision.fresh.state.timeline, decision.chosen
    timeline, found = read_footprints(session, collect_completed_writes(before), None)
    if _has_vanished(before, timeline) or _has_schema_changed(session, before):
        return None
    claims = make_claims(chosen.groups, decision.fresh.state, session.spec)
    if waits(claims, found):
        return None
    chosen = drop_groups(chosen, find_conflicts(claims, found))
    if not len(chosen.groups):
        return _make_empty_outcome(chosen.left, chosen.gone)
    return _write_request(session, replace(decision, chosen=chosen), timeline)


def drop_groups(chosen: GroupSelection, hit: dict[int, str]) -> GroupSelection:
    """The groups without those that were hit, which are left with the reason."""
    groups = chosen.groups
    partitions, sizes = groups.partition.to_pylist(), np.diff(groups.starts).tolist()
    left = (
        LeftGroup(partition=partitions[n], slices=sizes[n], because=hit[n]) for n in sorted(hit)
    )
    rows = np.array([n for n in range(len(groups)) if n not in hit], np.int64)
    return replace(chosen, groups=take_groups(groups, rows), left=(*chosen.left, *left))


def _write_request(
    session: ApplySession, decision: _Decision, timeline: Timeline
) -> ClusterWork | None:
    """Write the requested file; None when its name was taken meanwhile (``lock: none``)."""
    state, chosen = decision.fresh.state, decision.chosen
    extra = {
        **make_own_metadata(
            plan_digest=session.digest,
            spec_digest=session.plan.spec_digest,
            owner=session.owner,
            origin=session.context.origin,
        ),
        **make_layout_extra(decision.layout),
        **decision.passes,
        **make_circumstances_extra(session),
        **make_executor_extra(session),
    }
    plan = make_requested_plan(chosen.groups, state, session.spec, decision.layout, extra)
    data = plan.encode(session.storage.location, version=state.table_version)
    session.lock.confirm()
    try:
        instant = session.publisher.request(
            get_clustering_action(state.table_version), timeline, data
        )
    except AlreadyExistsError:
        return None
    return ClusterWork(
        instant=instant,
        groups=chosen.groups,
        layout=decision.layout,
        ground=decision.ground,
        state=state,
        extra=extra,
        known=collect_completed_writes(state.timeline),
        attempt=session.owner.token,
        left=chosen.left,
        gone=chosen.gone,
    )


def begin_clustering(session: ApplySession, work: ClusterWork) -> None:
    """Write the inflight file of a requested clustering; BusyError where another writer has."""
    try:
        session.publisher.begin(work.instant, work.action, b"")
    except AlreadyExistsError:
        raise BusyError(
            f"another writer has begun to execute our clustering {work.instant}; plan again when "
            "it is done"
        ) from None


def _rewrite(session: ApplySession, work: ClusterWork) -> list[RewrittenGroup]:
    """Hand the groups to the workers and verify what they tell."""
    groups = make_groups(work.ground, work.groups, work.state)
    rewrite = make_rewrite(
        work.ground, session.spec, work.layout, instant=work.instant, attempt=work.attempt
    )
    rewriter = require_rewriter(session)
    with session.phase("rewrite", sum(group.bytes for group in groups)) as advance:
        results = rewriter.rewrite(session.storage.ref, rewrite, groups, progress=advance)
    return check_results(work, results)


def _has_vanished(before: Timeline, now: Timeline) -> bool:
    """Whether a write that was completed is not any more: undone, or archived."""
    return bool(collect_completed_writes(before) - collect_completed_writes(now))


def _has_schema_changed(session: ApplySession, before: Timeline) -> bool:
    """Whether columns were renamed or retyped since (InternalSchemaCache).

    Readers take the columns of a file for those of the last version before its instant.
    """
    try:
        versions = session.storage.list(SCHEMA_FOLDER)
    except NotFoundError:
        return False
    newest = before.newest_time or ""
    times = (entry.name.partition(".")[0] for entry in versions)
    return any(time.isdigit() and time > newest for time in times)


def _make_empty_outcome(left: tuple[LeftGroup, ...], gone: int) -> StepOutcome:
    return StepOutcome(kind="cluster", how="nothing", rewritten=Done(left=left, gone=gone))
