"""A plan for a terminal: totals, then table by table, the biggest first. A string and no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from reconciler.plans.document import compute_plan_digest
from reconciler.plans.model import (
    FILE_KINDS,
    REMOVAL_RULES,
    CleanStep,
    ClusterStep,
    Finding,
    IndexStep,
    Note,
    Plan,
    Removal,
    RemovedFiles,
    ResumeStep,
    RollbackStep,
    Step,
    TablePlan,
)
from reconciler.render import (
    cluster_step,
    file_sizes,
    index_step,
    plan_summary,
    query_predictions,
    rollback_step,
    words,
)
from reconciler.render.paint import Paint
from reconciler.render.wrapping import wrap_detail, wrap_item

_MAX_PARTITIONS = 8
_MAX_REASONS = 2
#: how a notice that one kind of work is not due begins -> its label; other work may be
_NOTHING_LABELS = {"no clustering: ": "no clustering", "nothing to do: ": "nothing to clean"}


def plan_text(plan: Plan, *, color: bool, full: bool = False, digest: str | None = None) -> str:
    """The plan for people; ends with one line that sums it up and names the digest.

    ``full`` lists every file with its rule and reason. ``digest`` saves computing it again.
    """
    paint = Paint(is_on=color)
    lines = [*_head_lines(plan, paint), ""]
    for table in plan_summary.tables_by_size(plan, "error"):
        lines += [*_error_lines(table, paint), ""]
    for table in plan_summary.tables_by_size(plan, "blocked"):
        lines += [*_table_lines(table, paint, full=full), ""]
    for table in plan_summary.tables_by_size(plan, "change"):
        lines += [*_table_lines(table, paint, full=full), ""]
    unchanged = plan_summary.tables_by_size(plan, "unchanged")
    if unchanged:
        lines += [*_unchanged_lines(unchanged, paint, full=full), ""]
    return (
        "\n".join([*lines, _summary_line(plan, digest or compute_plan_digest(plan), paint)]) + "\n"
    )


def count_verdicts(plan: Plan) -> str:
    """How many tables there are of every kind: ``3 of 30 tables: 1 to change, 2 unchanged``."""
    return _append_counts(words.format_tables(len(plan.tables), plan.selection), plan)


def plan_headline(plan: Plan) -> str:
    """The outcome and by what tables were selected: ``3 of 30 tables selected (-l a=b): ...``."""
    tables = words.format_tables(len(plan.tables), plan.selection)
    if plan.selection is not None:
        tables += f" selected ({words.format_selectors(plan.selection)})"
    return _append_counts(tables, plan)


def _append_counts(tables: str, plan: Plan) -> str:
    sums = plan_summary.count_totals(plan)
    kinds = (
        (sums.errors, "with an error" if sums.errors == 1 else "with errors"),
        (sums.blocked, "blocked"),
        (sums.change, "to change"),
        (sums.unchanged, "unchanged"),
    )
    parts = ", ".join(f"{words.format_number(n)} {kind}" for n, kind in kinds if n)
    return f"{tables}: {parts}" if parts else tables


def render_table(table: TablePlan, paint: Paint) -> list[str]:
    """One table with a word about every step, what it saves and what to look out for."""
    return list(_table_lines(table, paint, full=False))


def describe_effect(totals: plan_summary.PlanTotals, strong: Callable[[str], str] = str) -> str:
    """What applying comes to, in a sentence or two; ``strong`` marks the figures."""
    if not totals.change:
        return "Nothing to apply."
    does = []
    if totals.rollbacks:
        does.append(f"takes back {strong(words.format_count(totals.rollbacks, 'dead write'))}")
    if totals.bytes_rewritten:
        does.append(f"rewrites {strong(words.format_size(totals.bytes_rewritten))}")
    if totals.tables_indexed:
        does.append(
            f"brings the index of {words.format_count(totals.tables_indexed, 'table')} up to date"
        )
    before = ", ".join(does)
    if not totals.files_removed:
        none = "removes no other files" if totals.rollbacks else "removes no files"
        return f"Applying {before} and {none}." if does else f"Applying {none}."
    files, size = (
        words.format_count(totals.files_removed, "file"),
        words.format_size(totals.bytes_removed),
    )
    removes = f"removes {strong(files)} and frees {strong(size)}"
    return f"Applying {', '.join((*does, removes))}."


def _head_lines(plan: Plan, paint: Paint) -> Iterator[str]:
    sums = plan_summary.count_totals(plan)
    yield paint.strong(plan_headline(plan))
    yield describe_effect(sums)
    if plan.selection is not None and plan.selection.removed:
        yield f"{words.describe_removed_specs(plan.selection.removed)}."


def _summary_line(plan: Plan, digest: str, paint: Paint) -> str:
    sums = plan_summary.count_totals(plan)
    what = words.format_count(sums.files_removed, "file") + " to remove"
    size = f" ({words.format_size(sums.bytes_removed)})" if sums.files_removed else ""
    rewrite = (
        f", {words.format_size(sums.bytes_rewritten)} to rewrite" if sums.bytes_rewritten else ""
    )
    if sums.rollbacks:
        rewrite += f", {words.format_count(sums.rollbacks, 'dead write')} to take back"
    if sums.tables_indexed:
        rewrite += f", {words.format_count(sums.tables_indexed, 'index', 'indexes')} to update"
    return (
        f"{paint.strong('Plan:')} {count_verdicts(plan)}; {what}{size}{rewrite}.  digest {digest}"
    )


# --- one table -----------------------------------------------------------------------------------


def _title_lines(table: TablePlan, paint: Paint) -> Iterator[str]:
    name = paint.strong(words.escape_text(table.name))
    seen = table.observed
    if seen is not None:
        kind = {"COPY_ON_WRITE": "COW", "MERGE_ON_READ": "MOR"}.get(seen.table_type, "")
        name += f"  {kind} v{seen.table_version}"
    yield f"{name}  {words.escape_text(table.path)}"
    if seen is not None:
        files = words.format_count(seen.files, "file")
        at = "no completed instant yet"
        if seen.last_completed is not None:
            at = (
                f"as of {words.format_instant(seen.last_completed)} (instant {seen.last_completed})"
            )
        size = f", {words.format_size(seen.bytes)}" if seen.files else ""
        yield f"  {files}{size}, {at}"


def _error_lines(table: TablePlan, paint: Paint) -> Iterator[str]:
    yield from _title_lines(table, paint)
    yield from wrap_item(paint.bad("! error"), table.error or "")


def _table_lines(table: TablePlan, paint: Paint, *, full: bool) -> Iterator[str]:
    yield from _title_lines(table, paint)
    for note in table.refusals:
        yield from wrap_item(paint.bad("! blocked"), f"{note.because} [{note.rule}]")
    for finding in table.drift:
        change = (
            f"{_format_value(finding, finding.actual)} → {_format_value(finding, finding.desired)}"
        )
        yield from wrap_item(paint.warn(f"~ {finding.field}"), f"{change}: {finding.because}")
    for step in table.steps:
        yield from _step_lines(step, table, paint, full=full)
    if table.steps:
        yield from _effect_lines(table, paint)
    yield from file_sizes.file_size_lines(table, paint, full=full)
    yield from query_predictions.prediction_lines(table, paint, full=full)
    yield from _kept_lines(table, paint)
    yield from _warning_lines(table.warnings, paint)


def _format_value(finding: Finding, value: object) -> str:
    """A value of a finding; those of ``files`` are bytes."""
    if finding.field.endswith(".maxScan") and isinstance(value, float):
        return f"{value * 100:.3g} %"
    is_size = finding.field.startswith("files.") and type(value) is int
    return words.format_size(value) if is_size else words.format_value(value)  # type: ignore[arg-type]


def _step_lines(step: Step, table: TablePlan, paint: Paint, *, full: bool) -> Iterator[str]:
    match step:
        case ResumeStep():
            amount = (
                cluster_step.format_amount(step.groups)
                if step.groups
                else _format_amount(step.files)
            )
            what = f"{step.action} {step.instant}, {amount}"
            yield from wrap_item(paint.warn("+ resume"), f"{what}: {step.because}")
            yield from _removal_lines(step, full=full)
        case RollbackStep():
            yield from rollback_step.step_lines(step, paint, full=full)
        case CleanStep():
            yield from _clean_lines(step, table, paint, full=full)
        case ClusterStep():
            yield from cluster_step.step_lines(step, paint, full=full)
        case IndexStep():
            yield from index_step.step_lines(step, paint)
        case _:
            assert_never(step)


def _clean_lines(step: CleanStep, table: TablePlan, paint: Paint, *, full: bool) -> Iterator[str]:
    whole = 0 if table.observed is None else table.observed.bytes
    removed = int(step.files.bytes.sum())
    share = f" ({words.format_share(removed, whole)} of the table)" if removed else ""
    yield from wrap_item(paint.bad("- clean"), _format_amount(step.files) + share)
    boundary = step.earliest_instant_to_retain
    since = ""
    if boundary is not None:
        since = f"; earliest instant to retain {boundary} ({words.format_instant(boundary)})"
    yield from wrap_detail(f"{plan_summary.describe_retention(table.spec)}{since}")
    yield from _removal_lines(step, full=full)


def _removal_lines(step: Removal, *, full: bool) -> Iterator[str]:
    yield from _reason_lines(plan_summary.removal_reasons(step.files))
    yield from _file_lines(step.files) if full else _partition_lines(step.files)
    if step.delete_partitions:
        yield from _deleted_partition_lines(step.delete_partitions, full=full)


def _format_amount(files: RemovedFiles) -> str:
    if not len(files):
        return "no files"
    partitions = len(plan_summary.removed_by_partition(files))
    size = words.format_size(int(files.bytes.sum()))
    where = words.format_count(partitions, "partition")
    is_flat = partitions == 1 and files.partition[0].as_py() == ""
    return f"{words.format_count(len(files), 'file')}, {size}" + ("" if is_flat else f" in {where}")


def _reason_lines(rules: Iterable[plan_summary.RuleReasons]) -> Iterator[str]:
    for rule in rules:
        many = words.format_count(rule.files, "file")
        first, *others = rule.reasons
        if not others:
            yield from wrap_detail(f"{rule.rule}: {many}: {first[0]}")
            continue
        yield from wrap_detail(
            f"{rule.rule}: {many}, for {words.format_count(len(rule.reasons), 'reason')}:"
        )
        for reason, count in rule.reasons[:_MAX_REASONS]:
            yield from wrap_detail(f"{words.format_count(count, 'file')}: {reason}", extra_indent=2)
        rest = len(rule.reasons) - _MAX_REASONS
        if rest > 0:
            yield from wrap_detail(
                f"… and {words.format_count(rest, 'more reason')}", extra_indent=2
            )


def _partition_lines(files: RemovedFiles) -> Iterator[str]:
    sums = plan_summary.removed_by_partition(files)
    if len(sums) == 1 and not sums[0].name:
        return
    shown = sums if len(sums) <= _MAX_PARTITIONS + 1 else sums[:_MAX_PARTITIONS]
    names = [words.escape_text(s.name) or "(root)" for s in shown]
    width = min(max(map(len, names), default=0), 40)
    for name, each in zip(names, shown, strict=True):
        many, size = words.format_count(each.files, "file"), words.format_size(each.bytes)
        yield f"      {name:<{width}}  {many:>13}  {size:>10}"
    rest = sums[len(shown) :]
    if rest:
        files_, bytes_ = sum(s.files for s in rest), sum(s.bytes for s in rest)
        partitions = words.format_count(len(rest), "more partition")
        yield f"      … and {partitions} ({words.format_count(files_, 'file')}, {words.format_size(bytes_)}),"
        yield "        see plan.json or show --full"


def _file_lines(files: RemovedFiles) -> Iterator[str]:
    rows = zip(
        files.partition.to_pylist(),
        files.name.to_pylist(),
        files.bytes.tolist(),
        files.kind.tolist(),
        files.rule.tolist(),
        files.because.to_pylist(),
        strict=True,
    )
    above = None
    for partition, name, size, kind, rule, because in rows:
        if partition != above:
            above = partition
            yield f"      {words.escape_text(partition) or '(root)'}"
        what = f"{words.escape_text(name)}  {FILE_KINDS[kind]}, {words.format_size(size)}"
        yield f"        - {what}, {REMOVAL_RULES[rule]}: {words.escape_text(because)}"


def _deleted_partition_lines(partitions: tuple[str, ...], *, full: bool) -> Iterator[str]:
    shown = partitions if full else partitions[:_MAX_REASONS]
    names = ", ".join(words.escape_text(path) for path in shown)
    rest = len(partitions) - len(shown)
    others = f" and {words.format_number(rest)} more" if rest else ""
    what = words.format_count(len(partitions), "partition directory", "partition directories")
    yield from wrap_detail(f"removes {what} once empty: {names}{others}")


def _effect_lines(table: TablePlan, paint: Paint) -> Iterator[str]:
    if table.layout is not None:
        yield from cluster_step.layout_lines(table.layout, paint)
    window = plan_summary.describe_time_travel(table)
    if window is not None:
        impact = table.impact
        is_same = impact.earliest_readable_before == impact.earliest_readable_after
        label = paint.good("= time travel") if is_same else paint.warn("~ time travel")
        yield from wrap_item(label, window)


def _kept_lines(table: TablePlan, paint: Paint) -> Iterator[str]:
    if table.kept is None or not len(table.kept):
        return
    many = words.format_count(len(table.kept), "file")
    yield from wrap_item(
        paint.good("= kept"), f"{many} that the policy alone would remove and other rules save"
    )
    yield from _reason_lines(plan_summary.keep_reasons(table.kept))


def _warning_lines(notes: Iterable[Note], paint: Paint) -> Iterator[str]:
    for note in notes:
        label = next((text for text in _NOTHING_LABELS if note.because.startswith(text)), None)
        if note.rule == "nothingToDo" and label is not None:
            said = note.because.removeprefix(label)
            yield from wrap_item(paint.good(f"= {_NOTHING_LABELS[label]}"), said)
            continue
        yield from wrap_item(paint.warn("! warning"), f"{note.because} [{note.rule}]")


def _unchanged_lines(tables: list[TablePlan], paint: Paint, *, full: bool) -> Iterator[str]:
    yield f"{words.format_count(len(tables), 'table')} unchanged:"
    for table in tables:
        reason = plan_summary.explain_unchanged(table)
        yield from wrap_item(f"= {paint.strong(words.escape_text(table.name))}", reason)
        said = [n for n in table.warnings if not plan_summary.is_explained(n, reason)]
        yield from (f"  {line}" for line in _warning_lines(said, paint))
        is_asked = table.file_sizes is not None and table.file_sizes.next_insert is not None
        sizes = (
            file_sizes.file_size_lines(table, paint, full=full)
            if full or is_asked
            else file_sizes.small_file_line(table, paint)
        )
        yield from (f"  {line}" for line in sizes)
