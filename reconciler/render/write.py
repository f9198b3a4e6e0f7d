"""What a write came to, for people and for programs."""

from __future__ import annotations

from typing import Any

from reconciler.canonical import dumps
from reconciler.render import words
from reconciler.writer.asked import Outcome


def written_text(name: str, operation: str, done: Outcome) -> str:
    """Two or three lines."""
    totals = done.totals
    if done.how == "nothing":
        said = "there was nothing to write, and nothing was"
        if totals is not None and totals.idle:
            keys = words.count(totals.idle, "key")
            said = f"none of the {keys} is in the table"
            if totals.idle == 1:
                said = f"the {keys} is not in the table"
        return f"{name}: {operation}: {said}\n"
    rows = []
    if totals is not None:
        rows = [
            f"{words.number(number)} {what}"
            for number, what in (
                (totals.inserts, "new"),
                (totals.updates, "changed"),
                (totals.deletes, "deleted"),
                (totals.dropped, "of the same key left out"),
                (totals.idle, "to delete that were not there"),
            )
            if number
        ]
    lines = [f"{name}: {operation} completed as {done.instant}"]
    if rows:
        lines.append(f"  rows   {', '.join(rows)}")
    groups = [
        f"{words.number(number)} {what}"
        for number, what in (
            (done.begun, "begun"),
            (done.filled, f"written again ({words.size(done.rewritten)} before)"),
            (done.replaced, "replaced"),
        )
        if number
    ]
    new = f"{words.count(done.files, 'new file')} of {words.size(done.bytes)}; "
    lines.append(f"  files  {new if done.files else ''}file groups: {', '.join(groups)}")
    return "\n".join(lines) + "\n"


def written_json(name: str, operation: str, done: Outcome) -> str:
    """One canonical JSON object and a newline."""
    totals = done.totals
    document: dict[str, Any] = {
        "name": name,
        "operation": operation,
        "how": done.how,
        "instant": done.instant,
        "rows": None
        if totals is None
        else {
            "brought": totals.brought,
            "inserted": totals.inserts,
            "updated": totals.updates,
            "deleted": totals.deletes,
            "dropped": totals.dropped,
            "absent": totals.idle,
        },
        "fileGroups": {"begun": done.begun, "filled": done.filled, "replaced": done.replaced},
        "files": done.files,
        "bytesWritten": done.bytes,
        "bytesRewritten": done.rewritten,
        "warnings": [{"rule": note.rule, "because": note.because} for note in done.warnings],
    }
    return dumps(document).decode() + "\n"
