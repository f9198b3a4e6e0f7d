"""A compaction on the timeline that is not completed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from reconciler.hudi.timeline.instant import Action, State
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.plans import CompactionOperation
from reconciler.lazy_dataclass import dataclass
from reconciler.state.extra_metadata import PLAN_DIGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCompaction:
    """A requested or inflight compaction or log compaction.

    ``started_ms`` is as in ``PendingClean``. ``owner``: the run of reconciler that works on it, or
    did, by its heartbeat; None if there is none, or nobody asked. ``is_running``: whether that
    process runs; None if unknown. ``extra``: extra metadata of its plan.
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
    def is_ours(self) -> bool:
        """Return whether an apply has planned it."""
        return PLAN_DIGEST in self.extra

    @property
    def is_begun_here(self) -> bool:
        """Return whether an apply has begun it, and no other writer: that has an inflight file.

        One that an apply has planned is begun even if the run died before its first heartbeat.
        """
        return (self.owner is not None or self.is_ours) and self.state == State.REQUESTED
