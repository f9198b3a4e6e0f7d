"""A plan for a terminal: totals, then table by table, the biggest first. A string and no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from reconciler.plans.added_bytes import estimate_bytes_added
from reconciler.plans.model import Note, TablePlan
from reconciler.plans.plan import Plan
from reconciler.plans.refused_steps import find_refused_kinds
from reconciler.render import (
    cluster_step,
    costs,
    file_sizes,
    plan_steps,
    plan_summary,
    query_predictions,
    savepoints,
    words,
)
from reconciler.render.drift import describe_difference
from reconciler.render.terminal import Terminal

#: how a notice that one kind of work is not due begins -> its label; other work may be due
_NOTHING_LABELS: Final = {
    "no clustering: ": "no clustering",
    "no rewrite for file sizes: ": "no rewrite for file sizes",
    "no compaction: ": "no compaction",
    "no savepoint: ": "no savepoint",
    "nothing to do: ": "nothing to clean",
}
#: rule of a kept file -> what keeps it
_KEEPERS: Final = {
    "savepoint": "a savepoint",
    "pendingCompaction": "a pending compaction",
    "pendingClustering": "a pending clustering",
    "pendingWrite": "a pending write",
    "readers": "declared readers",
    "cap": "retention.maxCommitsPerRun",
}


def plan_text(plan: Plan, terminal: Terminal, *, full: bool = False) -> str:
    """Return the plan as text for people; the last line names the digest.

    ``full`` lists every file with its rule and reason.
    """
    lines = [*_head_lines(plan, terminal), ""]
    for table in plan_summary.tables_by_size(plan, "error"):
        lines += [*_error_lines(table, terminal), ""]
    for verdict in ("blocked", "blockedInPart", "change"):
        for table in plan_summary.tables_by_size(plan, verdict):
            lines += [*_table_lines(table, terminal, full=full), ""]
    if unchanged := plan_summary.tables_by_size(plan, "unchanged"):
        lines += [*_unchanged_lines(unchanged, terminal, full=full), ""]
    lines += _summary_lines(plan, terminal)
    return "\n".join(lines) + "\n"


def count_verdicts(plan: Plan) -> str:
    """Return the number of tables of each verdict: ``3 of 30 tables: 1 to change, 2 unchanged``."""
    return _append_counts(words.format_tables(len(plan.tables), plan.selection), plan)


def plan_headline(plan: Plan) -> str:
    """Return the verdicts with the selectors: ``3 of 30 tables selected (-l a=b): ...``."""
    tables = words.format_tables(len(plan.tables), plan.selection)
    if plan.selection is not None:
        tables += f" selected ({words.format_selectors(plan.selection)})"
    return _append_counts(tables, plan)


def render_table(table: TablePlan, terminal: Terminal) -> list[str]:
    """Return the lines of one table: its steps, what other rules keep, and warnings."""
    return list(_table_lines(table, terminal, full=False))


def label_warning(note: Note) -> tuple[str | None, str]:
    """Return what a notice says is not due, and why; None and the reason for a warning.

    >>> label_warning(Note("nothingToDo", "nothing to do: no file slice exceeds 1 commit"))
    ('nothing to clean', 'no file slice exceeds 1 commit')
    >>> label_warning(Note("columns", "no column 'day'"))
    (None, "no column 'day'")
    """
    prefix = next((text for text in _NOTHING_LABELS if note.because.startswith(text)), None)
    if note.rule == "nothingToDo" and prefix is not None:
        return _NOTHING_LABELS[prefix], note.because.removeprefix(prefix)
    return None, note.because


def describe_effect(totals: plan_summary.PlanTotals, strong: Callable[[str], str] = str) -> str:
    """Say what applying does: the net change of bytes, then the work. ``strong`` marks figures."""
    if totals.is_empty:
        return "Nothing to apply."
    work = [*_list_changes(totals, strong), _describe_removal(totals, strong)]
    change = plan_summary.format_net_change(totals.bytes_added, totals.bytes_removed)
    until = " until a clean removes the replaced files" if totals.bytes_added else ""
    net = f"Net change: {strong(change)}{until}. " if change else ""
    return f"{net}Applying {_join_words(work)}."


def _list_changes(totals: plan_summary.PlanTotals, strong: Callable[[str], str]) -> Iterator[str]:
    """Yield what applying does besides removing files, in the order of the steps."""
    if totals.rollbacks:
        yield f"rolls back {strong(words.format_count(totals.rollbacks, 'dead write'))}"
    if totals.repairs:
        yield f"repairs the metadata of {strong(words.format_count(totals.repairs, 'table'))}"
    yield from _describe_savepoints(totals)
    if totals.partitions_deleted:
        amount = words.format_count(totals.partitions_deleted, "partition")
        size = words.format_size(totals.bytes_deleted)
        yield f"deletes {strong(amount)} ({size}, whose files a later clean removes)"
    if totals.bytes_rewritten:
        yield f"rewrites {strong(_describe_rewrite(totals))}"
    if totals.tables_indexed:
        yield f"updates the index of {words.format_count(totals.tables_indexed, 'table')}"
    if totals.instants_archived:
        yield f"archives {words.format_count(totals.instants_archived, 'instant')}"


def _describe_removal(totals: plan_summary.PlanTotals, strong: Callable[[str], str]) -> str:
    if not totals.files_removed:
        return "removes no other files" if totals.rollbacks else "removes no files"
    files = words.format_count(totals.files_removed, "file")
    size = f" ({words.format_size(totals.bytes_removed)})" if totals.bytes_added else ""
    return f"removes {strong(files)}{_count_orphans(totals)}{size}"


def _describe_savepoints(totals: plan_summary.PlanTotals) -> Iterator[str]:
    if totals.savepoints_made:
        yield f"makes {words.format_count(totals.savepoints_made, 'savepoint')}"
    if totals.savepoints_removed:
        yield f"removes {words.format_count(totals.savepoints_removed, 'savepoint')}"


def _count_orphans(totals: plan_summary.PlanTotals) -> str:
    """Return how many of the removed files are orphans; empty if none is."""
    if not totals.orphans:
        return ""
    if totals.orphans == totals.files_removed:
        return " that no write knows"
    return f", {words.format_number(totals.orphans)} of them known to no write"


def _describe_rewrite(totals: plan_summary.PlanTotals) -> str:
    """Return the bytes that are read, and about how many are written instead."""
    read = words.format_size(totals.bytes_rewritten)
    if not totals.bytes_added:
        return read
    return f"{read} into about {words.format_size(totals.bytes_added)}"


def _join_words(parts: list[str]) -> str:
    """Join with commas and an "and".

    >>> _join_words(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _append_counts(tables: str, plan: Plan) -> str:
    totals = plan_summary.count_totals(plan)
    kinds = (
        (totals.errors, "with an error" if totals.errors == 1 else "with errors"),
        (totals.blocked, "blocked"),
        (totals.blocked_in_part, "blocked in part"),
        (totals.change, "to change"),
        (totals.unchanged, "unchanged"),
    )
    parts = words.join_counts(kinds)
    return f"{tables}: {parts}" if parts else tables


def _head_lines(plan: Plan, terminal: Terminal) -> Iterator[str]:
    yield from terminal.paragraph(plan_headline(plan), terminal.strong)
    yield from terminal.paragraph(describe_effect(plan_summary.count_totals(plan)))
    yield from costs.total_cost_lines(plan.tables, terminal)
    if plan.selection is not None and plan.selection.removed:
        yield from terminal.paragraph(f"{words.describe_removed_specs(plan.selection.removed)}.")


def _summary_lines(plan: Plan, terminal: Terminal) -> Iterator[str]:
    totals = plan_summary.count_totals(plan)
    work = words.format_count(totals.files_removed, "file") + " to remove"
    work += _count_orphans(totals)
    work += f" ({words.format_size(totals.bytes_removed)})" if totals.files_removed else ""
    if totals.partitions_deleted:
        work += f", {words.format_count(totals.partitions_deleted, 'partition')} to delete"
    if totals.bytes_rewritten:
        work += f", {words.format_size(totals.bytes_rewritten)} to rewrite"
    if totals.rollbacks:
        work += f", {words.format_count(totals.rollbacks, 'dead write')} to roll back"
    made, removed = totals.savepoints_made, totals.savepoints_removed
    if pins := savepoints.describe_counts(made, removed, "to make", "to remove"):
        work += f", {pins}"
    if totals.repairs:
        work += f", {words.format_count(totals.repairs, 'metadata table')} to repair"
    if totals.tables_indexed:
        work += f", {words.format_count(totals.tables_indexed, 'index')} to update"
    if totals.instants_archived:
        work += f", {words.format_count(totals.instants_archived, 'instant')} to archive"
    yield from terminal.wrap(f"{terminal.strong('Plan:')} ", f"{count_verdicts(plan)}; {work}.", 2)
    yield f"{terminal.strong('Digest:')} {plan.digest}"


# --- one table -----------------------------------------------------------------------------------


def _title_lines(table: TablePlan, terminal: Terminal) -> Iterator[str]:
    name = terminal.strong(words.escape_text(table.name))
    observed, kind = table.observed, ""
    if observed is not None:
        short = {"COPY_ON_WRITE": "COW", "MERGE_ON_READ": "MOR"}.get(observed.table_type, "")
        kind = f"{short} v{observed.table_version}"
    yield from terminal.title(name, kind, words.escape_text(table.path))
    if observed is None:
        return
    at = "no completed instant yet"
    if (last := observed.last_completed) is not None:
        at = f"as of {words.escape_text(last)} ({words.format_instant(last)})"
    size = ""
    if observed.files:
        size = f", {words.format_size(observed.bytes)}{_net_change(table)}"
    yield from terminal.wrap("  ", f"{words.format_count(observed.files, 'file')}{size}, {at}", 2)


def _net_change(table: TablePlan) -> str:
    if not table.has_changes:
        return ""
    added = estimate_bytes_added(table)
    change = plan_summary.format_net_change(added, table.impact.bytes_removed)
    return f" ({change.removeprefix('about ')})" if change else ""


def _error_lines(table: TablePlan, terminal: Terminal) -> Iterator[str]:
    yield from _title_lines(table, terminal)
    yield from terminal.item(terminal.bad("! error"), table.error or "")


def _table_lines(table: TablePlan, terminal: Terminal, *, full: bool) -> Iterator[str]:
    yield from _title_lines(table, terminal)
    for note in table.refusals:
        yield from terminal.note(terminal.bad(f"! {words.describe_refused(note.step)}"), note)
    yield from _drift_lines(table, terminal)
    for step in table.steps:
        yield from plan_steps.step_lines(step, table, terminal, full=full)
    if table.steps:
        yield from _effect_lines(table, terminal)
    yield from file_sizes.file_size_lines(table, terminal, full=full)
    yield from query_predictions.prediction_lines(table, terminal, full=full)
    yield from costs.cost_lines(table, terminal)
    yield from _kept_lines(table, terminal)
    yield from savepoints.other_lines(table.other_savepoints or (), terminal)
    yield from _warning_lines(table.warnings, terminal)


def _drift_lines(table: TablePlan, terminal: Terminal) -> Iterator[str]:
    for finding in table.drift:
        label = terminal.warn(f"~ {finding.field}")
        yield from terminal.item(label, f"{describe_difference(finding)}: {finding.because}")


def _effect_lines(table: TablePlan, terminal: Terminal) -> Iterator[str]:
    if table.layout is not None:
        is_refused = "cluster" in find_refused_kinds(table.refusals)
        yield from cluster_step.layout_lines(table.layout, terminal, is_refused=is_refused)
    if (window := plan_summary.describe_time_travel(table)) is not None:
        is_same = table.impact.earliest_readable_before == table.impact.earliest_readable_after
        label = terminal.good("= time travel") if is_same else terminal.warn("~ time travel")
        yield from terminal.item(label, window)


def _kept_lines(table: TablePlan, terminal: Terminal) -> Iterator[str]:
    if table.kept is None or not len(table.kept):
        return
    rules = plan_summary.keep_reasons(table.kept)
    files = words.format_count(len(table.kept), "file")
    keepers = _join_words([_KEEPERS.get(rule.rule, rule.rule) for rule in rules])
    sentence = f"{files} past retention, protected by {keepers}"
    yield from terminal.item(terminal.good("= kept"), sentence)
    yield from plan_steps.reason_lines(rules, terminal)


def _warning_lines(notes: Iterable[Note], terminal: Terminal) -> Iterator[str]:
    for note in notes:
        label, reason = label_warning(note)
        if label is not None:
            yield from terminal.item(terminal.good(f"= {label}"), reason)
            continue
        yield from terminal.note(terminal.warn("! warning"), note)


def _unchanged_lines(tables: list[TablePlan], terminal: Terminal, *, full: bool) -> Iterator[str]:
    yield f"{words.format_count(len(tables), 'table')} unchanged:"
    inner = terminal.narrower(2)
    for table in tables:
        reason = plan_summary.explain_unchanged(table)
        yield from terminal.item(f"= {terminal.strong(words.escape_text(table.name))}", reason)
        yield from (f"  {line}" for line in _drift_lines(table, inner))
        notes = [n for n in table.warnings if not plan_summary.is_explained(n, reason)]
        others = savepoints.other_lines(table.other_savepoints or (), inner)
        yield from (f"  {line}" for line in others)
        yield from (f"  {line}" for line in _warning_lines(notes, inner))
        is_simulated = table.file_sizes is not None and table.file_sizes.next_insert is not None
        sizes = (
            file_sizes.file_size_lines(table, inner, full=full)
            if full or is_simulated
            else file_sizes.small_file_line(table, inner)
        )
        yield from (f"  {line}" for line in sizes)
