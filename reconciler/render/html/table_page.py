"""Build what a page says of one table, from its plan, status and state; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reconciler.plans.added_bytes import estimate_bytes_added
from reconciler.plans.model import Note, TablePlan
from reconciler.plans.plan import Plan
from reconciler.plans.refused_steps import find_refusals, list_applied_steps
from reconciler.render import plan_summary, plan_text, words
from reconciler.render.costs import describe_costs, describe_storage
from reconciler.render.drift import describe_difference
from reconciler.render.html.file_list import list_files
from reconciler.render.html.layout_chart import draw_layouts
from reconciler.render.html.model import Fact, Notice, StepView, TablePage, Tone
from reconciler.render.html.query_reads import show_queries
from reconciler.render.html.removals import list_reasons, show_removals
from reconciler.render.html.size_chart import draw_file_sizes
from reconciler.render.html.time_line import draw_time_line, list_savepoints
from reconciler.render.plan_steps import step_lines
from reconciler.render.terminal import Terminal
from reconciler.spec.model import Clustering
from reconciler.state.model import TableState
from reconciler.status.conditions import TableCondition
from reconciler.status.model import TableStatus

#: a terminal in which no line is divided
_UNWRAPPED: Final = Terminal(width=1_000_000)
_INDENT: Final = 6
#: what a page says elsewhere: all files are in its list
_HINT: Final = "; show --full lists all"
_TONES: Final[dict[str, Tone]] = {"+": "good", "~": "warn", "-": "warn", "!": "bad"}
_TABLE_TYPES: Final = {"COPY_ON_WRITE": "copy-on-write", "MERGE_ON_READ": "merge-on-read"}
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_GAP: Final = re.compile(r"( {2,})")
_HYPHEN_MINUS: Final = re.compile(r"(?<= )-(?=\d)")
_LAYOUT_NOTE: Final = (
    "Each bar is a base file, from its least to its greatest value; files that share a value lie "
    "below each other. Less depth means that a query opens fewer files."
)
_ESTIMATED: Final = " Ranges after the clustering are estimated from the bounds of today's files."


def build_table_page(
    plan: TablePlan,
    *,
    anchor: str,
    status: TableStatus | None = None,
    state: TableState | None = None,
    clustering: Clustering | None = None,
    with_files: bool = True,
) -> TablePage:
    """Return the page of a table.

    ``status``, ``state``: None for a saved plan, which shows less. ``clustering``: as declared.
    ``with_files``: list the files.
    """
    if plan.error is not None:
        return TablePage(
            name=plan.name, anchor=anchor, path=plan.path, kind="", summary=plan.error,
            badges=(Notice(label="Unreadable", text=plan.error, tone="bad"),),
            alerts=(Notice(label="The table cannot be read", text=plan.error, tone="bad"),),
        )  # fmt: skip
    orphans = status.orphans if status is not None else None
    layouts = () if state is None else draw_layouts(state, plan, clustering)
    sizes = draw_file_sizes(plan, status)
    is_estimated = plan.layout is not None
    alerts = tuple(_list_alerts(plan, status))
    effect = _describe_effect(plan)
    is_stopped = bool(plan.refusals) and not list_applied_steps(plan)
    return TablePage(
        name=plan.name,
        anchor=anchor,
        path=plan.path,
        kind=_describe_kind(plan),
        badges=tuple(_list_badges(plan, status)),
        effect=effect,
        summary=alerts[0].text if is_stopped and alerts else effect,
        costs=_describe_costs(plan, status),
        alerts=alerts,
        facts=tuple(_list_facts(plan, status)),
        differences=tuple(_list_differences(plan)),
        notices=tuple(_list_notices(plan)),
        steps=tuple(_show_steps(plan)),
        drawings=() if sizes is None else (sizes,),
        layouts=layouts,
        layout_note=(_LAYOUT_NOTE + (_ESTIMATED if is_estimated else "")) if layouts else "",
        time_line=draw_time_line(plan, status, state),
        savepoints=list_savepoints(plan, status),
        removals=show_removals(plan),
        reasons=list_reasons(plan),
        queries=show_queries(plan),
        files=list_files(plan, state, orphans) if with_files else None,
    )


def describe_condition(condition: TableCondition) -> tuple[str, Tone]:
    """Return the reason of a condition in words, and its tone.

    >>> from reconciler.status.conditions import TableCondition
    >>> describe_condition(TableCondition(type="Synced", status="True", reason="InSync",
    ...                                   message=""))
    ('In sync', 'good')
    """
    text = describe_reason(condition.reason)
    tones: dict[str, Tone] = {"True": "good", "False": "bad", "Unknown": ""}
    tone = tones[condition.status]
    if condition.reason in ("Drifted", "Suspended"):
        tone = "warn"
    return text, tone


def describe_reason(reason: str) -> str:
    """Return the reason of a condition in words.

    >>> describe_reason("StuckInstant")
    'Stuck instant'
    """
    return words.capitalize(_CAPITAL.sub(" ", reason).lower())


def describe_plan_effect(plan: Plan) -> str:
    """Return what applying a plan does, with real minus signs."""
    text = plan_text.describe_effect(plan_summary.count_totals(plan))
    return _HYPHEN_MINUS.sub("\N{MINUS SIGN}", text)


def _describe_kind(plan: TablePlan) -> str:
    observed = plan.observed
    if observed is None:
        return ""
    kind = _TABLE_TYPES.get(observed.table_type, observed.table_type)
    return f"{kind}, table version {observed.table_version}"


def _list_badges(plan: TablePlan, status: TableStatus | None) -> Iterator[Notice]:
    if status is not None:
        for condition in status.conditions:
            text, tone = describe_condition(condition)
            yield Notice(label=text, text=condition.message, tone=tone)
        return
    verdict = plan_summary.table_verdict(plan)
    labels: dict[plan_summary.TableVerdict, tuple[str, Tone]] = {
        "error": ("Unreadable", "bad"),
        "blocked": ("Blocked", "bad"),
        "blockedInPart": ("Blocked in part", "bad"),
        "change": ("To change", "warn"),
        "unchanged": ("Unchanged", "good"),
    }
    label, tone = labels[verdict]
    yield Notice(label=label, text="", tone=tone)


def _describe_effect(plan: TablePlan) -> str:
    text = describe_plan_effect(Plan(created_at="", tool="", tables=(plan,)))
    if plan_summary.table_verdict(plan) == "unchanged":
        return f"{text} {words.capitalize(plan_summary.explain_unchanged(plan))}."
    return text


def _describe_costs(plan: TablePlan, status: TableStatus | None) -> str:
    """Return what the table and the plan cost and save; empty without prices."""
    effect, storage = describe_costs([plan]), status.costs if status is not None else None
    if storage is not None and effect:
        storage = replace(storage, reclaimable_per_month=None)
    parts = [] if storage is None else [describe_storage(storage)]
    return "; ".join([*parts, f"the plan {effect}"] if effect else parts)


def _list_facts(plan: TablePlan, status: TableStatus | None) -> Iterator[Fact]:
    observed, impact = plan.observed, plan.impact
    if observed is None:
        return
    files = words.format_count(observed.files, "file")
    yield Fact(label="Size", value=words.format_size(observed.bytes), note=files)
    if status is not None and status.small_file_share is not None:
        share = f"{100 * status.small_file_share:.0f} %"
        small = words.format_number(status.small_files) if status.small_files else "none"
        yield Fact(label="Small files", value=share, note=f"{small} below the small size")
    elif observed.small_files:
        small = words.format_number(observed.small_files)
        yield Fact(label="Small files", value=small, note="below the small size")
    if status is not None and status.logs is not None and status.logs.files:
        logs, count = status.logs, words.format_count(status.logs.files, "log file")
        share = words.format_share(logs.bytes, logs.bytes + logs.base_bytes)
        yield Fact(label="Logs", value=share, note=f"{count}, {words.format_size(logs.bytes)}")
    if impact.bytes_removed or impact.files_removed:
        note = words.format_count(impact.files_removed, "file")
        yield Fact(label="Frees", value=words.format_size(impact.bytes_removed), note=note)
    else:
        yield Fact(label="Frees", value="nothing")
    if impact.bytes_rewritten:
        added = words.format_size(estimate_bytes_added(plan))
        value = words.format_size(impact.bytes_rewritten)
        yield Fact(label="Rewrites", value=value, note=f"into about {added}")
    yield from _list_times(plan, status)


def _list_times(plan: TablePlan, status: TableStatus | None) -> Iterator[Fact]:
    start = plan.impact.earliest_readable_before
    last = plan.observed.window_end if plan.observed is not None else None
    reach = words.format_time_between(start, last)
    if start is not None:
        since = f"since {words.format_instant(start)}"
        if start == last:
            reach, since = "newest only", "no time travel"
        yield Fact(label="Readable", value=reach or "all", note=since)
    if last is not None:
        yield _date_fact("Last commit", last)
    if status is not None and (apply := status.last_apply) is not None:
        yield _date_fact("Last apply", apply.instant, f" by {apply.actor}" if apply.actor else "")
    if status is not None and status.oldest_pending_age_seconds is not None:
        age = words.format_duration(status.oldest_pending_age_seconds)
        yield Fact(label="Oldest pending", value=age, tone="warn")


def _date_fact(label: str, instant: str, more: str = "") -> Fact:
    day, _, time = words.format_instant(instant).partition(" ")
    return Fact(label=label, value=day, note=f"{time}{more}".strip())


def _list_alerts(plan: TablePlan, status: TableStatus | None) -> Iterator[Notice]:
    """Yield what is stuck, and what is refused."""
    healthy = status.condition("Healthy") if status is not None else None
    stuck = "" if healthy is None or healthy.status == "True" else healthy.message
    if healthy is not None and stuck:
        label, tone = describe_condition(healthy)
        yield Notice(label=label, text=words.capitalize(stuck), tone=tone)
    for note in plan.refusals:
        if note.because not in stuck:
            yield _show_refusal(note)


def _show_refusal(note: Note) -> Notice:
    if note.rule == "suspend":
        return Notice(label="Suspended", text=words.capitalize(note.because), tone="warn")
    label = f"{words.capitalize(words.describe_refused(note.step))}: {note.rule}"
    return Notice(label=label, text=words.capitalize(note.because), tone="bad")


def _list_differences(plan: TablePlan) -> Iterator[Notice]:
    for finding in plan.drift:
        text = f"{describe_difference(finding)}: {finding.because}"
        yield Notice(label=finding.field, text=text, tone="warn")


def _list_notices(plan: TablePlan) -> Iterator[Notice]:
    """Yield warnings, then what is not due although other work is."""
    quiet = []
    is_unchanged = plan_summary.table_verdict(plan) == "unchanged"
    explanation = plan_summary.explain_unchanged(plan) if is_unchanged else ""
    for note in plan.warnings:
        label, text = plan_text.label_warning(note)
        if is_unchanged and plan_summary.is_explained(note, explanation):
            continue
        if label is None:
            yield Notice(label=note.rule, text=text, tone="warn")
        else:
            quiet.append(Notice(label=words.capitalize(label), text=text))
    yield from quiet


def _show_steps(plan: TablePlan) -> Iterator[StepView]:
    """Yield the steps in the words of a terminal, which are made once."""
    for step in plan.steps:
        head, *details = step_lines(step, plan, _UNWRAPPED, full=False)
        sign, _, rest = head.strip().partition(" ")
        kind, _, summary = rest.partition("  ")
        is_refused = bool(find_refusals(step, plan.refusals)) or plan.is_blocked
        yield StepView(
            kind=kind,
            summary=summary,
            details=tuple(map(_show_detail, details)),
            tone="bad" if is_refused else _TONES.get(sign, ""),
        )


def _show_detail(line: str) -> tuple[str, ...]:
    """Return the texts of a line, and the gaps between them."""
    return tuple(_GAP.split(line[_INDENT:].rstrip().removesuffix(_HINT)))
