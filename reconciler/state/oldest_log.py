"""The oldest log file that readers merge."""

from __future__ import annotations

from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OldestLog:
    """The write that made the oldest log file; not ``is_exact``: it is at least as old as that."""

    instant: str
    is_exact: bool
