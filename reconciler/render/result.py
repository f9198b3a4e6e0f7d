"""The result of an apply: as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from reconciler import canonical_json
from reconciler.executor.result import ApplyResult, FileReasons, StepOutcome, TableResult
from reconciler.plans import encode
from reconciler.plans.model import Note
from reconciler.render import words
from reconciler.render.archive_result import archival_lines, describe_archival, sum_archivals
from reconciler.render.cluster_result import describe_rewrite, rewrite_lines, sum_rewrites
from reconciler.render.costs import describe_result_costs
from reconciler.render.deletion_step import deletion_lines, describe_deletion, sum_deletions
from reconciler.render.index_result import describe_index, index_lines, sum_indexes
from reconciler.render.metadata_result import describe_repair, sum_repairs
from reconciler.render.savepoints import describe_outcome, sum_savepoints
from reconciler.render.terminal import Terminal

_MAX_REASONS: Final = 5

#: what an exit code means, and what to do now
EXIT_MEANINGS: Final[Mapping[int, str]] = {
    1: "an error stopped at least one table; see above",
    3: "blocked: tables or steps with a refusal above were not touched; do what it says",
    4: "part of the reviewed plan no longer holds and was skipped; plan again to see what is left",
    5: "some of the work failed and stays pending; apply again to finish it",
    6: "another process holds the lock or works on the table; apply again when it is done",
}
_STATUS_LABELS: Final[Mapping[str, str]] = {
    "done": "done",
    "unchanged": "unchanged",
    "stale": "done in part",
    "leftOut": "skipped",
    "partial": "failed in part",
    "blocked": "blocked",
    "blockedInPart": "blocked in part",
    "busy": "busy",
    "failed": "failed",
}
_URGENCY: Final = {
    "failed": 0,
    "busy": 1,
    "blocked": 2,
    "blockedInPart": 3,
    "partial": 4,
    "stale": 5,
    "done": 6,
}


def result_text(result: ApplyResult, terminal: Terminal) -> str:
    """Return the result as text: table by table, the worst first, then a summary."""
    lines: list[str] = []
    for table in tables_worst_first(result):
        lines += [*_table_lines(table, terminal), ""]
    lines += _summary_lines(result, terminal)
    if meaning := EXIT_MEANINGS.get(result.exit_code):
        lines += terminal.paragraph(f"Exit code {result.exit_code}: {meaning}.")
    return "\n".join(lines) + "\n"


def list_table_lines(result: ApplyResult, terminal: Terminal) -> Iterator[str]:
    """Yield what was done to each table, without a summary."""
    for table in result.tables:
        yield from _table_lines(table, terminal)


def result_json(result: ApplyResult) -> bytes:
    """Return the whole result as canonical JSON and a newline; it names every skipped file."""
    return canonical_json.to_bytes(result_document(result)) + b"\n"


def result_document(result: ApplyResult) -> dict[str, Any]:
    """Return the whole result as a JSON object."""
    return {
        "format": 1,
        "planDigest": result.plan_digest,
        "exitCode": result.exit_code,
        "seconds": round(result.seconds, 3),
        "tables": [_table_document(table) for table in result.tables],
        **encode.encode_selection(result.selection),
    }


def count_statuses(result: ApplyResult) -> str:
    """Return the number of tables of each status: ``3 tables: 1 done, 2 unchanged``."""
    statuses = [_shown_status(table) for table in result.tables]
    parts = words.join_counts((statuses.count(key), label) for key, label in _STATUS_LABELS.items())
    return words.format_tables(len(statuses), result.selection) + (f": {parts}" if parts else "")


def status_label(table: TableResult) -> str:
    """Return the status of a table as a word or two for people."""
    return _STATUS_LABELS[_shown_status(table)]


def tables_worst_first(result: ApplyResult) -> list[TableResult]:
    """Return the tables, those that need attention first."""
    return sorted(result.tables, key=lambda t: (_URGENCY.get(t.status, 9), -t.bytes, t.name))


def render_table(table: TableResult, terminal: Terminal) -> list[str]:
    """Return the lines of one table: what was done and what was skipped."""
    return list(_table_lines(table, terminal))


# --- text ----------------------------------------------------------------------------------------


def _table_lines(table: TableResult, terminal: Terminal) -> Iterator[str]:
    colors = {"done": terminal.good, "unchanged": terminal.good, "stale": terminal.warn}
    status = colors.get(table.status, terminal.bad)(status_label(table))
    name = terminal.strong(words.escape_text(table.name))
    yield from terminal.title(name, status, words.escape_text(table.path))
    if table.error is not None:
        yield from terminal.item(terminal.bad("! error"), table.error)
    for note in table.refusals:
        yield from terminal.note(terminal.bad(f"! {words.describe_refused(note.step)}"), note)
    for outcome in table.outcomes:
        yield from _outcome_lines(outcome, terminal)
    if costs := describe_result_costs((table,)):
        yield from terminal.item("costs", costs)
    yield from _note_lines(table.warnings, terminal)


def _shown_status(table: TableResult) -> str:
    """The status for people: a stale table of which nothing was started is skipped."""
    return "leftOut" if table.status == "stale" and not table.outcomes else table.status


def _outcome_lines(outcome: StepOutcome, terminal: Terminal) -> Iterator[str]:
    instant = "" if outcome.instant is None else f" {outcome.instant}"
    label = terminal.strong(f"{outcome.kind}{instant}")
    yield from terminal.item(label, _describe_outcome(outcome))
    if (boundary := outcome.earliest_instant_to_retain) is not None:
        yield from terminal.detail(f"published earliest instant to retain: {boundary}")
    if outcome.partitions_removed:
        folders = words.format_count(len(outcome.partitions_removed), "partition directory")
        yield from terminal.detail(f"{folders} removed")
    yield from _own_lines(outcome, terminal)
    for label, what, files in (
        (terminal.warn("! skipped"), "of the plan", outcome.left_out),
        (terminal.bad("! failed"), "could not be deleted", outcome.failed),
    ):
        if files:
            yield from _file_lines(label, what, files, terminal)
    for note in outcome.partitions_left:
        yield from terminal.item(terminal.warn("! folder kept"), f"{note.rule}: {note.because}")
    for note in outcome.differences:
        yield from terminal.note(terminal.bad("! check failed"), note)
    yield from _note_lines(outcome.warnings, terminal)


def _own_lines(outcome: StepOutcome, terminal: Terminal) -> Iterator[str]:
    """Yield the lines of the part that only this kind of step has."""
    if outcome.rewritten:
        yield from rewrite_lines(outcome.rewritten, terminal)
    if outcome.indexed:
        yield from index_lines(outcome.indexed, terminal)
    if outcome.deletion:
        yield from deletion_lines(outcome.deletion, terminal)
    if outcome.archived:
        yield from archival_lines(outcome.archived, terminal)
    for left in outcome.repaired.left if outcome.repaired else ():
        names = ", ".join(left.partitions)
        yield from terminal.item(terminal.warn("! skipped"), f"{names}: {left.because}")


def _describe_outcome(outcome: StepOutcome) -> str:
    own = _describe_own_part(outcome)
    if own is not None:
        return own
    if outcome.kind == "rollback":
        return _describe_rollback(outcome)
    if (
        outcome.kind == "orphans"
        and outcome.how == "nothing"
        and (outcome.left_out or outcome.failed)
    ):
        return f"nothing was removed{_already(outcome)}"
    size = f", {words.format_size(outcome.bytes)}" if outcome.removed else ""
    removed = f"removed {words.format_count(outcome.removed, 'file')}{size}{_already(outcome)}"
    return {
        "completed": f"{removed}{words.format_time_taken(outcome.seconds)}",
        "adopted": f"completed by another writer; {removed}",
        "undone": "nothing was left to do, so the pending instant was removed",
        "inflight": f"{removed}; it stays inflight until the next apply",
        "nothing": f"nothing left to do{_already(outcome)}",
        "failed": "nothing was done",
    }[outcome.how]


def _describe_own_part(outcome: StepOutcome) -> str | None:
    """Describe an outcome by the part that only its kind of step has; None without one."""
    parts: tuple[tuple[Any, Callable[[StepOutcome, Any], str]], ...] = (
        (outcome.rewritten, describe_rewrite),
        (outcome.indexed, describe_index),
        (outcome.deletion, describe_deletion),
        (outcome.savepoint, describe_outcome),
        (outcome.archived, describe_archival),
        (outcome.repaired, describe_repair),
    )
    return next((describe(outcome, part) for part, describe in parts if part is not None), None)


def _describe_rollback(outcome: StepOutcome) -> str:
    files = "it had no files"
    if outcome.removed:
        removed = words.format_count(outcome.removed, "file")
        files = f"removed {removed}, {words.format_size(outcome.bytes)}, that no reader has seen"
    if outcome.how in ("undone", "completed"):
        return f"rolled back the dead write; {files}{_already(outcome)}"
    if outcome.how == "adopted":
        return f"another writer completed the rollback; {files}{_already(outcome)}"
    if outcome.how == "inflight":
        return f"the rollback stays inflight until the next apply; {files}"
    if outcome.left_out or outcome.how == "failed":
        return "the write is not rolled back" + (f"; {files}" if outcome.removed else "")
    return f"nothing left to do{_already(outcome)}"


def _already(outcome: StepOutcome) -> str:
    if not outcome.gone:
        return ""
    return f", {words.format_count(outcome.gone, 'file')} already removed"


def _file_lines(label: str, what: str, files: FileReasons, terminal: Terminal) -> Iterator[str]:
    yield from terminal.item(label, f"{words.format_count(len(files), 'file')} {what}")
    reasons = files.count_reasons()
    sentences = [f"{words.format_count(count, 'file')}: {reason}" for reason, count in reasons]
    yield from terminal.details(sentences, _MAX_REASONS, "reason")


def _note_lines(notes: Iterable[Note], terminal: Terminal) -> Iterator[str]:
    for note in notes:
        yield from terminal.note(terminal.warn("! warning"), note)


def _sum_work(result: ApplyResult) -> tuple[str, ...]:
    tables = result.tables
    return sum_repairs(tables), sum_rewrites(tables), sum_indexes(tables)


def _summary_lines(result: ApplyResult, terminal: Terminal) -> Iterator[str]:
    removed = sum(table.removed for table in result.tables)
    size = f" ({words.format_size(sum(table.bytes for table in result.tables))})" if removed else ""
    took = f" in {words.format_duration(result.seconds)}" if result.seconds >= 1 else ""
    sums = (sum_repairs, sum_savepoints, sum_deletions, sum_rewrites, sum_indexes, sum_archivals)
    done = [part for part in (count(result.tables) for count in sums) if part]
    done += [] if done and not removed else [f"{words.format_count(removed, 'file')} removed{size}"]
    label = f"{terminal.strong('Result:')} "
    yield from terminal.wrap(label, f"{count_statuses(result)}; {', '.join(done)}{took}.", 2)
    costs = describe_result_costs(result.tables)
    if costs and len(result.tables) > 1:
        yield from terminal.paragraph(f"Costs: {costs}.")
    yield f"{terminal.strong('Plan digest:')} {result.plan_digest}"


# --- JSON ----------------------------------------------------------------------------------------


def _table_document(table: TableResult) -> Mapping[str, Any]:
    return {
        "name": table.name,
        "path": table.path,
        "status": table.status,
        "exitCode": table.exit_code,
        "outcomes": [outcome.to_document(_file_documents) for outcome in table.outcomes],
        **table.document,
        **({} if table.costs is None else {"costs": canonical_json.to_document(table.costs)}),
    }


def _file_documents(files: FileReasons | None) -> list[Mapping[str, str]]:
    if files is None:
        return []
    columns = (files.partition.to_pylist(), files.name.to_pylist(), files.because.to_pylist())
    return [
        {"partition": partition, "name": name, "because": because}
        for partition, name, because in zip(*columns, strict=True)
    ]
