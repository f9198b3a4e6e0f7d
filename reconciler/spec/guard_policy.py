"""Policies: limits on plans that are declared outside of the specs of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A rule that does not apply to a table up to and including a day in UTC (YYYY-MM-DD)."""

    rule: str
    table: str
    until: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPolicy:
    """Limits on plans, in counts and bytes; None is no limit.

    ``min_retention`` is the least count by ``commits``, ``hours`` and ``fileVersions``;
    ``protected`` are globs of the names of tables that no plan may change, and
    ``protected_partitions`` filters of the partitions that no plan may delete. ``source`` is the
    file.
    """

    name: str
    owner: str | None = None
    min_retention: Mapping[str, int] = field(default_factory=dict)
    max_files_removed: int | None = None
    max_bytes_removed: int | None = None
    max_rewrite: int | None = None
    max_partitions_removed: int | None = None
    protected_partitions: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    require_lock: bool = False
    severity: Literal["error", "warn"] = "error"
    waivers: tuple[Waiver, ...] = ()
    source: str = field(default="", compare=False)

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that it sets."""
        given = {
            "protected": self.protected,
            "requireLock": self.require_lock,
            "minRetention": self.min_retention,
            "maxFilesRemoved": self.max_files_removed is not None,
            "maxBytesRemoved": self.max_bytes_removed is not None,
            "maxRewrite": self.max_rewrite is not None,
            "maxPartitionsRemoved": self.max_partitions_removed is not None,
            "protectedPartitions": self.protected_partitions,
        }
        return tuple(rule for rule, is_set in given.items() if is_set)
