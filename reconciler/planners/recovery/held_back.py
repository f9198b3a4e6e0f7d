"""Measure what a pending instant holds back until it is gone: clusterings and cleans; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Codes, to_numpy
from reconciler.hudi.files.view import find_group_codes
from reconciler.hudi.timeline.instant import WRITES, Action
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import KEEP_RULES, KeptFiles
from reconciler.state.model import TableState

#: what else does not touch the file groups of a pending table service
_SERVICES: Final[Mapping[Action, str]] = {
    Action.COMPACTION: "clusterings and other compactions",
    Action.LOGCOMPACTION: "compactions and clusterings",
}
_OF_CLUSTERING: Final = "updates, compactions and clusterings"
_OF_WRITE: Final = "clusterings"
_KEEP_RULES: Final = frozenset(
    KEEP_RULES.index(rule) for rule in ("pendingCompaction", "pendingClustering", "pendingWrite")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """What a pending instant holds back.

    ``groups``: file groups that nothing clusters, in ``partitions``, with ``files`` in their newest
    slices; where a compaction is pending, in the slices that it reads. ``services``: what leaves
    them alone. ``kept``: files past retention that a clean keeps for it, in ``kept_partitions``.
    """

    services: str
    groups: int = 0
    files: int = 0
    partitions: int = 0
    kept: int = 0
    kept_partitions: int = 0

    @property
    def group_text(self) -> str:
        """The file groups that are left alone; empty if there are none.

        >>> HeldBack(services="clusterings", groups=2, files=3, partitions=1).group_text
        '2 file groups (3 files) in 1 partition'
        """
        if not self.groups:
            return ""
        groups, files = pluralize(self.groups, "file group"), pluralize(self.files, "file")
        return f"{groups} ({files}) in {pluralize(self.partitions, 'partition')}"

    @property
    def kept_text(self) -> str:
        """The files that a clean keeps; empty if there are none.

        >>> HeldBack(services="clusterings", kept=2, kept_partitions=1).kept_text
        '2 files in 1 partition'
        """
        if not self.kept:
            return ""
        files, partitions = pluralize(self.kept, "file"), self.kept_partitions
        return f"{files} in {pluralize(partitions, 'partition')}"

    @property
    def text(self) -> str:
        """Everything that is held back; empty if nothing is.

        >>> HeldBack(services="clusterings", kept=2, kept_partitions=1).text
        'keeps 2 files in 1 partition from cleans'
        """
        parts = [f"{self.group_text} from {self.services}"] if self.groups else []
        parts += [f"{self.kept_text} from cleans"] if self.kept else []
        return f"keeps {' and '.join(parts)}" if parts else ""


def measure_held_back(instant: str, state: TableState, kept: KeptFiles | None) -> HeldBack:
    """Return what a pending instant holds back. ``kept``: the files past retention that stay."""
    groups, services = _find_groups(instant, state)
    files, kept_partitions = _count_kept(instant, kept)
    view = state.view
    slices = np.flatnonzero(view.is_visible & (view.file_counts > 0) & view.is_live)
    newest = slices[np.append(np.diff(view.group[slices]) != 0, True)[: len(slices)]]
    held = newest[np.isin(view.group[newest], groups)]
    is_read = np.isin(view.group, groups) & view.is_current & ~view.is_phantom
    partitions = state.files.group_partition[view.group[held]]
    return HeldBack(
        services=services,
        groups=len(held),
        files=int(view.file_counts[is_read].sum()),
        partitions=len(np.unique(partitions)),
        kept=files,
        kept_partitions=kept_partitions,
    )


def describe_kept(instant: str, state: TableState, kept: KeptFiles | None) -> str:
    """Return what a clean keeps for a pending instant, after what else is said of it."""
    files = measure_held_back(instant, state, kept).kept_text
    return f" and holds back the removal of {files}" if files else ""


def _find_groups(instant: str, state: TableState) -> tuple[Codes, str]:
    """Return the file groups of a pending instant, and what leaves them alone."""
    files = state.files
    compacted = [one for one in state.compactions if one.instant == instant]
    if compacted:
        pairs = {(one.partition, one.file_id) for one in compacted}
        return _find_codes(pairs, state), _SERVICES[compacted[0].action]
    clustered = {
        (one.partition, one.file_id) for one in state.clusterings if one.instant == instant
    }
    if clustered:
        return _find_codes(clustered, state), _OF_CLUSTERING
    is_write = any(one.requested == instant for one in state.timeline.pending(WRITES))
    if not is_write or instant not in files.instants:
        return np.zeros(0, np.int32), _OF_WRITE
    rows = files.instant == files.instants.index(instant)
    return np.unique(files.group[rows]), _OF_WRITE


def _find_codes(pairs: Collection[tuple[str, str]], state: TableState) -> Codes:
    codes = find_group_codes(state.files, sorted(pairs))
    return codes[codes >= 0]


def _count_kept(instant: str, kept: KeptFiles | None) -> tuple[int, int]:
    """Return the number of files that a clean keeps for an instant, and of their partitions."""
    if kept is None or not len(kept):
        return 0, 0
    is_held = np.isin(kept.rule, sorted(_KEEP_RULES))
    is_named = to_numpy(pc.match_substring(kept.because.dictionary, f" {instant} "))
    is_held &= is_named[to_numpy(kept.because.indices)]
    return int(is_held.sum()), len(set(to_numpy(kept.partition.indices)[is_held].tolist()))
