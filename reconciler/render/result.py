"""What an apply did, for people, for a pull request and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from reconciler import canonical
from reconciler.apply.result import Result, Rows, StepOutcome, TableResult
from reconciler.plan import encode
from reconciler.plan.model import Note
from reconciler.render import words
from reconciler.render.index_result import all_indexed, of_indexed, what_was_indexed
from reconciler.render.lines import item, more
from reconciler.render.paint import Paint
from reconciler.render.rewritten import all_rewritten, of_rewritten, what_was_rewritten

_TOP_REASONS = 5

#: what an exit code means, and what to do
MEANINGS: Mapping[int, str] = {
    1: "an error stopped at least one table; what it is stands above",
    3: "blocked: nothing was touched where a refusal stands above",
    4: "part of what was reviewed no longer holds and was left out; plan again to see what is left",
    5: "some of the work failed and stays pending; apply again to finish it",
    6: "another process holds the lock or works on the table; apply again when it is done",
}
_LABELS: Mapping[str, str] = {
    "done": "done",
    "unchanged": "unchanged",
    "stale": "done in part",
    "leftOut": "left out",
    "partial": "failed in part",
    "blocked": "blocked",
    "busy": "busy",
    "failed": "failed",
}


def result_text(result: Result, *, color: bool) -> str:
    """The result for people: table by table, the worst first, then one line that sums it up."""
    paint = Paint(is_on=color)
    lines: list[str] = []
    for table in worst_first(result):
        lines += [*_table(table, paint), ""]
    return "\n".join([*lines, *_last(result, paint)]) + "\n"


def result_json(result: Result) -> bytes:
    """The whole result as canonical JSON and a newline; every file that stayed is named."""
    document = {
        "format": 1,
        "planDigest": result.plan_digest,
        "exitCode": result.exit_code,
        "seconds": round(result.seconds, 3),
        "tables": [_document(table) for table in result.tables],
        **encode.selected(result.selection),
    }
    return canonical.dumps(document) + b"\n"


def outcome(result: Result) -> str:
    """How many tables there are of every kind: ``3 tables: 1 done, 2 unchanged``."""
    statuses = [_said(table) for table in result.tables]
    parts = ", ".join(
        f"{words.number(n)} {label}"
        for status, label in _LABELS.items()
        if (n := statuses.count(status))
    )
    return words.tables(len(statuses), result.selection) + (f": {parts}" if parts else "")


def label(table: TableResult) -> str:
    """What became of a table, in a word or two."""
    return _LABELS[_said(table)]


def worst_first(result: Result) -> list[TableResult]:
    """The tables, those that need somebody first."""
    order = {"failed": 0, "busy": 1, "blocked": 2, "partial": 3, "stale": 4, "done": 5}
    return sorted(result.tables, key=lambda t: (order.get(t.status, 9), -t.bytes, t.name))


def table_lines(table: TableResult, paint: Paint) -> list[str]:
    """One table with everything that was done and what was left."""
    return list(_table(table, paint))


# --- text ----------------------------------------------------------------------------------------


def _table(table: TableResult, paint: Paint) -> Iterator[str]:
    color = {"done": paint.good, "unchanged": paint.good, "stale": paint.warn}
    what = color.get(table.status, paint.bad)(label(table))
    yield f"{paint.strong(words.plain(table.name))}  {what}  {words.plain(table.path)}"
    if table.error is not None:
        yield from item(paint.bad("! error"), table.error)
    for note in table.refusals:
        yield from item(paint.bad("! blocked"), f"{note.because} [{note.rule}]")
    for outcome in table.outcomes:
        yield from _outcome(outcome, paint)
    yield from _notes(table.warnings, paint)


def _said(table: TableResult) -> str:
    """The status as people are told it: a stale table of which nothing was begun is left out."""
    return "leftOut" if table.status == "stale" and not table.outcomes else table.status


def _outcome(outcome: StepOutcome, paint: Paint) -> Iterator[str]:
    instant = "" if outcome.instant is None else f" {outcome.instant}"
    yield from item(paint.strong(f"{outcome.kind}{instant}"), _what_happened(outcome))
    if outcome.earliest_instant_to_retain is not None:
        yield from more(f"earliest instant to retain: {outcome.earliest_instant_to_retain}")
    if outcome.partitions_removed:
        many = len(outcome.partitions_removed)
        yield from more(
            f"{words.count(many, 'partition directory', 'partition directories')} removed"
        )
    if outcome.rewritten:
        yield from of_rewritten(outcome.rewritten, paint)
    if outcome.indexed:
        yield from of_indexed(outcome.indexed, paint)
    if outcome.left_out:
        yield from _rows("left out", "of the plan stayed", outcome.left_out, paint.warn)
    if outcome.failed:
        yield from _rows("failed", "could not be deleted", outcome.failed, paint.bad)
    for note in outcome.partitions_left:
        yield from item(paint.warn("! folder stays"), f"{note.rule}: {note.because}")
    for note in outcome.differences:
        yield from item(paint.bad("! check failed"), f"{note.because} [{note.rule}]")
    yield from _notes(outcome.warnings, paint)


def _what_happened(outcome: StepOutcome) -> str:
    if outcome.rewritten is not None:
        return what_was_rewritten(outcome, outcome.rewritten)
    if outcome.indexed is not None:
        return what_was_indexed(outcome, outcome.indexed)
    if outcome.kind == "rollback":
        return _taken_back(outcome)
    removed = words.count(outcome.removed, "file")
    size = f", {words.size(outcome.bytes)}" if outcome.removed else ""
    gone = f", {words.count(outcome.gone, 'file')} gone before" if outcome.gone else ""
    took = f", in {words.span(outcome.seconds)}" if outcome.seconds >= 1 else ""
    return {
        "completed": f"removed {removed}{size}{gone}{took}",
        "adopted": f"completed by another writer; removed {removed}{size}{gone}",
        "undone": "nothing of it was left to do, so the pending instant was removed",
        "inflight": f"removed {removed}{size}{gone}; it stays inflight until the next apply",
        "nothing": f"nothing to do any more{gone}",
        "failed": "nothing was done",
    }[outcome.how]


def _taken_back(outcome: StepOutcome) -> str:
    gone = f", {words.count(outcome.gone, 'file')} gone before" if outcome.gone else ""
    files = f"removed {words.count(outcome.removed, 'file')}, {words.size(outcome.bytes)}"
    files = f"{files}, that no reader has seen" if outcome.removed else "there was no file of it"
    if outcome.how == "undone":
        return f"the dead write is taken back; {files}{gone}"
    if outcome.left_out or outcome.how == "failed":
        return "the write is not taken back" + (f"; {files}" if outcome.removed else "")
    return f"nothing to do any more{gone}"


def _rows(label: str, what: str, rows: Rows, paint: Callable[[str], str]) -> Iterator[str]:
    yield from item(paint(f"! {label}"), f"{words.count(len(rows), 'file')} {what}")
    reasons = rows.reasons()
    for reason, count in reasons[:_TOP_REASONS]:
        yield from more(f"{words.count(count, 'file')}: {reason}")
    if len(reasons) > _TOP_REASONS:
        yield from more(f"… and {words.count(len(reasons) - _TOP_REASONS, 'more reason')}")


def _notes(notes: Iterable[Note], paint: Paint) -> Iterator[str]:
    for note in notes:
        yield from item(paint.warn("! warning"), f"{note.because} [{note.rule}]")


def _last(result: Result, paint: Paint) -> Iterator[str]:
    removed = sum(table.removed for table in result.tables)
    size = f" ({words.size(sum(table.bytes for table in result.tables))})" if removed else ""
    took = f" in {words.span(result.seconds)}" if result.seconds >= 1 else ""
    done = [part for part in (all_rewritten(result.tables), all_indexed(result.tables)) if part]
    done += [] if done and not removed else [f"{words.count(removed, 'file')} removed{size}"]
    files = ", ".join(done) + took
    yield f"{paint.strong('Result:')} {outcome(result)}; {files}.  plan {result.plan_digest}"
    meaning = MEANINGS.get(result.exit_code)
    if meaning is not None:
        yield f"Exit code {result.exit_code}: {meaning}."


# --- JSON ----------------------------------------------------------------------------------------


def _document(table: TableResult) -> Mapping[str, Any]:
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
        "refusals": _note_list(table.refusals),
        "warnings": _note_list(table.warnings),
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
        "leftOut": _row_list(outcome.left_out),
        "failed": _row_list(outcome.failed),
        "partitionsRemoved": list(outcome.partitions_removed),
        "partitionsLeft": [
            {"path": note.rule, "because": note.because} for note in outcome.partitions_left
        ],
        "earliestInstantToRetain": outcome.earliest_instant_to_retain,
        "differences": _note_list(outcome.differences),
        "warnings": _note_list(outcome.warnings),
        "seconds": round(outcome.seconds, 3),
    }


def _note_list(notes: Iterable[Note]) -> list[Mapping[str, str]]:
    return [{"rule": note.rule, "because": note.because} for note in notes]


def _row_list(rows: Rows | None) -> list[Mapping[str, str]]:
    if rows is None:
        return []
    columns = (rows.partition.to_pylist(), rows.name.to_pylist(), rows.because.to_pylist())
    return [
        {"partition": partition, "name": name, "because": because}
        for partition, name, because in zip(*columns, strict=True)
    ]
