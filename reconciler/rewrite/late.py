"""A rewriter whose code is imported when something is rewritten: a clean has no use for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from reconciler.rewrite.model import CompactedSlice, Rewriter, RewrittenGroup


@dataclass(frozen=True, slots=True)
class LateRewriter:
    """Passes every call on to a rewriter that ``make`` returns."""

    make: Callable[[], Rewriter]

    def rewrite(self, *args: Any, **kwargs: Any) -> list[RewrittenGroup]:
        return self.make().rewrite(*args, **kwargs)

    def compact(self, *args: Any, **kwargs: Any) -> list[CompactedSlice]:
        return self.make().compact(*args, **kwargs)
