"""Running a reviewed clustering: choose, announce, rewrite, publish what nobody has touched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from reconciler.apply.checks import Look, RefusedError
from reconciler.apply.cluster_publish import abandon, new_files, publish, tidied
from reconciler.apply.cluster_work import (
    ClusterWork,
    action_of,
    check_results,
    circumstances_extra,
    claims_of,
    layout_extra,
    requested_plan,
)
from reconciler.apply.cut_logs import cut_logs
from reconciler.apply.damage import damaged_input
from reconciler.apply.delegate_cluster import carry_out_by_hudi, check_layout, told_of_hudi
from reconciler.apply.execute import with_heartbeat
from reconciler.apply.lost_files import lost_files
from reconciler.apply.measure import measure, new_files_of
from reconciler.apply.patience import Waits, patiently
from reconciler.apply.payloads import own_metadata
from reconciler.apply.regroup import Regrouped, regroup, take_groups
from reconciler.apply.result import LeftGroup, StepOutcome
from reconciler.apply.result import Rewritten as Done
from reconciler.apply.rewriting import groups_of, rewrite_of
from reconciler.apply.table import Table
from reconciler.errors import (
    AlreadyExistsError,
    BusyError,
    NotFoundError,
    ReconcilerError,
    UnsupportedError,
)
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata_partitions import rewrite_verdicts
from reconciler.hudi.timeline import Timeline
from reconciler.plan.model import ClusterStep, Note
from reconciler.planners.passes import passes_extra
from reconciler.planners.phrases import plural
from reconciler.rewrite.ground import Ground, ground_of
from reconciler.rewrite.model import Rewriter, Rewritten
from reconciler.state.layout import Layout
from reconciler.state.model import PLAN_DIGEST
from reconciler.state.renames import FOLDER
from reconciler.transaction.conflicts import conflicts
from reconciler.transaction.footprints import footprints, foreign_pending, known_writes
from reconciler.transaction.lock import NoLock
from reconciler.transaction.metadata_rewrite import missing

#: how often a timeline may change under our eyes before we let its writers be
_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """What runs now, and the state it follows from. ``passes``: what the instant says of them."""

    look: Look
    chosen: Regrouped
    layout: Layout
    ground: Ground
    passes: Mapping[str, str]


def run_cluster(table: Table, step: ClusterStep, look: Look | None) -> StepOutcome:
    """Rewrite reviewed ∩ fresh, group by group, and report the rest.

    ``look`` is one just taken, if there is one. Raises RefusedError, BusyError, UnsupportedError
    before anything is written; what goes wrong later is undone before it is raised.
    """
    if table.tools.hudi is None:
        needed_rewriter(table)
    for _attempt in range(_ATTEMPTS):
        if look is None:
            with table.phase("observe"):
                look = table.look()
        refuse_unlocked(table, look)
        decision = _decide(table, step, look)
        look = None
        if not len(decision.chosen.groups):
            return _nothing(decision.chosen.left, decision.chosen.gone)
        with table.phase("request"):
            work = patiently(table, partial(_request, table, decision))
        if isinstance(work, StepOutcome):
            return work
        if work is not None:
            outcome = with_heartbeat(table, work.instant, _carrying(table, work))
            return replace(outcome, kind="cluster")
    raise BusyError(
        f"{table.plan.name}: its timeline changed {_ATTEMPTS} times while a clustering was being "
        "prepared; run apply again when its writers are quieter"
    )


def _carrying(table: Table, work: ClusterWork) -> Callable[[], StepOutcome]:
    """What executes a clustering just requested: we, or the Hudi that was asked for."""
    if (hudi := table.tools.hudi) is not None:
        return partial(carry_out_by_hudi, table, hudi, work)
    return partial(carry_out, table, work, partial(start, table, work))


def carry_out(table: Table, work: ClusterWork, begin: Callable[[], None]) -> StepOutcome:
    """Inflight to completed; whatever goes wrong takes everything back, as far as it can.

    Once that is done a damaged file among those to be read is a failed step: it says nothing of
    other steps, which go on. All else is raised.
    """
    begin()
    is_rewritten = False
    try:
        results = _rewrite(table, work)
        is_rewritten = True
        work = replace(work, measure=measure(table, work, new_files_of(work, results)))
        with table.phase("complete"):
            outcome = patiently(table, partial(publish, table, work, results))
    except (Exception, KeyboardInterrupt) as error:
        with contextlib.suppress(ReconcilerError):  # else it stays pending, for the next apply
            abandon(table, work)
            if (
                not is_rewritten
                and (damage := damaged_input(work, error))
                and _is_gone(table, work)
            ):
                return _failed(work, damage)
        raise
    assert outcome is not None, "it waits no longer"
    if outcome.how == "undone":
        return outcome
    with table.phase("check"):
        return tidied(table, work, checked(table, work, results, outcome))


def _is_gone(table: Table, work: ClusterWork) -> bool:
    """Whether nothing of a clustering is on the timeline."""
    return all(file.instant.requested != work.instant for file in table.reread().files)


def _failed(work: ClusterWork, damage: str) -> StepOutcome:
    """A clustering that cannot be: all of its groups stay, and other steps need not wait for it."""
    partitions, sizes = work.groups.partition.to_pylist(), np.diff(work.groups.starts).tolist()
    left = (
        LeftGroup(partition=partition, slices=size, because=damage)
        for partition, size in zip(partitions, sizes, strict=True)
    )
    done = Done(left=(*work.left, *left), gone=work.gone)
    return StepOutcome(kind="cluster", how="failed", rewritten=done)


def checked(
    table: Table, work: ClusterWork, results: list[Rewritten], outcome: StepOutcome
) -> StepOutcome:
    """Compare what the metadata table lists with the new files, as far as it can be read."""
    if outcome.how != "completed":
        return outcome
    try:
        timeline = table.reread()
        added = new_files(table, work, results)
        found = missing(table.storage, load_properties(table.storage), timeline, added)
    except ReconcilerError as error:  # it is completed all the same
        said = f"the clustering is completed; its metadata table could not be compared: {error}"
        return replace(outcome, warnings=(*outcome.warnings, Note("metadataListing", said)))
    notes = tuple(
        Note(
            "metadataListing",
            f"the metadata table and the disk differ in {plural(len(names), 'file')} of partition "
            f"{path!r}, for example {', '.join(names[:5])}",
        )
        for path, names in sorted(found.items())
    )
    return replace(outcome, differences=notes)


def refuse_unlocked(table: Table, look: Look, own: str | None = None) -> None:
    """Without a lock nobody waits for us, so nobody else may be writing."""
    pending = foreign_pending(look.state.timeline, own)
    if isinstance(table.lock, NoLock) and pending:
        first = pending[0]
        note = Note(
            "lock",
            f"{first.action} {first.requested} is pending, and without a lock it could write to "
            "what is being rewritten; configure concurrency.lock or wait",
        )
        raise RefusedError((note,))


def needed_rewriter(table: Table) -> Rewriter:
    """What rewrites files; raises UnsupportedError where there is nothing that does."""
    rewriter = table.tools.rewriter
    if rewriter is None:
        raise UnsupportedError(
            f"{table.plan.name}: there is nothing here that rewrites files; run `reconciler apply` "
            "with PySpark installed"
        )
    return rewriter


def _decide(table: Table, step: ClusterStep, look: Look) -> _Decision:
    ground = ground_of(table.storage, look.state)
    properties = load_properties(table.storage)
    chosen = regroup(
        step.groups,
        look.state,
        done=_done_before(table, look),
        refusal=ground.refusal,
        cut=cut_logs(table.storage, properties, look.state, step.groups),
        lost=lost_files(table.storage, properties, look.state, step.groups),
    )
    if len(chosen.groups):
        rewrite_verdicts(
            properties.metadata_partitions,
            table_version=properties.table_version,
            rows=0,
            inflight=properties.metadata_partitions_inflight,
        )
    layout = Layout(columns=step.columns, curve=step.curve, mapping=step.mapping)
    if table.tools.hudi is not None:
        check_layout(layout, ground)
    return _Decision(
        look=look,
        chosen=chosen,
        layout=layout,
        ground=ground,
        passes=passes_extra(table.spec, look.state, chosen.groups),
    )


def _done_before(table: Table, look: Look) -> frozenset[str]:
    """The completed clusterings of this very plan."""
    evidence = look.state.evidence
    past = evidence.clusterings if evidence else ()
    return frozenset(one.instant for one in past if one.extra.get(PLAN_DIGEST) == table.digest)


def _request(table: Table, decision: _Decision, waits: Waits) -> ClusterWork | StepOutcome | None:
    """Announce what no other write has touched since the look; None when the world has moved.

    The table's lock is held.
    """
    before, chosen = decision.look.state.timeline, decision.chosen
    timeline, found = footprints(table, known_writes(before), None)
    if _has_vanished(before, timeline) or _is_altered(table, before):
        return None
    claims = claims_of(chosen.groups, decision.look.state, table.spec)
    if waits(claims, found):
        return None
    chosen = without(chosen, conflicts(claims, found))
    if not len(chosen.groups):
        return _nothing(chosen.left, chosen.gone)
    return _announce(table, replace(decision, chosen=chosen), timeline)


def without(chosen: Regrouped, hit: dict[int, str]) -> Regrouped:
    """The groups without those that were hit, which are left with the reason."""
    groups = chosen.groups
    partitions, sizes = groups.partition.to_pylist(), np.diff(groups.starts).tolist()
    left = (
        LeftGroup(partition=partitions[n], slices=sizes[n], because=hit[n]) for n in sorted(hit)
    )
    rows = np.array([n for n in range(len(groups)) if n not in hit], np.int64)
    return replace(chosen, groups=take_groups(groups, rows), left=(*chosen.left, *left))


def _announce(table: Table, decision: _Decision, timeline: Timeline) -> ClusterWork | None:
    """Write the requested file; None when its name was taken meanwhile (``lock: none``)."""
    state, chosen = decision.look.state, decision.chosen
    extra = {
        **own_metadata(
            plan_digest=table.digest,
            spec_digest=table.plan.spec_digest,
            owner=table.owner,
            origin=table.tools.origin,
        ),
        **layout_extra(decision.layout),
        **decision.passes,
        **circumstances_extra(table),
        **told_of_hudi(table),
    }
    plan = requested_plan(chosen.groups, state, table.spec, decision.layout, extra)
    data = plan.encode(table.storage.location, version=state.table_version)
    table.lock.confirm()
    try:
        instant = table.publisher.request(action_of(state.table_version), timeline, data)
    except AlreadyExistsError:
        return None
    return ClusterWork(
        instant=instant,
        groups=chosen.groups,
        layout=decision.layout,
        ground=decision.ground,
        state=state,
        extra=extra,
        known=known_writes(state.timeline),
        attempt=table.owner.token,
        left=chosen.left,
        gone=chosen.gone,
    )


def start(table: Table, work: ClusterWork) -> None:
    """Write the inflight file of a requested clustering; BusyError where another writer has."""
    try:
        table.publisher.start(work.instant, work.action, b"")
    except AlreadyExistsError:
        raise BusyError(
            f"another writer has begun to execute our clustering {work.instant}; plan again when "
            "it is done"
        ) from None


def _rewrite(table: Table, work: ClusterWork) -> list[Rewritten]:
    """Hand the groups to the workers and verify what they tell."""
    groups = groups_of(work.ground, work.groups, work.state)
    rewrite = rewrite_of(
        work.ground, table.spec, work.layout, instant=work.instant, attempt=work.attempt
    )
    rewriter = needed_rewriter(table)
    with table.phase("rewrite", sum(group.bytes for group in groups)) as advance:
        results = rewriter.rewrite(table.storage.ref, rewrite, groups, progress=advance)
    return check_results(work, results)


def _has_vanished(before: Timeline, now: Timeline) -> bool:
    """Whether a write that was completed is not any more: undone, or archived."""
    return bool(known_writes(before) - known_writes(now))


def _is_altered(table: Table, before: Timeline) -> bool:
    """Whether columns were renamed or retyped since (InternalSchemaCache).

    Readers take the columns of a file for those of the last version before its instant.
    """
    try:
        versions = table.storage.list(FOLDER)
    except NotFoundError:
        return False
    newest = before.newest_time or ""
    times = (entry.name.partition(".")[0] for entry in versions)
    return any(time.isdigit() and time > newest for time in times)


def _nothing(left: tuple[LeftGroup, ...], gone: int) -> StepOutcome:
    return StepOutcome(kind="cluster", how="nothing", rewritten=Done(left=left, gone=gone))
