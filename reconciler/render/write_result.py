"""The result of a write, for people and for programs."""

from __future__ import annotations

from typing import Any

from reconciler import canonical_json
from reconciler.render import words
from reconciler.writer.request import WriteResult


def write_text(name: str, operation: str, outcome: WriteResult) -> str:
    """Return the result as two or three lines of text."""
    totals = outcome.counts
    if outcome.status == "nothing":
        reason = "nothing to write"
        if totals is not None and totals.absent_deletes:
            keys = words.format_count(totals.absent_deletes, "key")
            reason = f"none of the {keys} is in the table"
            if totals.absent_deletes == 1:
                reason = f"the {keys} is not in the table"
        return f"{name}: {operation}: {reason}\n"
    rows = []
    if totals is not None:
        rows = [
            f"{words.format_number(number)} {what}"
            for number, what in (
                (totals.inserts, "new"),
                (totals.updates, "changed"),
                (totals.deletes, "deleted"),
                (totals.dropped, "duplicates of a key dropped"),
                (totals.absent_deletes, "to delete not found"),
            )
            if number
        ]
    lines = [f"{name}: {operation} completed as {outcome.instant}"]
    if rows:
        lines.append(f"  rows   {', '.join(rows)}")
    groups = [
        f"{words.format_number(number)} {what}"
        for number, what in (
            (outcome.created_groups, "created"),
            (
                outcome.rewritten_groups,
                f"rewritten ({words.format_size(outcome.rewritten_bytes)} before)",
            ),
            (outcome.replaced_groups, "replaced"),
        )
        if number
    ]
    new = f"{words.format_count(outcome.files, 'new file')} of {words.format_size(outcome.bytes)}; "
    lines.append(f"  files  {new if outcome.files else ''}file groups: {', '.join(groups)}")
    return "\n".join(lines) + "\n"


def write_json(name: str, operation: str, outcome: WriteResult) -> str:
    """Return the result as one canonical JSON object and a newline."""
    totals = outcome.counts
    document: dict[str, Any] = {
        "name": name,
        "operation": operation,
        "how": outcome.status,
        "instant": outcome.instant,
        "rows": None
        if totals is None
        else {
            "brought": totals.incoming,
            "inserted": totals.inserts,
            "updated": totals.updates,
            "deleted": totals.deletes,
            "dropped": totals.dropped,
            "absent": totals.absent_deletes,
        },
        "fileGroups": {
            "begun": outcome.created_groups,
            "filled": outcome.rewritten_groups,
            "replaced": outcome.replaced_groups,
        },
        "files": outcome.files,
        "bytesWritten": outcome.bytes,
        "bytesRewritten": outcome.rewritten_bytes,
        "warnings": [{"rule": note.rule, "because": note.because} for note in outcome.warnings],
    }
    return canonical_json.to_bytes(document).decode() + "\n"
