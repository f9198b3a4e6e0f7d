"""Guardrails that live outside the tables' own files. Read and checked; enforced elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from reconciler.spec.model import TableSpec
from reconciler.spec.overlay import Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """One rule that does not hold for one table up to and including a day (YYYY-MM-DD)."""

    rule: str
    table: str
    until: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPolicy:
    """Limits on plans for the tables it covers; counts and bytes, None is no limit.

    ``min_retention`` is the least count by ``commits``, ``hours`` and ``fileVersions``;
    ``protected`` are globs of table names that no plan may touch.
    """

    name: str
    selector: Selector
    min_retention: Mapping[str, int]
    max_files_removed: int | None = None
    max_bytes_removed: int | None = None
    max_rewrite: int | None = None
    protected: tuple[str, ...] = ()
    require_lock: bool = False
    severity: Literal["error", "warn"] = "error"
    waivers: tuple[Waiver, ...] = ()
    source: str = ""

    def covers(self, table: TableSpec) -> bool:
        """Whether the policy speaks of the table: it is selected, or protected by name."""
        by_name = any(fnmatchcase(table.name, glob) for glob in self.protected)
        return by_name or self.selector.selects(table.labels, table.path)


def policy_of(
    data: Mapping[str, Any], *, name: str, selector: Selector, source: str
) -> GuardPolicy:
    """The policy of checked data."""
    return GuardPolicy(
        name=name,
        selector=selector,
        min_retention=data.get("minRetention", {}),
        max_files_removed=data.get("maxFilesRemoved"),
        max_bytes_removed=data.get("maxBytesRemoved"),
        max_rewrite=data.get("maxRewrite"),
        protected=tuple(data.get("protected", ())),
        require_lock=data.get("requireLock", False),
        severity=data.get("severity", "error"),
        waivers=tuple(Waiver(**waiver) for waiver in data.get("waivers", ())),
        source=source,
    )
