"""Count the deltacommits since the newest compaction, as Hudi's NUM_COMMITS does; pure."""

from __future__ import annotations

from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.reasons import pluralize
from reconciler.spec.compaction import Compaction
from reconciler.state.model import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Deltacommits:
    """``count``: those completed since ``compaction``, the newest completed one, None without."""

    count: int
    compaction: str | None

    def __str__(self) -> str:
        counted = pluralize(self.count, "deltacommit") if self.count else "no deltacommits"
        return counted + (f" since compaction {self.compaction}" if self.compaction else "")

    def explain_wait(self, compaction: Compaction) -> str | None:
        """Return why no compaction is due yet; None if enough deltacommits were made."""
        if self.count >= compaction.after_delta_commits:
            return None
        return f"{self} (compaction.afterDeltaCommits: {compaction.after_delta_commits})"


def count_deltacommits(state: TableState) -> Deltacommits:
    """Count the completed deltacommits since the newest completed compaction.

    From version 8 on those count that completed after the compaction was requested; their rows are
    in later slices. Source: CompactionUtils.getDeltaCommitsSinceLatestCompaction, 0.15 and 1.2.
    """
    compactions = state.timeline.completed({Action.COMMIT})
    deltacommits = state.timeline.completed({Action.DELTACOMMIT})
    newest = max((one.requested for one in compactions), default=None)
    if newest is None:
        return Deltacommits(count=len(deltacommits), compaction=None)
    count = sum((one.completed or one.requested) > newest for one in deltacommits)
    return Deltacommits(count=count, compaction=newest)
