"""What an apply did, as one comment on the pull request whose plan it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.apply.result import Indexed, Result, TableResult
from reconciler.render import result as said
from reconciler.render import words
from reconciler.render.index_result import all_indexed
from reconciler.render.inert import code, fenced, inert
from reconciler.render.markdown import LIMIT, clipped, marker, title
from reconciler.render.page import Page
from reconciler.render.paint import Paint
from reconciler.render.rewritten import all_rewritten, left_line

_DETAIL_LINES: Final = 40
_LONGEST_LINE: Final = 300
_LONGEST_REASON: Final = 600
_ROWS: Final = "\n| table | result | removed | freed | stayed |\n|---|---|---:|---:|---:|\n"
_WHOLE: Final = f"see {code('--format json')}"


def result_markdown(
    result: Result,
    *,
    environment: str | None = None,
    actor: str | None = None,
    spec_commit: str | None = None,
    limit: int = LIMIT,
) -> str:
    """The comment, at most ``limit`` characters as UTF-16 counts them (10 000 at least).

    ``actor`` and ``spec_commit`` say who applied it, and from which specs.
    """
    page = Page(limit=max(limit, 10_000))
    page.end = _end(result, actor, spec_commit)
    head = title("apply", environment, said.outcome(result))
    page.add(f"{marker('apply', environment)}\n{head}\n{_effect(result)}\n")
    tables = said.worst_first(result)
    troubles = [line for table in tables for line in _troubles(table)]
    if troubles:
        page.add("\n**Needs attention**\n\n")
        page.add_some(troubles, len(troubles), 0.3, lambda n: f"- … and {n} more, {_WHOLE}\n")
    touched = [table for table in tables if not table.unchanged]
    if touched:
        page.add(_ROWS)
        more = f"| … {{}} more, {_WHOLE} | | | | |\n"
        rows = (_row(table) for table in touched)
        page.add_some(rows, len(touched), 0.4, lambda n: more.format(words.number(n)))
    details = (_details(table) for table in touched)
    left = f"\nDetails of {{}} left out: {_WHOLE}.\n"
    page.add_some(details, len(touched), 1.0, lambda n: left.format(words.count(n, "table")))
    return page.text


def _effect(result: Result) -> str:
    removed = sum(table.removed for table in result.tables)
    size = words.size(sum(table.bytes for table in result.tables))
    took = f", in {words.span(result.seconds)}" if result.seconds >= 1 else ""
    gone = f"**{words.count(removed, 'file')}**, **{size}**"
    parts = (all_rewritten(result.tables), all_indexed(result.tables))
    done = [f"**{part}**" for part in parts if part]
    done += [f"{'removed' if done else 'Removed'} {gone}"] if removed else []
    meaning = said.MEANINGS.get(result.exit_code)
    rest = f" Exit code {result.exit_code}: {meaning.replace('above', 'below')}." if meaning else ""
    return (f"{', '.join(done)}{took}." if done else "Nothing was removed.") + rest


def _troubles(table: TableResult) -> list[str]:
    """A line for what went wrong, for each refusal and for each reason why something stayed."""
    label, name = f"**{said.label(table)}**", code(clipped(table.name))
    found = [] if table.error is None else [table.error]
    found += [f"{note.because} ({note.rule})" for note in table.refusals]
    for outcome in table.outcomes:
        found += [f"{note.because} ({note.rule})" for note in outcome.differences]
        for what, rows in (("could not be deleted", outcome.failed), ("stayed", outcome.left_out)):
            reasons = rows.reasons() if rows else ()
            found += [f"{words.count(n, 'file')} {what}: {because}" for because, n in reasons]
        found += [f"folder {note.rule} stays: {note.because}" for note in outcome.partitions_left]
        left = outcome.rewritten.left if outcome.rewritten else ()
        found += [f"stayed: {left_line(one)}" for one in left]
        found += _not_indexed(outcome.indexed) if outcome.indexed else []
        if outcome.kind == "rollback" and outcome.how == "failed":
            found += [f"a write is not taken back: {note.because}" for note in outcome.warnings]
    return [f"- {label} {name}: {inert(clipped(line, _LONGEST_REASON))}\n" for line in found]


def _not_indexed(done: Indexed) -> list[str]:
    found = [f"left out of the index: {note.because}" for note in done.left]
    return found if done.error is None else [f"no index was written: {done.error}", *found]


def _row(table: TableResult) -> str:
    size = words.size(table.bytes).replace(" ", "&nbsp;")
    stayed = sum(len(o.left_out or ()) + len(o.failed or ()) for o in table.outcomes)
    groups = sum(len(one.left) for one in table.rewritten)
    rows = [words.count(stayed, "file")] if stayed else []
    rows += [words.count(groups, "group")] if groups else []
    cells = (
        code(clipped(table.name)),
        said.label(table) if table.status == "done" else f"**{said.label(table)}**",
        words.count(table.removed, "file") if table.removed else "—",
        f"**{size}**" if table.bytes else "—",
        ", ".join(rows) or "—",
    )
    return f"| {' | '.join(cells)} |\n"


def _details(table: TableResult) -> str:
    lines = said.table_lines(table, Paint(is_on=False))
    shown = [clipped(line, _LONGEST_LINE) for line in lines[:_DETAIL_LINES]]
    if len(lines) > _DETAIL_LINES:
        shown.append(f"  … {words.count(len(lines) - _DETAIL_LINES, 'more line')}")
    summary = code(clipped(table.name))
    return f"\n<details><summary>{summary}</summary>\n\n{fenced(shown, '')}</details>\n"


def _end(result: Result, actor: str | None, spec_commit: str | None) -> str:
    parts: Sequence[tuple[str, str | None]] = (
        ("Plan", result.plan_digest),
        ("applied by", actor),
        ("specs at", spec_commit),
    )
    return f"\n{' · '.join(f'{what} {code(clipped(text))}' for what, text in parts if text)}\n"
