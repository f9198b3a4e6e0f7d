"""A compaction on the timeline that is not completed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.hudi.timeline.instant import Action, State
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.plans import CompactionOperation


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCompaction:
    """A requested or inflight compaction or log compaction.

    ``started_ms`` is as in ``PendingClean``. ``owner``: the run of reconciler that works on it, or
    did, by its heartbeat; None if there is none, or nobody asked. ``is_running``: whether that
    process runs; None if unknown.
    """

    instant: str
    action: Action
    state: str
    started_ms: int
    operations: tuple[CompactionOperation, ...]
    extra: Mapping[str, str] = field(default_factory=dict)
    owner: Owner | None = None
    is_running: bool | None = None

    @property
    def is_begun_here(self) -> bool:
        """Return whether an apply has begun it, and no other writer: that has an inflight file."""
        return self.owner is not None and self.state == State.REQUESTED
