"""The result of an apply as one comment on the pull request of its plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.executor.origin import Origin
from reconciler.executor.outcomes import IndexOutcome
from reconciler.executor.result import ApplyResult, TableResult
from reconciler.plans.model import Note
from reconciler.render import result as result_render
from reconciler.render import words
from reconciler.render.archive_result import list_left_reasons, sum_archivals
from reconciler.render.cluster_result import describe_left_group, sum_rewrites
from reconciler.render.costs import describe_result_costs
from reconciler.render.deletion_step import sum_deletions
from reconciler.render.index_result import sum_indexes
from reconciler.render.markdown_escape import code_span, escape_markdown, folded_block
from reconciler.render.metadata_result import sum_repairs
from reconciler.render.page import Page
from reconciler.render.plan_markdown import clip_block, clip_text, comment_marker, comment_title
from reconciler.render.savepoints import describe_outcome, sum_savepoints
from reconciler.render.terminal import Terminal

_MAX_DETAIL_LINES: Final = 40
_MAX_REASON_LENGTH: Final = 600
_TABLE_HEAD: Final = "\n| table | result | removed | freed | skipped |\n|---|---|---:|---:|---:|\n"
_FULL_RESULT: Final = f"see {code_span('--format json')}"


def result_markdown(result: ApplyResult, origin: Origin | None = None) -> str:
    """Return the comment, which also names the origin of the apply as far as it is known."""
    origin = origin or Origin()
    page = Page(end=_end_line(result, origin))
    head = comment_title("apply", origin.environment, result_render.count_statuses(result))
    marker = comment_marker("apply", origin.environment)
    page.add_block(f"{marker}\n{head}\n{_describe_effect(result)}\n{_cost_line(result)}")
    tables = result_render.tables_worst_first(result)
    troubles = [line for table in tables for line in _trouble_lines(table)]
    if troubles:
        page.add_block("\n**Needs attention**\n\n")
        page.add_blocks(
            troubles, len(troubles), 0.3, lambda n: f"- … and {n} more, {_FULL_RESULT}\n"
        )
    touched = [table for table in tables if not table.unchanged]
    if touched:
        page.add_block(_TABLE_HEAD)
        more = f"| … {{}} more, {_FULL_RESULT} | | | | |\n"
        rows = (_table_row(table) for table in touched)
        page.add_blocks(rows, len(touched), 0.4, lambda n: more.format(words.format_number(n)))
    details = (_folded_details(table) for table in touched)
    left = f"\nDetails of {{}} are omitted: {_FULL_RESULT}.\n"
    page.add_blocks(
        details, len(touched), 1.0, lambda n: left.format(words.format_count(n, "table"))
    )
    return page.text


def _cost_line(result: ApplyResult) -> str:
    costs = describe_result_costs(result.tables)
    return f"\n**Costs**: {escape_markdown(costs)}.\n" if costs else ""


def _describe_effect(result: ApplyResult) -> str:
    removed = sum(table.removed for table in result.tables)
    size = words.format_size(sum(table.bytes for table in result.tables))
    took = words.format_time_taken(result.seconds)
    deleted = f"**{words.format_count(removed, 'file')}**, **{size}**"
    sums = (sum_repairs, sum_savepoints, sum_deletions, sum_rewrites, sum_indexes, sum_archivals)
    parts = [count(result.tables) for count in sums]
    done = [f"**{part}**" for part in parts if part]
    done += [f"{'removed' if done else 'Removed'} {deleted}"] if removed else []
    meaning = result_render.EXIT_MEANINGS.get(result.exit_code)
    rest = f" Exit code {result.exit_code}: {meaning.replace('above', 'below')}." if meaning else ""
    return (f"{', '.join(done)}{took}." if done else "Nothing was removed.") + rest


def _trouble_lines(table: TableResult) -> list[str]:
    """A line for every error, for every refusal and for every reason to skip something."""
    label, name = f"**{result_render.status_label(table)}**", code_span(clip_text(table.name))
    sentences = [] if table.error is None else [table.error]
    sentences += [_describe_refusal(note) for note in table.refusals]
    for outcome in table.outcomes:
        sentences += [f"{note.because} ({note.rule})" for note in outcome.differences]
        for what, rows in (("could not be deleted", outcome.failed), ("skipped", outcome.left_out)):
            reasons = rows.count_reasons() if rows else ()
            sentences += [
                f"{words.format_count(n, 'file')} {what}: {because}" for because, n in reasons
            ]
        sentences += [
            f"folder {note.rule} kept: {note.because}" for note in outcome.partitions_left
        ]
        partitions = outcome.deletion.left if outcome.deletion else ()
        sentences += [f"partition {each.path} kept: {each.because}" for each in partitions]
        left = outcome.rewritten.left if outcome.rewritten else ()
        sentences += [f"skipped: {describe_left_group(group)}" for group in left]
        sentences += _index_troubles(outcome.indexed) if outcome.indexed else []
        if outcome.savepoint and outcome.savepoint.left:
            sentences.append(describe_outcome(outcome, outcome.savepoint))
        left_active = list_left_reasons(outcome.archived) if outcome.archived else []
        sentences += [f"not archived: {reason}" for reason in left_active]
        repairs = outcome.repaired.left if outcome.repaired else ()
        sentences += [f"skipped: {', '.join(one.partitions)}: {one.because}" for one in repairs]
        if outcome.kind == "rollback" and outcome.how == "failed":
            sentences += [
                f"a write is not rolled back: {note.because}" for note in outcome.warnings
            ]
    return [
        f"- {label} {name}: {escape_markdown(clip_text(line, _MAX_REASON_LENGTH))}\n"
        for line in sentences
    ]


def _describe_refusal(note: Note) -> str:
    which = "" if note.step is None else f"{words.describe_refused(note.step)}: "
    return f"{which}{note.because} ({note.rule})"


def _index_troubles(done: IndexOutcome) -> list[str]:
    sentences = [f"not indexed: {note.because}" for note in done.left]
    return (
        sentences
        if done.error is None
        else [f"the index was not written: {done.error}", *sentences]
    )


def _table_row(table: TableResult) -> str:
    size = words.format_size(table.bytes).replace(" ", "&nbsp;")
    skipped = sum(len(o.left_out or ()) + len(o.failed or ()) for o in table.outcomes)
    groups = sum(len(result.left) for result in table.rewritten)
    rows = [words.format_count(skipped, "file")] if skipped else []
    rows += [words.format_count(groups, "group")] if groups else []
    partitions = sum(len(o.deletion.left) for o in table.outcomes if o.deletion)
    rows += [words.format_count(partitions, "partition")] if partitions else []
    label = result_render.status_label(table)
    cells = (
        code_span(clip_text(table.name)),
        label if table.status == "done" else f"**{label}**",
        words.format_count(table.removed, "file") if table.removed else "—",
        f"**{size}**" if table.bytes else "—",
        ", ".join(rows) or "—",
    )
    return f"| {' | '.join(cells)} |\n"


def _folded_details(table: TableResult) -> str:
    lines = result_render.render_table(table, Terminal())
    return folded_block(code_span(clip_text(table.name)), clip_block(lines, _MAX_DETAIL_LINES, ""))


def _end_line(result: ApplyResult, origin: Origin) -> str:
    parts: Sequence[tuple[str, str | None]] = (
        ("Plan", result.plan_digest),
        ("applied by", origin.actor),
        ("specs at", origin.spec_commit),
    )
    shown = (f"{what} {code_span(clip_text(text))}" for what, text in parts if text)
    return f"\n{' · '.join(shown)}\n"
