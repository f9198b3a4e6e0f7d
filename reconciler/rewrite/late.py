"""A rewriter whose code is imported when something is rewritten: a clean has no use for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.rewrite.model import (
        CompactedSlice,
        RewriteGroup,
        RewriteJob,
        Rewriter,
        RewrittenGroup,
        SliceToCompact,
    )
    from reconciler.storage.api import Advance, StorageRef


@dataclass(frozen=True, slots=True)
class LateRewriter:
    """Passes every call on to a rewriter that ``make`` returns."""

    make: Callable[[], Rewriter]

    def rewrite(
        self, ref: StorageRef, job: RewriteJob, groups: Sequence[RewriteGroup], *, progress: Advance
    ) -> list[RewrittenGroup]:
        return self.make().rewrite(ref, job, groups, progress=progress)

    def compact(
        self,
        ref: StorageRef,
        job: RewriteJob,
        slices: Sequence[SliceToCompact],
        *,
        progress: Advance,
    ) -> list[CompactedSlice]:
        return self.make().compact(ref, job, slices, progress=progress)
