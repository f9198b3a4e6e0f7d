"""What an apply did, for people, for a pull request and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from reconciler import canonical_json
from reconciler.executor.result import ApplyResult, FileReasons, StepOutcome, TableResult
from reconciler.plans import encode
from reconciler.plans.model import Note
from reconciler.render import words
from reconciler.render.cluster_result import describe_rewrite, rewrite_lines, sum_rewrites
from reconciler.render.index_result import describe_index, index_lines, sum_indexes
from reconciler.render.paint import Paint
from reconciler.render.wrapping import wrap_detail, wrap_item

_MAX_REASONS = 5

#: what an exit code means, and what to do
EXIT_MEANINGS: Mapping[int, str] = {
    1: "an error stopped at least one table; what it is stands above",
    3: "blocked: nothing was touched where a refusal stands above",
    4: "part of what was reviewed no longer holds and was left out; plan again to see what is left",
    5: "some of the work failed and stays pending; apply again to finish it",
    6: "another process holds the lock or works on the table; apply again when it is done",
}
_STATUS_LABELS: Mapping[str, str] = {
    "done": "done",
    "unchanged": "unchanged",
    "stale": "done in part",
    "leftOut": "left out",
    "partial": "failed in part",
    "blocked": "blocked",
    "busy": "busy",
    "failed": "failed",
}


def result_text(result: ApplyResult, *, color: bool) -> str:
    """The result for people: table by table, the worst first, then one line that sums it up."""
    paint = Paint(is_on=color)
    lines: list[str] = []
    for table in tables_worst_first(result):
        lines += [*_table_lines(table, paint), ""]
    return "\n".join([*lines, *_summary_lines(result, paint)]) + "\n"


def result_json(result: ApplyResult) -> bytes:
    """The whole result as canonical JSON and a newline; every file that stayed is named."""
    document = {
        "format": 1,
        "planDigest": result.plan_digest,
        "exitCode": result.exit_code,
        "seconds": round(result.seconds, 3),
        "tables": [_table_document(table) for table in result.tables],
        **encode.encode_selection(result.selection),
    }
    return canonical_json.to_canonical_bytes(document) + b"\n"


def count_statuses(result: ApplyResult) -> str:
    """How many tables there are of every kind: ``3 tables: 1 done, 2 unchanged``."""
    statuses = [_shown_status(table) for table in result.tables]
    parts = ", ".join(
        f"{words.format_number(n)} {label}"
        for status, label in _STATUS_LABELS.items()
        if (n := statuses.count(status))
    )
    return words.format_tables(len(statuses), result.selection) + (f": {parts}" if parts else "")


def status_label(table: TableResult) -> str:
    """What became of a table, in a word or two."""
    return _STATUS_LABELS[_shown_status(table)]


def tables_worst_first(result: ApplyResult) -> list[TableResult]:
    """The tables, those that need somebody first."""
    order = {"failed": 0, "busy": 1, "blocked": 2, "partial": 3, "stale": 4, "done": 5}
    return sorted(result.tables, key=lambda t: (order.get(t.status, 9), -t.bytes, t.name))


def render_table(table: TableResult, paint: Paint) -> list[str]:
    """One table with everything that was done and what was left."""
    return list(_table_lines(table, paint))


# --- text ----------------------------------------------------------------------------------------


def _table_lines(table: TableResult, paint: Paint) -> Iterator[str]:
    color = {"done": paint.good, "unchanged": paint.good, "stale": paint.warn}
    what = color.get(table.status, paint.bad)(status_label(table))
    yield f"{paint.strong(words.escape_text(table.name))}  {what}  {words.escape_text(table.path)}"
    if table.error is not None:
        yield from wrap_item(paint.bad("! error"), table.error)
    for note in table.refusals:
        yield from wrap_item(paint.bad("! blocked"), f"{note.because} [{note.rule}]")
    for outcome in table.outcomes:
        yield from _outcome_lines(outcome, paint)
    yield from _note_lines(table.warnings, paint)


def _shown_status(table: TableResult) -> str:
    """The status as people are told it: a stale table of which nothing was begun is left out."""
    return "leftOut" if table.status == "stale" and not table.outcomes else table.status


def _outcome_lines(outcome: StepOutcome, paint: Paint) -> Iterator[str]:
    instant = "" if outcome.instant is None else f" {outcome.instant}"
    yield from wrap_item(paint.strong(f"{outcome.kind}{instant}"), _describe_outcome(outcome))
    if outcome.earliest_instant_to_retain is not None:
        yield from wrap_detail(f"earliest instant to retain: {outcome.earliest_instant_to_retain}")
    if outcome.partitions_removed:
        many = len(outcome.partitions_removed)
        yield from wrap_detail(
            f"{words.format_count(many, 'partition directory', 'partition directories')} removed"
        )
    if outcome.rewritten:
        yield from rewrite_lines(outcome.rewritten, paint)
    if outcome.indexed:
        yield from index_lines(outcome.indexed, paint)
    if outcome.left_out:
        yield from _row_lines("left out", "of the plan stayed", outcome.left_out, paint.warn)
    if outcome.failed:
        yield from _row_lines("failed", "could not be deleted", outcome.failed, paint.bad)
    for note in outcome.partitions_left:
        yield from wrap_item(paint.warn("! folder stays"), f"{note.rule}: {note.because}")
    for note in outcome.differences:
        yield from wrap_item(paint.bad("! check failed"), f"{note.because} [{note.rule}]")
    yield from _note_lines(outcome.warnings, paint)


def _describe_outcome(outcome: StepOutcome) -> str:
    if outcome.rewritten is not None:
        return describe_rewrite(outcome, outcome.rewritten)
    if outcome.indexed is not None:
        return describe_index(outcome, outcome.indexed)
    if outcome.kind == "rollback":
        return _describe_rollback(outcome)
    removed = words.format_count(outcome.removed, "file")
    size = f", {words.format_size(outcome.bytes)}" if outcome.removed else ""
    gone = f", {words.format_count(outcome.gone, 'file')} gone before" if outcome.gone else ""
    took = f", in {words.format_duration(outcome.seconds)}" if outcome.seconds >= 1 else ""
    return {
        "completed": f"removed {removed}{size}{gone}{took}",
        "adopted": f"completed by another writer; removed {removed}{size}{gone}",
        "undone": "nothing of it was left to do, so the pending instant was removed",
        "inflight": f"removed {removed}{size}{gone}; it stays inflight until the next apply",
        "nothing": f"nothing to do any more{gone}",
        "failed": "nothing was done",
    }[outcome.how]


def _describe_rollback(outcome: StepOutcome) -> str:
    gone = f", {words.format_count(outcome.gone, 'file')} gone before" if outcome.gone else ""
    files = (
        f"removed {words.format_count(outcome.removed, 'file')}, {words.format_size(outcome.bytes)}"
    )
    files = f"{files}, that no reader has seen" if outcome.removed else "there was no file of it"
    if outcome.how == "undone":
        return f"the dead write is taken back; {files}{gone}"
    if outcome.left_out or outcome.how == "failed":
        return "the write is not taken back" + (f"; {files}" if outcome.removed else "")
    return f"nothing to do any more{gone}"


def _row_lines(
    label: str, what: str, rows: FileReasons, paint: Callable[[str], str]
) -> Iterator[str]:
    yield from wrap_item(paint(f"! {label}"), f"{words.format_count(len(rows), 'file')} {what}")
    reasons = rows.count_reasons()
    for reason, count in reasons[:_MAX_REASONS]:
        yield from wrap_detail(f"{words.format_count(count, 'file')}: {reason}")
    if len(reasons) > _MAX_REASONS:
        yield from wrap_detail(
            f"… and {words.format_count(len(reasons) - _MAX_REASONS, 'more reason')}"
        )


def _note_lines(notes: Iterable[Note], paint: Paint) -> Iterator[str]:
    for note in notes:
        yield from wrap_item(paint.warn("! warning"), f"{note.because} [{note.rule}]")


def _summary_lines(result: ApplyResult, paint: Paint) -> Iterator[str]:
    removed = sum(table.removed for table in result.tables)
    size = f" ({words.format_size(sum(table.bytes for table in result.tables))})" if removed else ""
    took = f" in {words.format_duration(result.seconds)}" if result.seconds >= 1 else ""
    done = [part for part in (sum_rewrites(result.tables), sum_indexes(result.tables)) if part]
    done += [] if done and not removed else [f"{words.format_count(removed, 'file')} removed{size}"]
    files = ", ".join(done) + took
    yield f"{paint.strong('Result:')} {count_statuses(result)}; {files}.  plan {result.plan_digest}"
    meaning = EXIT_MEANINGS.get(result.exit_code)
    if meaning is not None:
        yield f"Exit code {result.exit_code}: {meaning}."


# --- JSON ----------------------------------------------------------------------------------------


def _table_document(table: TableResult) -> Mapping[str, Any]:
    return {
        "name": table.name,
        "path": table.path,
        "status": table.status,
        "exitCode": table.exit_code,
        "error": table.error,
        "seconds": round(table.seconds, 3),
        "instants": list(table.instants),
        "filesRemoved": int(table.removed),
        "bytesRemoved": int(table.bytes),
        "refusals": _note_documents(table.refusals),
        "warnings": _note_documents(table.warnings),
        "outcomes": [_outcome_document(outcome) for outcome in table.outcomes],
    }


def _outcome_document(outcome: StepOutcome) -> Mapping[str, Any]:
    return {
        "kind": outcome.kind,
        "how": outcome.how,
        "instant": outcome.instant,
        "rewritten": outcome.rewritten.document if outcome.rewritten else None,
        "indexed": outcome.indexed.document if outcome.indexed else None,
        "filesRemoved": int(outcome.removed),
        "bytesRemoved": int(outcome.bytes),
        "filesGone": int(outcome.gone),
        "leftOut": _row_documents(outcome.left_out),
        "failed": _row_documents(outcome.failed),
        "partitionsRemoved": list(outcome.partitions_removed),
        "partitionsLeft": [
            {"path": note.rule, "because": note.because} for note in outcome.partitions_left
        ],
        "earliestInstantToRetain": outcome.earliest_instant_to_retain,
        "differences": _note_documents(outcome.differences),
        "warnings": _note_documents(outcome.warnings),
        "seconds": round(outcome.seconds, 3),
    }


def _note_documents(notes: Iterable[Note]) -> list[Mapping[str, str]]:
    return [{"rule": note.rule, "because": note.because} for note in notes]


def _row_documents(rows: FileReasons | None) -> list[Mapping[str, str]]:
    if rows is None:
        return []
    columns = (rows.partition.to_pylist(), rows.name.to_pylist(), rows.because.to_pylist())
    return [
        {"partition": partition, "name": name, "because": because}
        for partition, name, because in zip(*columns, strict=True)
    ]
