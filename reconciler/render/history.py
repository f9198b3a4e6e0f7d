"""The history of a table, as text and JSON. Strings and no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler import canonical_json
from reconciler.canonical_json import to_document
from reconciler.render import words
from reconciler.render.terminal import Terminal
from reconciler.state.measured_queries import MeasuredQuery
from reconciler.status.history_model import (
    AuditedRun,
    AuditedSavepoint,
    HistoryChange,
    HistoryEntry,
    TableHistory,
)

_REMOVING: Final = frozenset({"clean", "rollback", "restore"})
_REWRITING: Final = frozenset({"cluster", "compact", "log_compact"})


def history_text(history: TableHistory, terminal: Terminal) -> str:
    """Return the history for people, newest first."""
    name = terminal.strong(words.escape_text(history.name))
    lines = [*terminal.title(name, words.escape_text(history.path))]
    for entry in history.entries:
        lines += ["", *_entry_lines(entry, terminal)]
    lines += ["", _summary(history)]
    return "\n".join(lines) + "\n"


def history_json(history: TableHistory, *, created_at: str, tool: str) -> bytes:
    """Return the history as canonical JSON and a newline (``schemas/history.v1.json``)."""
    document = {"format": 1, "createdAt": created_at, "tool": tool, **to_document(history)}
    return canonical_json.to_bytes(document) + b"\n"


def _summary(history: TableHistory) -> str:
    count = words.format_count(len(history.entries), "entry")
    if not history.entries and not history.with_others:
        since = f" since {words.format_instant(history.since)}" if history.since else ""
        return f"Nothing was applied by reconciler{since}; --all also shows what no plan made."
    return f"{count}." if history.is_whole else f"{count}; raise --limit for older ones."


def _entry_lines(entry: HistoryEntry, terminal: Terminal) -> Iterator[str]:
    at = terminal.strong(words.format_instant(entry.at))
    yield from terminal.wrap(f"{at}  ", words.escape_text(_describe_origin(entry)), 2)
    if entry.plan_digest is not None:
        yield from terminal.wrap("  plan ", words.escape_text(entry.plan_digest), 4)
    for change in entry.changes:
        yield from _change_lines(change, terminal)
    for run in entry.audited:
        for savepoint in run.savepoints:
            yield from _savepoint_lines(savepoint, terminal)
        yield from _audit_lines(run, terminal)


def _describe_origin(entry: HistoryEntry) -> str:
    """Return who made an entry, from which commit and with what."""
    if entry.tool is None:
        return "another writer"
    by = "" if entry.actor is None else f"by {entry.actor}"
    commit = "" if entry.spec_commit is None else f"spec commit {entry.spec_commit}"
    made = "" if entry.plan_digest is not None else "without a plan"
    return ", ".join(filter(None, (by, commit, entry.tool, made)))


def _change_lines(change: HistoryChange, terminal: Terminal) -> Iterator[str]:
    kind = change.action
    if change.operation:
        kind = f"{kind} ({words.escape_text(change.operation.lower())})"
    figures = list(_list_figures(change))
    text = ": ".join(filter(None, (change.instant, ", ".join(figures))))
    yield from terminal.wrap(f"  {_find_sign(change)} {kind}  ", text, 6)
    for query in change.queries:
        yield from terminal.detail(_describe_query(query))


def _find_sign(change: HistoryChange) -> str:
    """Return the sign of a change, as plans use it: removes, rewrites or adds."""
    operation = (change.operation or "").lower()
    if change.action in _REMOVING or operation == "delete_partition":
        return "-"
    return "~" if change.groups_replaced or operation in _REWRITING else "+"


def _savepoint_lines(savepoint: AuditedSavepoint, terminal: Terminal) -> Iterator[str]:
    """Yield a savepoint of an audit record: what a removed one pinned, and the timeline forgets."""
    is_new = savepoint.change == "create"
    amount = words.format_count(savepoint.files, "file")
    size = words.format_size(savepoint.bytes)
    does, pins = ("made", "pins") if is_new else ("removed", "pinned")
    text = f"{savepoint.instant}: {does} {savepoint.name} ({pins} {amount}, {size})"
    sign = "+" if is_new else "-"
    yield from terminal.wrap(f"  {sign} savepoint  ", words.escape_text(text), 6)


def _list_figures(change: HistoryChange) -> Iterator[str]:
    """Yield what an instant removed and wrote."""
    if not change.is_recorded:
        yield "its file is empty, so what it removed is not known"
    elif change.action == "clean":
        yield f"removed {words.format_count(change.files_removed, 'file')}"
    if change.files_written:
        size = words.format_size(change.bytes_written)
        rows = words.format_count(change.rows_written, "row")
        yield f"wrote {words.format_count(change.files_written, 'file')} ({size}, {rows})"
    if change.groups_replaced:
        yield f"replaced {words.format_count(change.groups_replaced, 'file group')}"


def _describe_query(query: MeasuredQuery) -> str:
    """Return what a query reads after a clustering, and what was predicted."""
    read = f"{words.format_number(query.files)} of {words.format_count(query.of_files, 'file')}"
    text = f"{query.query} reads {read}, {words.format_size(query.bytes)}"
    if query.predicted_files is None or query.predicted_bytes is None:
        return f"{text}; nothing was predicted"
    predicted = words.format_count(query.predicted_files, "file")
    return f"{text}; predicted: {predicted}, {words.format_size(query.predicted_bytes)}"


def _audit_lines(run: AuditedRun, terminal: Terminal) -> Iterator[str]:
    code = "" if run.exit_code is None else f" (exit code {run.exit_code})"
    place = f" on {run.host}" if run.host else ""
    taken = "" if run.seconds is None else words.format_time_taken(run.seconds)
    label = words.escape_text(f"audit {run.status}{code}")
    yield from terminal.item(label, f"{run.at}{place}{taken}")
    planned = run.planned
    yield from terminal.detail(
        f"removed {words.format_count(run.files_removed, 'file')} "
        f"({words.format_size(run.bytes_removed)}), planned "
        f"{words.format_count(planned.get('files', 0), 'file')} "
        f"({words.format_size(planned.get('bytes', 0))})"
    )
    if run.error:
        yield from terminal.detail(run.error)
