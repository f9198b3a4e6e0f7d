"""A plan as one comment on a pull request: what matters first, details folded, never too long.

Everything that others chose (names, paths, owners, reasons) is made inert: inside code fences by a
fence longer than any run of backticks, elsewhere by character references. Blocks are whole or left
out, so that what is cut stays well-formed.
"""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from reconciler.plan.document import plan_digest
from reconciler.plan.model import Note, Plan, TablePlan
from reconciler.render import summary, text, words
from reconciler.render.danger import most_dangerous_first
from reconciler.render.inert import code, fenced, inert
from reconciler.render.page import Page
from reconciler.render.paint import Paint

#: a forge takes 65 536 characters, counted as UTF-16 does; as UTF-8 this is far below 262 144 bytes
LIMIT: Final = 60_000

_DETAIL_LINES: Final = 60
#: of what others chose, so that nobody can push out the rest
_LONGEST_NAME: Final = 200
_LONGEST_REASON: Final = 600
_LONGEST_LINE: Final = 300
_LEAST: Final = 10_000
_UNSAFE_IN_MARKER: Final = re.compile(r"[^A-Za-z0-9._/-]|(?<=-)-")
#: what policies decide, from outside the tables' own files
_POLICY_RULES: Final = frozenset(
    {"protected", "requireLock", "minRetention", "maxFilesRemoved", "maxBytesRemoved", "maxRewrite"}
)
_WAIVED: Final = "waived "


def plan_markdown(
    plan: Plan,
    *,
    limit: int = LIMIT,
    artifact: str | None = None,
    environment: str | None = None,
    digest: str | None = None,
) -> str:
    """The comment, at most ``limit`` characters as UTF-16 counts them (10 000 at least).

    ``artifact``: where the whole plan is, a URL or a file name. ``environment``: what the plan is
    for; its comment is one of its own, so that the next plan for it finds it.
    """
    whole = f"see {_pointer(artifact)}"
    page = Page(limit=max(limit, _LEAST))
    page.end = _end(plan, digest or plan_digest(plan), environment)
    page.add(_opening(plan, environment))
    for notes, share in ((_policies(plan), 0.2), (_troubles(plan), 0.2)):
        page.add_some(
            notes, len(notes), share, lambda n: f"- … and {words.number(n)} more, {whole}\n"
        )
    changing = most_dangerous_first(
        table for table in plan.tables if summary.verdict(table) in ("blocked", "change")
    )
    if changing:
        head, rows = _overview(changing)
        page.add(head)
        columns = " |" * (head.count("|", 0, head.index("|\n")) - 1)
        more = f"| … {{}} more, {whole} |{columns}\n"
        page.add_some(rows, len(rows), 0.35, lambda n: more.format(words.number(n)))
    unchanged = summary.biggest_first(plan, "unchanged")
    reserved = _folded_unchanged(unchanged, page.room // 4, whole) if unchanged else ""
    page.reserve(reserved)
    detailed = [table for table in changing if table.has_changes or table.drift]
    detailed += [table for table in unchanged if _simulates(table)]
    details = (_details(table, whole) for table in detailed)
    left = f"\nDetails of {{}} left out: {whole}.\n"
    page.add_some(details, len(detailed), 1.0, lambda n: left.format(words.count(n, "table")))
    page.reserve("")
    page.add(reserved)
    return page.text


def marker(kind: str, environment: str | None) -> str:
    """What tells a comment of ours from others of the same pull request.

    >>> marker("plan", None), marker("apply", "prod eu-->")
    ('<!-- reconciler:plan:default -->', '<!-- reconciler:apply:prodeu- -->')
    """
    name = _UNSAFE_IN_MARKER.sub("", environment or "") or "default"
    return f"<!-- reconciler:{kind}:{name} -->"


def title(what: str, environment: str | None, outcome: str) -> str:
    """The heading of a comment."""
    parts = (f"reconciler {what}", inert(clipped(environment or "")), outcome)
    return f"### {' · '.join(part for part in parts if part)}\n"


def _opening(plan: Plan, environment: str | None) -> str:
    sums = summary.totals(plan)
    effect = text.effect(sums, lambda figure: f"**{figure}**")
    chosen = ""
    if plan.selection is not None:
        chosen = f" Selected by {code(clipped(words.selectors(plan.selection)))}."
    head = title("plan", environment, text.outcome(plan))
    return f"{marker('plan', environment)}\n{head}\n{effect}{chosen}\n{_declared_no_more(plan)}"


def _declared_no_more(plan: Plan) -> str:
    """What a branch takes out of management, which no table of the plan can tell."""
    removed = plan.selection.removed if plan.selection is not None else ()
    said = inert(words.unmanaged([clipped(name) for name in removed]))
    return f"\n**No longer declared**: {said}.\n" if removed else ""


# --- what somebody must look at ------------------------------------------------------------------


def _policies(plan: Plan) -> list[str]:
    """A line for every verdict of a policy: what it blocks, what it warns of, what is waived."""
    blocked, warned, waived = [], [], []
    for table in most_dangerous_first(plan.tables):
        of_policies = [note for note in table.refusals if note.rule in _POLICY_RULES]
        blocked += [_line("blocked", table, note) for note in of_policies]
        for note in table.warnings:
            if note.rule not in _POLICY_RULES:
                continue
            if note.because.startswith(_WAIVED):
                said = Note(note.rule, note.because.removeprefix(_WAIVED))
                waived.append(_line("waived", table, said))
            else:
                warned.append(_line("warning", table, note))
    return _headed("Policies", [*blocked, *warned, *waived])


def _troubles(plan: Plan) -> list[str]:
    """A line for every table that can't be read, and for what blocks one and is no policy."""
    errors = [
        f"- **error** {_name(table)}: {inert(_reason(table.error or ''))}\n"
        for table in summary.biggest_first(plan, "error")
    ]
    blocked = [
        _line("blocked", table, note)
        for table in most_dangerous_first(plan.tables)
        for note in table.refusals
        if note.rule not in _POLICY_RULES
    ]
    return _headed("Needs attention", [*errors, *blocked])


def _headed(heading: str, lines: list[str]) -> list[str]:
    return [f"\n**{heading}**\n\n{lines[0]}", *lines[1:]] if lines else []


def _line(verdict: str, table: TablePlan, note: Note) -> str:
    rule, because = inert(clipped(note.rule)), inert(_reason(note.because))
    return f"- **{verdict}** {_name(table)} ({rule}): {because}\n"


# --- what changes --------------------------------------------------------------------------------


def _overview(tables: Sequence[TablePlan]) -> tuple[str, list[str]]:
    """The head of the table of changes, and its rows."""
    owned = any(_owner(table) for table in tables)
    clustered = any(table.impact.bytes_rewritten for table in tables)
    owner, rule = (" owner |", "---|") if owned else ("", "")
    rewrites, line = (" rewrites |", "---:|") if clustered else ("", "")
    head = (
        f"\n| table |{owner}{rewrites} removes | frees | of the table | time travel | verdict |\n"
        f"|---|{rule}{line}---:|---:|---:|---|---|\n"
    )
    return head, [_row(table, owned=owned, clustered=clustered) for table in tables]


def _row(table: TablePlan, *, owned: bool, clustered: bool) -> str:
    impact, owner = table.impact, _owner(table)
    removes = words.count(impact.files_removed, "file") if table.has_changes else "—"
    frees, share = "—", "—"
    if impact.bytes_removed:
        whole = 0 if table.observed is None else table.observed.bytes
        frees = f"**{words.size(impact.bytes_removed).replace(' ', '&nbsp;')}**"
        share = inert(words.share(impact.bytes_removed, whole)) if whole else "—"
    verdict = "**blocked**" if table.refusals else "to change"
    if table.warnings:
        verdict += f", {words.count(len(table.warnings), 'warning')}"
    whose = [code(owner) if owner else "—"] if owned else []
    size = words.size(impact.bytes_rewritten).replace(" ", "&nbsp;")
    rewrites = [size if impact.bytes_rewritten else "—"] if clustered else []
    cells = [_name(table), *whose, *rewrites, removes, frees, share, _window(table), verdict]
    return f"| {' | '.join(cells)} |\n"


def _window(table: TablePlan) -> str:
    """How far back a read can go: in words that fit a column; the details have the dates."""
    impact, observed = table.impact, table.observed
    last = None if observed is None else observed.last_completed
    before = words.between(impact.earliest_readable_before, last)
    after = words.between(impact.earliest_readable_after, last)
    if not table.has_changes or before is None or after is None:
        said = summary.time_travel(table) if table.has_changes else None
        return inert(clipped(said or "—"))
    old, new = (words.span(reach.total_seconds()) for reach in (before, after))
    if impact.earliest_readable_before == impact.earliest_readable_after:
        return f"{new}, as before"
    return f"{old} → **{new}**" if old != new else f"about {new}, as before"


def _owner(table: TablePlan) -> str:
    owner = table.spec.get("owner")
    return clipped(owner) if isinstance(owner, str) else ""


def _details(table: TablePlan, whole: str) -> str:
    lines = text.table_lines(table, Paint(is_on=False))
    shown = [clipped(_as_diff(line), _LONGEST_LINE) for line in lines[:_DETAIL_LINES]]
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


def _simulates(table: TablePlan) -> bool:
    """Whether somebody asked what the next rows would do."""
    return table.file_sizes is not None and table.file_sizes.next_insert is not None


def _folded_unchanged(tables: Sequence[TablePlan], room: int, whole: str) -> str:
    head = f"\n<details><summary>{words.count(len(tables), 'table')} unchanged</summary>\n\n"
    end = "\n</details>\n"
    page = Page(limit=max(room, len(head) + len(end) + 200), end=end)
    page.add(head)
    lines = [f"- {_name(t)}: {inert(_reason(summary.unchanged_because(t)))}\n" for t in tables]
    page.add_some(lines, len(lines), 1.0, lambda n: f"- … and {words.number(n)} more, {whole}\n")
    return page.text


# --- what happens next ---------------------------------------------------------------------------


_CLUSTERED: Final = """\
- A write to a file slice that is to be rewritten leaves out the group that the slice is in.
"""
_VALIDITY: Final = """\

<details><summary>How long this plan holds: neither time nor new commits end it, this does</summary>

- Editing or removing a table's spec, or its path, leaves that table out whole.
- A savepoint, or work pending on the table, takes out the files that it protects; the rest runs.
- A stricter policy, or a waiver that has ended, blocks the table: policies are asked again.
{clustered}\
- A later plan replaces this one: its digest is another, and <code>--digest</code> refuses this one.

Nothing is {touched} that this plan does not name. What falls out is reported, with exit code 4.
</details>
"""


def _end(plan: Plan, digest: str, environment: str | None) -> str:
    """The digest and, where there is work, how long it holds and how it is applied."""
    made = f" · made {inert(clipped(_moment(plan.created_at)))} by {inert(clipped(plan.tool))}"
    said = f"\nDigest {code(digest)}{made}\n"
    if not summary.totals(plan).change:
        return said
    chosen = f" --env {shlex.quote(clipped(words.plain(environment)))}" if environment else ""
    command = (
        f"reconciler apply plan.json --specs specs{chosen} \\",
        f"  --digest {words.plain(digest)}",
    )
    is_clustered = summary.totals(plan).rewritten > 0
    holds = _VALIDITY.format(
        clustered=_CLUSTERED if is_clustered else "",
        touched="removed or rewritten" if is_clustered else "removed",
    )
    return f"{said}{holds}\nOnce it is approved:\n\n{fenced(command, 'sh')}"


def _moment(created_at: str) -> str:
    """A moment with its offset, in UTC and to the minute.

    >>> _moment("2026-11-21T10:00:00+01:00"), _moment("once")
    ('2026-11-21 09:00 UTC', 'once')
    """
    try:
        moment = datetime.fromisoformat(created_at)
        if moment.tzinfo is not None:
            return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        pass
    return created_at


def _name(table: TablePlan) -> str:
    return code(clipped(table.name))


def _reason(said: str) -> str:
    return clipped(said, _LONGEST_REASON)


def clipped(said: str, longest: int = _LONGEST_NAME) -> str:
    """Text of others, cut where it is so long that it would push out the rest."""
    return said if len(said) <= longest else said[: longest - 1] + "…"


def _pointer(artifact: str | None) -> str:
    if artifact is None:
        return code("plan.json")
    if artifact.startswith(("https://", "http://")):
        return f'<a href="{html.escape(words.plain(artifact))}">the whole plan</a>'
    return code(artifact)
