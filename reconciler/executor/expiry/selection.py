"""Choose the reviewed partitions that may still be deleted; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reconciler.arrays import Integers
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.outcomes import LeftPartition
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes, measure_groups
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.expiry.partition_figures import (
    PartitionFigures,
    find_held_partitions,
    measure_partitions,
)
from reconciler.plans.partition_deletion import (
    DeletePartitionStep,
    ExpiredPartition,
    deleted_partitions,
)
from reconciler.state.model import TableState
from reconciler.transaction.conflicts import Footprint, GroupClaim

_WRITTEN = "it was written after the review: plan again"
_KEPT_NOW = "a plan made now keeps it: plan again"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionSelection:
    """The partitions of a reviewed step that may be deleted.

    ``groups``: all file groups of the table. ``left``: reviewed partitions that stay. ``gone``:
    number of reviewed partitions that no reader sees any more.
    """

    partitions: tuple[ExpiredPartition, ...]
    groups: FileGroupSizes
    left: tuple[LeftPartition, ...] = ()
    gone: int = 0

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(partition.path for partition in self.partitions)

    @property
    def replaced(self) -> Integers:
        """The live file groups of the partitions, as numbers of ``groups``."""
        groups, paths = self.groups, self.paths
        codes = [code for code, path in enumerate(groups.partitions) if path in paths]
        replaced: Integers = np.flatnonzero(groups.is_live & np.isin(groups.partition, codes))
        return replaced

    @property
    def claims(self) -> list[GroupClaim]:
        """The file groups as claims, for which conflicts are looked for."""
        ids = self.groups.list_file_ids(self.replaced)
        return [GroupClaim(partition=path, ids=frozenset(ids[path]), is_open=True) for path in ids]

    def drop(self, reasons: Mapping[str, str]) -> PartitionSelection:
        """Return the selection without some partitions, each of which has a reason to stay."""
        left = (
            LeftPartition(path=partition.path, because=reasons[partition.path])
            for partition in self.partitions
            if partition.path in reasons
        )
        rest = tuple(part for part in self.partitions if part.path not in reasons)
        return replace(self, partitions=rest, left=(*self.left, *left))


def select_partitions(step: DeletePartitionStep, fresh: FreshPlan) -> PartitionSelection:
    """Return the reviewed partitions that are in the fresh plan too and are as they were reviewed.

    One that was written since the review stays, whatever its age.
    """
    state = fresh.state
    now = {partition.path: partition for partition in deleted_partitions(fresh.plan.steps)}
    figures = measure_partitions(state)
    places = {path: place for place, path in enumerate(figures.paths)}
    held = find_held_partitions(state)
    chosen: list[ExpiredPartition] = []
    left: list[LeftPartition] = []
    for reviewed in step.partitions:
        if (place := places.get(reviewed.path)) is None:
            continue
        if not _is_as_reviewed(reviewed, figures, place, state):
            left.append(LeftPartition(path=reviewed.path, because=_WRITTEN))
        elif reviewed.path not in now:
            because = held.get(reviewed.path, _KEPT_NOW)
            left.append(LeftPartition(path=reviewed.path, because=because))
        else:
            chosen.append(reviewed)
    return PartitionSelection(
        partitions=tuple(chosen),
        groups=measure_groups(state.view),
        left=tuple(left),
        gone=sum(partition.path not in places for partition in step.partitions),
    )


def find_written_partitions(paths: Iterable[str], writes: Sequence[Footprint]) -> dict[str, str]:
    """Return the partitions that other writes have written or may write to, with the reason.

    A completed write is one since the selection.
    """
    reasons: dict[str, str] = {}
    for path in sorted(paths):
        found = (_explain_conflict(path, write) for write in writes)
        if (reason := next(filter(None, found), None)) is not None:
            reasons[path] = reason
    return reasons


def _is_as_reviewed(
    reviewed: ExpiredPartition, figures: PartitionFigures, place: int, state: TableState
) -> bool:
    """Return whether a partition has had no write since the review.

    In version 6 the newest write of log files may be unknown; then it is the timeline's start.
    """
    newest, known = figures.last_commit[place], {reviewed.last_commit}
    if state.is_merge_on_read and state.table_version < LOGS_BY_COMPLETION:
        known.add(state.timeline.start or "")
    size = (int(figures.files[place]), int(figures.bytes[place]))
    return newest in known and size == (reviewed.files, reviewed.bytes)


def _explain_conflict(path: str, write: Footprint) -> str | None:
    if not write.is_known and write.is_completed:
        return f"{write} has changed the table meanwhile, nobody knows where"
    if not write.is_known:
        return f"{write} is pending, and which partitions it writes to is not known"
    if path not in write.groups and path not in write.inserts:
        return None
    does = "has written to it meanwhile" if write.is_completed else "is pending and writes to it"
    return f"{write} {does}"
