"""How many commits stay on the active timeline, as a spec declares it."""

from __future__ import annotations

from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveTimeline:
    """How many commits stay on the active timeline: text such as ``30..50``.

    Once more than the greater number are active, the oldest are archived until the smaller number
    is left.

    >>> limits = ActiveTimeline(keep="30..50")
    >>> limits.least, limits.most
    (30, 50)
    """

    keep: str

    @property
    def least(self) -> int:
        """The number of commits that an archival leaves at least."""
        return int(self.keep.partition("..")[0])

    @property
    def most(self) -> int:
        """The number of active commits above which the oldest are archived."""
        return int(self.keep.partition("..")[2])
