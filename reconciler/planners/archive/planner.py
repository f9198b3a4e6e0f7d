"""Plan the archival of a table's timeline and of its metadata table's own; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import COMMITS, Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.archive.bounds import find_bounds, find_metadata_bounds, raise_limits
from reconciler.planners.archive.leftovers import find_leftovers
from reconciler.planners.archive.selection import (
    ArchiveSelection,
    CommitLimits,
    list_commits,
    select_instants,
)
from reconciler.planners.reasons import pluralize
from reconciler.plans.archive_step import ArchiveBound, ArchivedInstant, ArchiveStep
from reconciler.plans.model import (
    Finding,
    Note,
)
from reconciler.spec.active_timeline import ActiveTimeline
from reconciler.spec.model import Policy, Retention
from reconciler.state.archival_facts import ArchivalFacts
from reconciler.state.model import TableState

#: commits that the metadata table's cleans retain at least, and its share of the table's
_METADATA_COMMITS: Final = 20
_METADATA_SHARE: Final = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveDecision:
    """``step``: None if nothing is to be done; ``finding``: what differs from the spec.

    ``commits``: completed commits on the active timeline. ``bound``: what keeps more of them there
    than declared, or None.
    """

    commits: int
    bound: ArchiveBound | None = None
    step: ArchiveStep | None = None
    finding: Finding | None = None
    warnings: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveChoice:
    """What is archived of the table's timeline, and of the metadata table's own if it is live."""

    table: ArchiveSelection
    limits: CommitLimits
    metadata: ArchiveSelection | None


def plan_archival(
    declared: ActiveTimeline,
    retention: Retention | None,
    state: TableState,
    cleans: Iterable[str] = (),
) -> ArchiveDecision:
    """Return the step that brings the timeline to its declared length, and what prevents it.

    ``cleans``: the earliest instants to retain of the cleans that the plan has before it.
    """
    facts = state.archival
    assert facts is not None, "a spec with a timeline block has facts"
    savepoints = [one.instant for one in state.savepoints]
    choice = choose_instants(declared, retention, state.timeline, state, savepoints, cleans)
    chosen = choice.table
    commits = {one.requested for one in chosen.instants if one.action in COMMITS}
    leftovers = find_leftovers(state.timeline, facts, commits, state.observed_ms)
    held = _describe_bound(chosen)
    step = ArchiveStep(
        keep=declared.keep,
        commits=chosen.active,
        instants=_list_instants(chosen),
        metadata_table=_list_instants(choice.metadata) if choice.metadata else (),
        leftovers=leftovers,
        bound=held,
        because="",
    )
    is_empty = not (step.instants or step.metadata_table or leftovers)
    return ArchiveDecision(
        commits=chosen.active,
        bound=held,
        step=None if is_empty else replace(step, because=_explain(step, choice, facts)),
        finding=_find_difference(declared, chosen, len(commits)),
        warnings=_warn_of_bound(declared, held),
    )


def choose_instants(
    declared: ActiveTimeline,
    retention: Retention | None,
    timeline: Timeline,
    state: TableState,
    savepoints: Iterable[str] | None = None,
    cleans: Iterable[str] = (),
) -> ArchiveChoice:
    """Return the instants to archive from a timeline, and from the metadata table's after that.

    ``timeline``: the table's as it is now. ``state``: facts from before that only grow weaker:
    later cleans, compactions and removals of files would allow more. ``savepoints`` and ``cleans``:
    as in ``find_bounds``.
    """
    facts = state.archival
    assert facts is not None, "a spec with a timeline block has facts"
    layout, is_merge_on_read = state.layout, state.is_merge_on_read
    declared_limits = CommitLimits(least=declared.least, most=declared.most)
    commits = list_commits(timeline, is_merge_on_read=is_merge_on_read)
    limits = raise_limits(declared_limits, retention, commits)
    chosen = select_instants(
        timeline,
        limits,
        find_bounds(
            timeline,
            facts,
            layout=layout,
            is_merge_on_read=is_merge_on_read,
            savepoints=savepoints,
            cleans=cleans,
        ),
        layout=layout,
        is_merge_on_read=is_merge_on_read,
        archived=facts.archived,
    )
    metadata = None
    if facts.metadata is not None:
        left = remove_instants(timeline, chosen.instants)
        metadata = choose_metadata_instants(declared, retention, facts, left, layout=layout)
    return ArchiveChoice(table=chosen, limits=limits, metadata=metadata)


def choose_metadata_instants(
    declared: ActiveTimeline,
    retention: Retention | None,
    facts: ArchivalFacts,
    data: Timeline,
    *,
    layout: int,
) -> ArchiveSelection:
    """Return the instants to archive from the metadata table's timeline.

    Hudi keeps one commit more on it than on the table's. ``data``: the table's timeline once its
    own instants are archived.
    """
    assert facts.metadata is not None, "the metadata table is live"
    timeline = facts.metadata.timeline
    limits = CommitLimits(least=declared.least + 1, most=declared.most + 1)
    commits = list_commits(timeline, is_merge_on_read=True)
    return select_instants(
        timeline,
        raise_limits(limits, _scale_retention(retention), commits),
        find_metadata_bounds(timeline, data, layout=layout),
        layout=layout,
        is_merge_on_read=True,
        archived=facts.metadata.archived,
    )


def _scale_retention(retention: Retention | None) -> Retention:
    """Return what cleans of the metadata table retain, as Hudi derives it up to 1.1."""
    if retention is None:
        return Retention(policy=Policy.COMMITS, keep=_METADATA_COMMITS)
    keep = int(-(-retention.keep * _METADATA_SHARE // 1))
    least = _METADATA_COMMITS if retention.policy is Policy.COMMITS else 1
    return replace(retention, keep=max(least, keep))


def remove_instants(timeline: Timeline, instants: Iterable[Instant]) -> Timeline:
    """Return the timeline without these instants."""
    gone = {(one.requested, one.action) for one in instants}
    return Timeline.from_files(
        file
        for file in timeline.files
        if (file.instant.requested, file.instant.action.completes_as) not in gone
    )


def _list_instants(chosen: ArchiveSelection) -> tuple[ArchivedInstant, ...]:
    return tuple(ArchivedInstant(one.requested, one.action.value) for one in chosen.instants)


def _describe_bound(chosen: ArchiveSelection) -> ArchiveBound | None:
    if chosen.bound is None:
        return None
    return ArchiveBound(
        rule=chosen.bound.rule,
        instant=chosen.bound.instant,
        commits=chosen.held,
        because=chosen.bound.because,
    )


def _explain(step: ArchiveStep, choice: ArchiveChoice, facts: ArchivalFacts) -> str:
    """Return in one sentence why something is archived or removed."""
    reasons = []
    if step.instants:
        active, most = step.commits, choice.limits.most
        if active > most:
            reasons.append(f"{pluralize(active, 'commit')} are active, and at most {most} may be")
        elif facts.archived:
            reasons.append("a run stopped before it removed instants that it had archived")
        else:
            reasons.append("cleans or rollbacks are more than may be active")
    if step.metadata_table and not step.instants:
        reasons.append("the timeline of the metadata table is longer than declared")
    if step.leftovers:
        left = pluralize(len(step.leftovers), "leftover")
        reasons.append(f"stopped runs have left {left} in .hoodie")
    return "; ".join(reasons)


def _find_difference(
    declared: ActiveTimeline, chosen: ArchiveSelection, commits: int
) -> Finding | None:
    if not commits:
        return None
    return Finding(
        field="timeline.keep",
        desired=declared.keep,
        actual=chosen.active,
        because=f"{pluralize(chosen.active, 'commit')} are active",
    )


def _warn_of_bound(declared: ActiveTimeline, held: ArchiveBound | None) -> tuple[Note, ...]:
    if held is None:
        return ()
    verb = "stays" if held.commits == 1 else "stay"
    because = (
        f"{pluralize(held.commits, 'commit')} more than timeline.keep, {declared.keep}, {verb} "
        f"active: {held.because}"
    )
    return (Note("timeline", because),)
