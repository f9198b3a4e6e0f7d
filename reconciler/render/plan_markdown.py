"""A plan as one comment on a pull request: important parts first, details folded, bounded length.

Text of others (names, paths, owners, reasons) is escaped: inside code blocks by a fence longer than
any run of backticks, elsewhere by character references. Blocks are added whole or omitted, so that
the comment stays well-formed.
"""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import ClusterStep, Note, ResumeStep, TablePlan
from reconciler.plans.plan import Plan
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.render import plan_summary, plan_text, words
from reconciler.render.costs import describe_costs, format_monthly
from reconciler.render.markdown_escape import code_block, code_span, escape_markdown, folded_block
from reconciler.render.page import COMMENT_LIMIT, Page
from reconciler.render.review_order import sort_by_risk
from reconciler.render.terminal import Terminal

_MAX_DETAIL_LINES: Final = 60
#: limits of text of others, so that nobody can push out the rest
_MAX_NAME_LENGTH: Final = 200
_MAX_REASON_LENGTH: Final = 600
_MAX_LINE_LENGTH: Final = 300
_MIN_LIMIT: Final = 10_000
_UNSAFE_IN_MARKER: Final = re.compile(r"[^A-Za-z0-9._/-]|(?<=-)-")
#: rules of policies, which are outside the tables' own files
_POLICY_RULES: Final = frozenset(
    {
        "protected",
        "requireLock",
        "minRetention",
        "maxFilesRemoved",
        "maxBytesRemoved",
        "maxRewrite",
        "maxPartitionsRemoved",
        "protectedPartitions",
    }
)
_WAIVED_PREFIX: Final = "waived "
#: verdict of a table in the overview
_VERDICT_LABELS: Final[Mapping[str, str]] = {
    "blocked": "**blocked**",
    "blockedInPart": "**blocked in part**",
    "change": "to change",
}


def plan_markdown(
    plan: Plan,
    *,
    limit: int = COMMENT_LIMIT,
    artifact: str | None = None,
    environment: str | None = None,
) -> str:
    """Return the comment with at most ``limit`` UTF-16 characters (10 000 at least).

    ``artifact``: URL or file name of the whole plan. ``environment``: each one has its own comment,
    so that the next plan for it edits that comment.
    """
    whole = f"see {_artifact_link(artifact)}"
    page = Page(limit=max(limit, _MIN_LIMIT))
    page.end = _end_block(plan, environment)
    page.add_block(_opening_block(plan, environment))
    for notes, share in ((_policy_lines(plan), 0.2), (_trouble_lines(plan), 0.2)):
        page.add_blocks(
            notes, len(notes), share, lambda n: f"- … and {words.format_number(n)} more, {whole}\n"
        )
    changing = sort_by_risk(
        table
        for table in plan.tables
        if plan_summary.table_verdict(table) not in ("error", "unchanged")
    )
    if changing:
        head, rows = _overview_table(changing)
        page.add_block(head)
        columns = " |" * (head.count("|", 0, head.index("|\n")) - 1)
        more = f"| … {{}} more, {whole} |{columns}\n"
        page.add_blocks(rows, len(rows), 0.35, lambda n: more.format(words.format_number(n)))
    unchanged = plan_summary.tables_by_size(plan, "unchanged")
    reserved = _folded_unchanged(unchanged, page.room_left // 4, whole) if unchanged else ""
    page.reserve(reserved)
    detailed = [table for table in changing if table.has_changes or table.drift]
    detailed += [table for table in unchanged if _has_simulation(table)]
    details = (_folded_details(table, whole) for table in detailed)
    left = f"\nDetails of {{}} are omitted: {whole}.\n"
    page.add_blocks(
        details, len(detailed), 1.0, lambda n: left.format(words.format_count(n, "table"))
    )
    page.reserve("")
    page.add_block(reserved)
    return page.text


def comment_marker(kind: str, environment: str | None) -> str:
    """Return the first line of a comment of reconciler, which identifies it later.

    >>> comment_marker("plan", None), comment_marker("apply", "prod eu-->")
    ('<!-- reconciler:plan:default -->', '<!-- reconciler:apply:prodeu- -->')
    """
    name = _UNSAFE_IN_MARKER.sub("", environment or "") or "default"
    return f"<!-- reconciler:{kind}:{name} -->"


def comment_title(what: str, environment: str | None, outcome: str) -> str:
    """Return the heading of a comment."""
    parts = (f"reconciler {what}", escape_markdown(clip_text(environment or "")), outcome)
    return f"### {' · '.join(part for part in parts if part)}\n"


def _opening_block(plan: Plan, environment: str | None) -> str:
    sums = plan_summary.count_totals(plan)
    effect = plan_text.describe_effect(sums, lambda figure: f"**{figure}**")
    chosen = ""
    if plan.selection is not None:
        chosen = f" Selected by {code_span(clip_text(words.format_selectors(plan.selection)))}."
    head = comment_title("plan", environment, plan_text.count_verdicts(plan))
    return (
        f"{comment_marker('plan', environment)}\n{head}\n{effect}{chosen}\n"
        f"{_cost_line(plan)}{_removed_specs(plan)}"
    )


def _cost_line(plan: Plan) -> str:
    """What the whole plan costs and saves; empty without prices."""
    costs = describe_costs(plan.tables)
    return f"\n**Costs**: {escape_markdown(costs)}.\n" if costs else ""


def _removed_specs(plan: Plan) -> str:
    """The specs that a branch removes; no table of the plan shows them."""
    removed = plan.selection.removed if plan.selection is not None else ()
    if not removed:
        return ""
    sentence = words.describe_removed_specs([clip_text(name) for name in removed])
    return f"\n**No longer declared**: {escape_markdown(sentence)}.\n"


# --- what a reviewer must look at ----------------------------------------------------------------


def _policy_lines(plan: Plan) -> list[str]:
    """One line per verdict of a policy: blocked, warned or waived."""
    blocked, warned, waived = [], [], []
    for table in sort_by_risk(plan.tables):
        of_policies = [note for note in table.refusals if note.rule in _POLICY_RULES]
        blocked += [_refusal_line(table, note) for note in of_policies]
        for note in table.warnings:
            if note.rule not in _POLICY_RULES:
                continue
            if note.because.startswith(_WAIVED_PREFIX):
                rest = Note(note.rule, note.because.removeprefix(_WAIVED_PREFIX))
                waived.append(_verdict_line("waived", table, rest))
            else:
                warned.append(_verdict_line("warning", table, note))
    return _add_heading("Policies", [*blocked, *warned, *waived])


def _trouble_lines(plan: Plan) -> list[str]:
    """One line per unreadable table, and per refusal that no policy made."""
    errors = [
        f"- **error** {_name_span(table)}: {escape_markdown(_clip_reason(table.error or ''))}\n"
        for table in plan_summary.tables_by_size(plan, "error")
    ]
    blocked = [
        _refusal_line(table, note)
        for table in sort_by_risk(plan.tables)
        for note in table.refusals
        if note.rule not in _POLICY_RULES
    ]
    return _add_heading("Needs attention", [*errors, *blocked])


def _add_heading(heading: str, lines: list[str]) -> list[str]:
    return [f"\n**{heading}**\n\n{lines[0]}", *lines[1:]] if lines else []


def _refusal_line(table: TablePlan, note: Note) -> str:
    return _verdict_line(words.describe_refused(note.step), table, note)


def _verdict_line(verdict: str, table: TablePlan, note: Note) -> str:
    rule = escape_markdown(clip_text(note.rule))
    because = escape_markdown(_clip_reason(note.because))
    return f"- **{verdict}** {_name_span(table)} ({rule}): {because}\n"


# --- what changes --------------------------------------------------------------------------------


def _overview_table(tables: Sequence[TablePlan]) -> tuple[str, list[str]]:
    """The head of the table of changes, and its rows."""
    owned = any(map(_owner_name, tables))
    clustered = any(table.impact.bytes_rewritten for table in tables)
    owner, rule = (" owner |", "---|") if owned else ("", "")
    rewrites, line = (" rewrites |", "---:|") if clustered else ("", "")
    head = (
        f"\n| table |{owner}{rewrites} removes | frees | of the table | time travel | verdict |\n"
        f"|---|{rule}{line}---:|---:|---:|---|---|\n"
    )
    return head, [_table_row(table, owned=owned, clustered=clustered) for table in tables]


def _table_row(table: TablePlan, *, owned: bool, clustered: bool) -> str:
    impact, owner = table.impact, _owner_name(table)
    is_shown = bool(list_applied_steps(table)) or (table.is_blocked and table.has_changes)
    removes = _describe_removal(table) if is_shown else "—"
    frees, share = "—", "—"
    if impact.bytes_removed:
        whole = 0 if table.observed is None else table.observed.bytes
        frees = f"**{_unbroken_size(impact.bytes_removed)}**{format_monthly(table)}"
        share = escape_markdown(words.format_share(impact.bytes_removed, whole)) if whole else "—"
    verdict = _VERDICT_LABELS[plan_summary.table_verdict(table)]
    warnings = sum(note.rule != "nothingToDo" for note in table.warnings)
    if warnings:
        verdict += f", {words.format_count(warnings, 'warning')}"
    size = _unbroken_size(impact.bytes_rewritten)
    cells = [_name_span(table)]
    cells += [code_span(owner) if owner else "—"] if owned else []
    cells += [size if impact.bytes_rewritten else "—"] if clustered else []
    cells += [removes, frees, share, _time_travel_cell(table), verdict]
    return f"| {' | '.join(cells)} |\n"


def _describe_removal(table: TablePlan) -> str:
    """Return the number of files that go, after the number of partitions that are deleted."""
    files = words.format_count(table.impact.files_removed, "file")
    partitions = plan_summary.count_deleted_partitions(table)
    if not partitions:
        return files
    amount = f"**{words.format_count(partitions, 'partition')}**"
    return f"{amount}, {files}" if table.impact.files_removed else amount


def _unbroken_size(size: int) -> str:
    return words.format_size(size).replace(" ", "&nbsp;")


def _time_travel_cell(table: TablePlan) -> str:
    """Return how far back a read can go, short enough for a column; the details have the dates."""
    impact, observed = table.impact, table.observed
    last = None if observed is None else observed.window_end
    old = words.format_time_between(impact.earliest_readable_before, last)
    new = words.format_time_between(impact.earliest_readable_after, last)
    if not table.has_changes or old is None or new is None:
        window = plan_summary.describe_time_travel(table) if table.has_changes else None
        return escape_markdown(clip_text(window or "—"))
    if impact.earliest_readable_before == impact.earliest_readable_after:
        return f"{new}, as before"
    return f"{old} → **{new}**" if old != new else f"about {new}, as before"


def _owner_name(table: TablePlan) -> str:
    owner = table.spec.get("owner")
    return clip_text(owner) if isinstance(owner, str) else ""


def _folded_details(table: TablePlan, whole: str) -> str:
    lines = map(_diff_line, plan_text.render_table(table, Terminal()))
    pointer = f"\n{whole[0].upper()}{whole[1:]} for every file.\n" if table.has_changes else ""
    body = clip_block(list(lines), _MAX_DETAIL_LINES, "diff")
    return folded_block(_name_span(table), f"{body}{pointer}")


def clip_block(lines: Sequence[str], limit: int, language: str) -> str:
    """Return the first lines as a code block, with the number of the others."""
    shown = [clip_text(line, _MAX_LINE_LENGTH) for line in lines[:limit]]
    if len(lines) > limit:
        shown.append(f"  … {words.format_count(len(lines) - limit, 'more line')}")
    return code_block(shown, language)


def _diff_line(line: str) -> str:
    """Return the line with its sign in the first column, where a diff block colours it."""
    sign = line.strip()[:1]
    if line.startswith("  ") and not line.startswith("   ") and sign in "-+!~=":
        return line if sign == "=" else f"{'!' if sign == '~' else sign} {line[4:]}"
    return f"  {line}" if line[:1] in "-+!@#" else line


def _has_simulation(table: TablePlan) -> bool:
    """Return whether the plan simulates an insert."""
    return table.file_sizes is not None and table.file_sizes.next_insert is not None


def _folded_unchanged(tables: Sequence[TablePlan], room: int, whole: str) -> str:
    head = f"\n<details><summary>{words.format_count(len(tables), 'table')} unchanged</summary>\n\n"
    end = "\n</details>\n"
    page = Page(limit=max(room, len(head) + len(end) + 200), end=end)
    page.add_block(head)
    lines = [
        f"- {_name_span(t)}: {escape_markdown(_clip_reason(plan_summary.explain_unchanged(t)))}\n"
        for t in tables
    ]
    page.add_blocks(
        lines, len(lines), 1.0, lambda n: f"- … and {words.format_number(n)} more, {whole}\n"
    )
    return page.text


# --- what happens next ---------------------------------------------------------------------------


_CLUSTERING_VALIDITY: Final = """\
- A write to a file slice that is to be rewritten: its group is skipped.
"""
_VALIDITY: Final = """\

<details><summary>What invalidates this plan (time and new commits do not)</summary>

- An edited or removed spec, or another path: the table is skipped.
- A savepoint, or work pending on the table: the files that it protects are skipped.
- A stricter policy, or a waiver that has ended: the table or a step of it is blocked. Policies are
  checked again.
{clustered}\
- A later plan: it has another digest, and <code>--digest</code> refuses this one.

Nothing is {touched} that this plan does not name. Skipped items are reported, with exit code 4.
</details>
"""


def _end_block(plan: Plan, environment: str | None) -> str:
    """The digest and, if there is work, what invalidates the plan and how to apply it."""
    texts = (_format_time(plan.created_at), plan.tool)
    time, tool = (escape_markdown(clip_text(text)) for text in texts)
    end = f"\nDigest {code_span(plan.digest)} · made {time} by {tool}\n"
    totals = plan_summary.count_totals(plan)
    if totals.is_empty:
        return end
    chosen = ""
    if environment:
        chosen = f" --env {shlex.quote(clip_text(words.escape_text(environment)))}"
    command = (
        f"reconciler apply plan.json --specs specs{chosen} \\",
        f"  --digest {words.escape_text(plan.digest)}",
    )
    validity = _VALIDITY.format(
        clustered=_CLUSTERING_VALIDITY if any(map(_has_clustering, plan.tables)) else "",
        touched="removed or rewritten" if totals.bytes_rewritten else "removed",
    )
    return f"{end}{validity}\nOnce it is approved:\n\n{code_block(command, 'sh')}"


def _has_clustering(table: TablePlan) -> bool:
    return any(
        isinstance(step, ClusterStep | CompactStep)
        or (isinstance(step, ResumeStep) and step.action == "clustering")
        for step in table.steps
    )


def _format_time(created_at: str) -> str:
    """Return a time with an offset in UTC, to the minute.

    >>> _format_time("2026-11-21T10:00:00+01:00"), _format_time("once")
    ('2026-11-21 09:00 UTC', 'once')
    """
    try:
        moment = datetime.fromisoformat(created_at)
        if moment.tzinfo is not None:
            return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        pass
    return created_at


def _name_span(table: TablePlan) -> str:
    return code_span(clip_text(table.name))


def _clip_reason(text: str) -> str:
    return clip_text(text, _MAX_REASON_LENGTH)


def clip_text(text: str, limit: int = _MAX_NAME_LENGTH) -> str:
    """Return text of others, cut where it would push out the rest."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _artifact_link(artifact: str | None) -> str:
    if artifact is None:
        return code_span("plan.json")
    if artifact.startswith(("https://", "http://")):
        return f'<a href="{html.escape(words.escape_text(artifact))}">the whole plan</a>'
    return code_span(artifact)
