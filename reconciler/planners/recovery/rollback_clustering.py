"""Plan the rollback of other writers' pending clusterings that nobody finishes; pure.

Hudi's upserts fail while a clustering of their file groups is pending, and nothing else compacts or
clusters these. ``concurrency.pending`` says whether such a plan goes, and after which time.
Source: BaseHoodieTableServiceClient.purgePendingClustering.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler import units
from reconciler.planners.reasons import pluralize
from reconciler.planners.recovery.failed_files import (
    find_clustering_rollbacks,
    finishes_clusterings,
    format_ms,
    has_no_lock,
    list_failed_files,
    rolls_back_clusterings,
)
from reconciler.planners.recovery.held_back import describe_kept, measure_held_back
from reconciler.planners.recovery.rollback_failed_write import finish_rollback
from reconciler.plans.model import KeptFiles, Note, RollbackStep
from reconciler.spec.model import Concurrency, PendingServices, TableSpec
from reconciler.state.model import ForeignWrite, TableState, is_abandoned

_RULE = "pendingClustering"


def plan_clustering_rollbacks(spec: TableSpec, state: TableState) -> tuple[RollbackStep, ...]:
    """Return a step for every clustering that nobody finishes, the newest first.

    Where the spec has them finished, only rollbacks of those that are off the timeline already.
    """
    goes = rolls_back_clusterings(spec)
    if not (goes or finishes_clusterings(spec)) or has_no_lock(spec):
        return ()
    limits = spec.concurrency or Concurrency()
    pending = find_clustering_rollbacks(spec, state)
    stays = () if goes else {clustering.instant for clustering in state.pending_clusterings}
    steps = [
        finish_rollback(rollback, state)
        for rollback in pending
        if rollback.is_dead(state.observed_ms, limits)
        and (rollback.plan is None or rollback.plan.target not in stays)
    ]
    targets = {rollback.plan.target for rollback in pending if rollback.plan is not None}
    steps += [
        _roll_back(clustering, spec, state)
        for clustering in find_abandoned(spec, state)
        if goes and clustering.instant not in targets
    ]
    return tuple(sorted(steps, key=lambda step: step.instant, reverse=True))


def warn_of_abandoned_clusterings(
    spec: TableSpec, state: TableState, kept: KeptFiles | None = None
) -> tuple[Note, ...]:
    """Return a warning for each clustering that nobody finishes and that stays.

    Also for one that holds back a clean until it goes. ``kept``: the files past retention that
    stay.
    """
    stays = "concurrency.pending.clustering: report leaves it"
    if rolls_back_clusterings(spec) or finishes_clusterings(spec):
        if not has_no_lock(spec):
            return _warn_of_held_cleans(spec, state, kept)
        stays = "without a lock it cannot be known to be left behind; configure concurrency.lock"
    return tuple(
        Note(
            _RULE,
            f"{describe_clustering(clustering, spec, state)}"
            f"{describe_kept(clustering.instant, state, kept)}; {stays}",
        )
        for clustering in find_abandoned(spec, state)
    )


def _warn_of_held_cleans(
    spec: TableSpec, state: TableState, kept: KeptFiles | None
) -> tuple[Note, ...]:
    """Return a warning for each clustering that keeps files from a clean until it is gone."""
    end = "finished" if finishes_clusterings(spec) else "rolled back"
    held = [
        (clustering.instant, describe_kept(clustering.instant, state, kept))
        for clustering in find_abandoned(spec, state)
    ]
    return tuple(
        Note(
            _RULE,
            f"clustering {instant} of another writer{text.replace(' and', '', 1)} until it is "
            f"{end}",
        )
        for instant, text in held
        if text
    )


def list_abandoned(spec: TableSpec, state: TableState) -> frozenset[str]:
    """Return the clusterings that nobody finishes and that have a step or a warning here."""
    return frozenset(clustering.instant for clustering in find_abandoned(spec, state))


def find_abandoned(spec: TableSpec, state: TableState) -> Iterator[ForeignWrite]:
    """Yield the clusterings of other writers that nobody finishes."""
    services = _get_services(spec)
    for clustering in state.foreign_clusterings:
        if is_abandoned(clustering, state.observed_ms, services):
            yield clustering


def _get_services(spec: TableSpec) -> PendingServices:
    return (spec.concurrency or Concurrency()).pending or PendingServices()


def _roll_back(clustering: ForeignWrite, spec: TableSpec, state: TableState) -> RollbackStep:
    files = list_failed_files(clustering.instant, state)
    deletes = (
        f" and deletes {pluralize(len(files), 'file')} that no reader has seen" if files else ""
    )
    return RollbackStep(
        instant=clustering.instant,
        action=clustering.action.value,
        files=files,
        writer="foreign",
        because=f"{describe_clustering(clustering, spec, state)}; apply rolls it back{deletes}",
    )


def describe_clustering(clustering: ForeignWrite, spec: TableSpec, state: TableState) -> str:
    """Return who left a clustering, since when, and what it holds back."""
    slices = [one for one in state.clusterings if one.instant == clustering.instant]
    groups = pluralize(len({(one.partition, one.file_id) for one in slices}), "file group")
    files = measure_held_back(clustering.instant, state, None).files
    groups += f" ({pluralize(files, 'file')})" if files else ""
    partitions = pluralize(len({one.partition for one in slices}), "partition")
    after = units.format_duration(_get_services(spec).after)
    what = f"clustering {clustering.instant} of another writer was left {clustering.state.lower()}"
    since = (
        f"nothing of it changed since {format_ms(clustering.active_ms)}, longer than "
        f"concurrency.pending.after, {after}"
    )
    if clustering.owner is not None and clustering.beat_ms is not None:
        since = (
            f"an apply by {clustering.owner} began to finish it, and was last heard of at "
            f"{format_ms(clustering.beat_ms)}"
        )
    return (
        f"{what}: {since}; it keeps {groups} of {partitions} from updates, "
        "compactions and clusterings"
    )
