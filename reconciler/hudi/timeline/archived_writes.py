"""What the archived timeline tells of some instants."""

from __future__ import annotations

from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedWrites:
    """The archive's answer about instants of which it was asked.

    ``known``: those that a write of the archive completed. ``oldest``: the smallest requested time
    in the archive; None if it is empty. It tells nothing of instants before that.
    """

    known: frozenset[str] = frozenset()
    oldest: str | None = None
