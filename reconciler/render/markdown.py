"""A plan as one comment on a pull request: what matters first, details folded, never too long.

Everything that others chose (names, paths, reasons) is made inert: inside code fences by a fence
longer than any run of backticks, elsewhere by character references. Blocks are whole or left out,
so that what is cut stays well-formed.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reconciler.plan.document import plan_digest
from reconciler.plan.model import Plan, TablePlan
from reconciler.render import summary, text, words
from reconciler.render.inert import code, fenced, inert
from reconciler.render.paint import Paint

_DETAIL_LINES = 60
_LONGEST_NAME = 200
_ROWS = "| table | removes | frees | time travel | verdict |\n|---|---:|---:|---|---|"


def plan_markdown(
    plan: Plan,
    *,
    limit: int = 60_000,
    artifact: str | None = None,
    marker: str = "default",
    digest: str | None = None,
) -> str:
    """The comment, at most ``limit`` characters (1 000 at least).

    ``artifact``: where the whole plan is, a URL or a file name. ``marker``: what tells this comment
    from others of the same pull request, so that the next plan can replace it.
    """
    whole = f"see {_pointer(artifact)}"
    page = _Page(limit=max(limit, 1_000))
    page.end(f"\nDigest {code(digest or plan_digest(plan))}\n")
    page.add(_opening(plan, marker))
    page.add_some(list(_refused(plan)), 0.2, lambda n: f"- … and {words.number(n)} more, {whole}\n")
    changing = [
        *summary.biggest_first(plan, "blocked"),
        *summary.biggest_first(plan, "change"),
    ]
    if changing:
        page.add(f"\n{_ROWS}\n")
        rows = [_row(table) for table in changing]
        page.add_some(rows, 0.35, lambda n: f"| … {words.number(n)} more, {whole} | | | | |\n")
    unchanged = summary.biggest_first(plan, "unchanged")
    reserved = _folded_unchanged(unchanged, page.room // 4, whole) if unchanged else ""
    page.reserve(len(reserved))
    details = [_details(table, whole) for table in changing if table.has_changes or table.drift]
    page.add_some(
        details,
        1.0,
        lambda n: f"\nDetails of {words.count(n, 'table')} left out: {whole}.\n",
    )
    page.reserve(0)
    page.add(reserved)
    return page.text


@dataclass(slots=True)
class _Page:
    """Text that grows block by block and keeps room for its end."""

    limit: int
    text_: str = ""
    end_: str = ""
    reserved: int = 0

    @property
    def text(self) -> str:
        return self.text_ + self.end_

    @property
    def room(self) -> int:
        return self.limit - len(self.text) - self.reserved

    def end(self, block: str) -> None:
        self.end_ = block

    def reserve(self, length: int) -> None:
        self.reserved = length

    def add(self, block: str) -> bool:
        """Add the block when there is room for it."""
        if len(block) > self.room:
            return False
        self.text_ += block
        return True

    def add_some(self, blocks: Sequence[str], share: float, rest: Callable[[int], str]) -> None:
        """Add blocks in order up to a share of the room, then say how many are left out."""
        budget = int(self.room * share)
        longest = len(rest(len(blocks)))
        for number, block in enumerate(blocks):
            is_last = number + 1 == len(blocks)
            if len(block) + (0 if is_last else longest) > budget or not self.add(block):
                self.add(rest(len(blocks) - number))
                return
            budget -= len(block)


def _opening(plan: Plan, marker: str) -> str:
    sums = summary.totals(plan)
    name = "".join(c for c in marker if c.isalnum() or c in "._/") or "default"
    effect = "Nothing to apply."
    if sums.files:
        size = words.size(sums.bytes)
        effect = f"Applying removes **{words.count(sums.files, 'file')}** and frees **{size}**."
    elif sums.change:
        effect = "Applying removes no files."
    return (
        f"<!-- reconciler:plan:{name} -->\n### reconciler plan · {text.outcome(plan)}\n\n{effect}\n"
    )


def _refused(plan: Plan) -> Iterator[str]:
    """A line for every error and refusal, under a heading of its own."""
    start = "\n**Needs attention**\n\n"
    for table in summary.biggest_first(plan, "error"):
        yield f"{start}- {_name(table)} could not be read: {inert(table.error or '')}\n"
        start = ""
    for table in summary.biggest_first(plan, "blocked"):
        for note in table.refusals:
            said = f"({inert(note.rule)}): {inert(note.because)}"
            yield f"{start}- {_name(table)} is blocked {said}\n"
            start = ""


def _row(table: TablePlan) -> str:
    impact = table.impact
    removes = words.count(impact.files_removed, "file") if table.has_changes else "—"
    frees = f"**{words.size(impact.bytes_removed)}**" if impact.bytes_removed else "—"
    window = summary.time_travel(table) if table.has_changes else None
    verdict = "**blocked**" if table.refusals else "to change"
    warned = words.count(len(table.warnings), "warning") if table.warnings else ""
    said = f"{verdict}, {warned}" if warned else verdict
    return f"| {_name(table)} | {removes} | {frees} | {inert(window or '—')} | {said} |\n"


def _details(table: TablePlan, whole: str) -> str:
    lines = text.table_lines(table, Paint(is_on=False))
    shown = [_as_diff(line) for line in lines[:_DETAIL_LINES]]
    if len(lines) > _DETAIL_LINES:
        shown.append(f"  … {words.count(len(lines) - _DETAIL_LINES, 'more line')}")
    pointer = f"\n{whole[0].upper()}{whole[1:]} for every file.\n" if table.has_changes else ""
    body = fenced(shown, "diff")
    return f"\n<details><summary>{_name(table)}</summary>\n\n{body}{pointer}</details>\n"


def _as_diff(line: str) -> str:
    """The line with its sign in the first column, where a diff block colours it."""
    sign = line.strip()[:1]
    if line.startswith("  ") and not line.startswith("   ") and sign in "-+!~=":
        return line if sign == "=" else f"{'!' if sign == '~' else sign} {line[4:]}"
    return f"  {line}" if line[:1] in "-+!@#" else line


def _folded_unchanged(tables: Sequence[TablePlan], room: int, whole: str) -> str:
    head = f"\n<details><summary>{words.count(len(tables), 'table')} unchanged</summary>\n\n"
    end = "\n</details>\n"
    page = _Page(limit=max(room, len(head) + len(end) + 200))
    page.end(end)
    page.add(head)
    lines = [f"- {_name(t)}: {inert(summary.unchanged_because(t))}\n" for t in tables]
    page.add_some(lines, 1.0, lambda n: f"- … and {words.number(n)} more, {whole}\n")
    return page.text


def _name(table: TablePlan) -> str:
    return code(_clipped(table.name))


def _clipped(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _pointer(artifact: str | None) -> str:
    if artifact is None:
        return code("plan.json")
    if artifact.startswith(("https://", "http://")):
        return f'<a href="{html.escape(words.plain(artifact))}">the whole plan</a>'
    return code(artifact)
