"""Find pending work that may rely on the indexes of the metadata table as they are; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reconciler.hudi.timeline.instant import WRITES, Action, Instant, State

if TYPE_CHECKING:
    from reconciler.hudi.timeline.active import Timeline

#: plans that may wait forever; whoever executes one reads the table's properties first
_WAITING: Final = frozenset(
    {Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING, Action.CLEAN, Action.ROLLBACK}
)
_INDEX_CHANGING: Final = WRITES | {Action.INDEXING, Action.ROLLBACK, Action.RESTORE}


def find_busy_instant(timeline: Timeline) -> Instant | None:
    """Return a pending instant whose owner may rely on the current indexes, or None.

    Plans that nobody has started do not count.
    """
    for instant in timeline.instants:
        is_waiting = instant.state is State.REQUESTED and instant.action in _WAITING
        if not instant.is_completed and instant.action in _INDEX_CHANGING and not is_waiting:
            return instant
    return None
