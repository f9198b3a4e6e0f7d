"""What was applied to a table: entries of its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from reconciler.hudi.timeline.past_change import PastChange
from reconciler.lazy_dataclass import dataclass
from reconciler.state.measured_queries import MeasuredQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """One instant. ``operation``: of a write. Figures are as in ``PastChange``.

    ``queries``: what a clustering's declared queries read afterwards, beside what was predicted.
    """

    instant: str
    action: str
    completed: str | None
    operation: str | None
    files_removed: int
    files_written: int
    rows_written: int
    bytes_written: int
    groups_replaced: int
    is_recorded: bool = True
    queries: tuple[MeasuredQuery, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedSavepoint:
    """A savepoint that a run made or removed; ``change``: ``create`` or ``remove``.

    ``instant``: the pinned one. ``files``, ``bytes``: those that it lists.
    """

    change: str
    name: str
    instant: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRun:
    """What an audit record says of one apply of a table.

    ``status``: as in the record; ``died`` if the run has written no end. ``planned``: files, bytes
    and bytesRewritten that the review named. ``savepoints``: the timeline forgets removed ones.
    """

    run: str
    at: str
    status: str
    exit_code: int | None = None
    host: str | None = None
    environment: str | None = None
    planned: Mapping[str, int] = field(default_factory=dict)
    files_removed: int = 0
    bytes_removed: int = 0
    seconds: float | None = None
    error: str | None = None
    savepoints: tuple[AuditedSavepoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One apply of a plan, or one instant that no plan made.

    ``at``: the newest instant, or the time of the audit record as an instant. ``plan_digest``:
    None for work that no plan of reconciler made. ``changes``: instants, newest first.
    """

    at: str
    plan_digest: str | None
    spec_digest: str | None = None
    spec_commit: str | None = None
    actor: str | None = None
    tool: str | None = None
    changes: tuple[HistoryChange, ...] = ()
    audited: tuple[AuditedRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHistory:
    """The entries of a table, newest first. ``is_whole``: nothing older was left out.

    ``with_others``: instants that no plan made are among them. ``since``: older entries were not
    asked for; an instant.
    """

    name: str
    path: str
    entries: tuple[HistoryEntry, ...]
    is_whole: bool
    with_others: bool
    since: str | None = field(default=None, metadata={"name": None})


def describe_change(change: PastChange, queries: tuple[MeasuredQuery, ...]) -> HistoryChange:
    """Return a past change as an entry shows it."""
    figures: dict[str, Any] = {
        name: getattr(change, name)
        for name in (
            "files_removed",
            "files_written",
            "rows_written",
            "bytes_written",
            "groups_replaced",
            "is_recorded",
        )
    }
    instant = change.instant
    return HistoryChange(
        instant=instant.requested,
        action=str(instant.action),
        completed=instant.completed,
        operation=change.operation,
        queries=queries,
        **figures,
    )
