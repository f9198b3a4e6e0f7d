"""The result of a write, for people and for programs."""

from __future__ import annotations

from typing import Any

from reconciler import canonical_json
from reconciler.render import words
from reconciler.render.terminal import Terminal
from reconciler.status.reconciliation import INCOMPLETE, ReconciledWrite, Reconciliation
from reconciler.writer.lookup_costs import KeyLookup, LookupWay
from reconciler.writer.request import WriteResult


def write_text(name: str, operation: str, outcome: WriteResult) -> str:
    """Return the result as two or three lines of text."""
    totals = outcome.counts
    if outcome.status == "nothing":
        reason = "nothing to write"
        if totals is not None and totals.absent_deletes:
            keys = words.format_count(totals.absent_deletes, "key")
            is_one = totals.absent_deletes == 1
            reason = f"the {keys} is not" if is_one else f"none of the {keys} is"
            reason += " in the table"
        return f"{name}: {operation}: {reason}\n"
    rows = (
        ()
        if totals is None
        else (
            (totals.inserts, "new"),
            (totals.updates, "changed"),
            (totals.deletes, "deleted"),
            (totals.dropped, "duplicates of a key dropped"),
            (totals.absent_deletes, "to delete not found"),
        )
    )
    rewritten = f"rewritten ({words.format_size(outcome.rewritten_bytes)} before)"
    groups = (
        (outcome.created_groups, "created"),
        (outcome.rewritten_groups, rewritten),
        (outcome.appended_groups, "appended to"),
        (outcome.replaced_groups, "replaced"),
    )
    lines = [f"{name}: {operation} completed as {outcome.instant}"]
    if shown := words.join_counts(rows):
        lines.append(f"  rows   {shown}")
    kinds = (
        (outcome.files, "new file", outcome.bytes),
        (outcome.log_files, "log file", outcome.log_bytes),
    )
    new = "".join(
        f"{words.format_count(count, what)} of {words.format_size(size)}; "
        for count, what, size in kinds
        if count
    )
    lines.append(f"  files  {new}file groups: {words.join_counts(groups)}")
    return "\n".join(lines) + "\n"


def lookup_text(lookup: KeyLookup) -> str:
    """Return how keys were looked up, as one line."""
    counts = words.join_counts(
        (
            (lookup.searched, "searched"),
            (lookup.filtered, "ruled out by their bloom filter"),
            (lookup.out_of_range, "by their key range"),
        )
    )
    where = "by the record index" if lookup.way is LookupWay.RECORD_INDEX else "in the files"
    return f"looked up keys {where}, because {lookup.because}; files: {counts or 'none'}"


def reconciliation_text(name: str, made: Reconciliation, terminal: Terminal) -> str:
    """Return what was done to the table after the write, and what is left."""
    lines = ["", "then reconciled:" if made.error is None else "then failed to reconcile:"]
    if made.result is not None:
        from reconciler.render.result import list_table_lines  # noqa: PLC0415 (few writes)

        lines += list_table_lines(made.result, terminal)
    else:
        lines += terminal.paragraph(f"{name}: {words.escape_text(made.error or '')}")
    if made.exit_code:
        lines += terminal.paragraph(
            f"Exit code {INCOMPLETE}: the write is done, but the table is not reconciled in whole; "
            "do not write again: run `reconciler plan` to see what is left."
        )
    return "\n".join(lines) + "\n"


def write_json(name: str, operation: str, outcome: ReconciledWrite) -> str:
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
        "warnings": canonical_json.to_document(outcome.warnings),
    }
    if outcome.log_files:
        document["fileGroups"]["appended"] = outcome.appended_groups
        document |= {"logFiles": outcome.log_files, "logBytesWritten": outcome.log_bytes}
    if (lookup := outcome.lookup) is not None:
        document["lookup"] = {
            "way": lookup.way.value,
            "because": lookup.because,
            "searched": lookup.searched,
            "filtered": lookup.filtered,
            "outOfRange": lookup.out_of_range,
        }
    if (made := outcome.reconciliation) is not None:
        document["reconciliation"] = _make_reconciliation_document(made)
    return canonical_json.to_bytes(document).decode() + "\n"


def _make_reconciliation_document(made: Reconciliation) -> dict[str, Any]:
    from reconciler.render.result import result_document  # noqa: PLC0415 (few writes)

    return {
        "exitCode": made.exit_code,
        "error": made.error,
        "result": None if made.result is None else result_document(made.result),
    }
