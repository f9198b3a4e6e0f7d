"""A plan for a terminal: totals, then table by table, the biggest first. A string and no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from reconciler.plan.document import plan_digest
from reconciler.plan.model import (
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
    file_sizes,
    index_step,
    predictions,
    relayout,
    rollback_step,
    summary,
    words,
)
from reconciler.render.lines import item, more
from reconciler.render.paint import Paint

_TOP_PARTITIONS = 8
_TOP_REASONS = 2
#: how a notice that one kind of work is not due begins -> its label; other work may be
_NOTHING = {"no clustering: ": "no clustering", "nothing to do: ": "nothing to clean"}


def plan_text(plan: Plan, *, color: bool, full: bool = False, digest: str | None = None) -> str:
    """The plan for people; ends with one line that sums it up and names the digest.

    ``full`` lists every file with its rule and reason. ``digest`` saves computing it again.
    """
    paint = Paint(is_on=color)
    lines = [*_head(plan, paint), ""]
    for table in summary.biggest_first(plan, "error"):
        lines += [*_error(table, paint), ""]
    for table in summary.biggest_first(plan, "blocked"):
        lines += [*_table(table, paint, full=full), ""]
    for table in summary.biggest_first(plan, "change"):
        lines += [*_table(table, paint, full=full), ""]
    unchanged = summary.biggest_first(plan, "unchanged")
    if unchanged:
        lines += [*_unchanged(unchanged, paint, full=full), ""]
    return "\n".join([*lines, _last(plan, digest or plan_digest(plan), paint)]) + "\n"


def outcome(plan: Plan) -> str:
    """How many tables there are of every kind: ``3 of 30 tables: 1 to change, 2 unchanged``."""
    return _counted(words.tables(len(plan.tables), plan.selection), plan)


def headline(plan: Plan) -> str:
    """The outcome and by what tables were selected: ``3 of 30 tables selected (-l a=b): ...``."""
    tables = words.tables(len(plan.tables), plan.selection)
    if plan.selection is not None:
        tables += f" selected ({words.selectors(plan.selection)})"
    return _counted(tables, plan)


def _counted(tables: str, plan: Plan) -> str:
    sums = summary.totals(plan)
    kinds = (
        (sums.errors, "with an error" if sums.errors == 1 else "with errors"),
        (sums.blocked, "blocked"),
        (sums.change, "to change"),
        (sums.unchanged, "unchanged"),
    )
    parts = ", ".join(f"{words.number(n)} {kind}" for n, kind in kinds if n)
    return f"{tables}: {parts}" if parts else tables


def table_lines(table: TablePlan, paint: Paint) -> list[str]:
    """One table with a word about every step, what it saves and what to look out for."""
    return list(_table(table, paint, full=False))


def effect(sums: summary.Totals, strong: Callable[[str], str] = str) -> str:
    """What applying comes to, in a sentence or two; ``strong`` marks the figures."""
    if not sums.change:
        return "Nothing to apply."
    does = []
    if sums.undone:
        does.append(f"takes back {strong(words.count(sums.undone, 'dead write'))}")
    if sums.rewritten:
        does.append(f"rewrites {strong(words.size(sums.rewritten))}")
    if sums.indexed:
        does.append(f"brings the index of {words.count(sums.indexed, 'table')} up to date")
    before = ", ".join(does)
    if not sums.files:
        none = "removes no other files" if sums.undone else "removes no files"
        return f"Applying {before} and {none}." if does else f"Applying {none}."
    files, size = words.count(sums.files, "file"), words.size(sums.bytes)
    removes = f"removes {strong(files)} and frees {strong(size)}"
    return f"Applying {', '.join((*does, removes))}."


def _head(plan: Plan, paint: Paint) -> Iterator[str]:
    sums = summary.totals(plan)
    yield paint.strong(headline(plan))
    yield effect(sums)
    if plan.selection is not None and plan.selection.removed:
        yield f"{words.unmanaged(plan.selection.removed)}."


def _last(plan: Plan, digest: str, paint: Paint) -> str:
    sums = summary.totals(plan)
    what = words.count(sums.files, "file") + " to remove"
    size = f" ({words.size(sums.bytes)})" if sums.files else ""
    rewrite = f", {words.size(sums.rewritten)} to rewrite" if sums.rewritten else ""
    if sums.undone:
        rewrite += f", {words.count(sums.undone, 'dead write')} to take back"
    if sums.indexed:
        rewrite += f", {words.count(sums.indexed, 'index', 'indexes')} to update"
    return f"{paint.strong('Plan:')} {outcome(plan)}; {what}{size}{rewrite}.  digest {digest}"


# --- one table -----------------------------------------------------------------------------------


def _title(table: TablePlan, paint: Paint) -> Iterator[str]:
    name = paint.strong(words.plain(table.name))
    seen = table.observed
    if seen is not None:
        kind = {"COPY_ON_WRITE": "COW", "MERGE_ON_READ": "MOR"}.get(seen.table_type, "")
        name += f"  {kind} v{seen.table_version}"
    yield f"{name}  {words.plain(table.path)}"
    if seen is not None:
        files = words.count(seen.files, "file")
        at = "no completed instant yet"
        if seen.last_completed is not None:
            at = f"as of {words.date(seen.last_completed)} (instant {seen.last_completed})"
        size = f", {words.size(seen.bytes)}" if seen.files else ""
        yield f"  {files}{size}, {at}"


def _error(table: TablePlan, paint: Paint) -> Iterator[str]:
    yield from _title(table, paint)
    yield from item(paint.bad("! error"), table.error or "")


def _table(table: TablePlan, paint: Paint, *, full: bool) -> Iterator[str]:
    yield from _title(table, paint)
    for note in table.refusals:
        yield from item(paint.bad("! blocked"), f"{note.because} [{note.rule}]")
    for finding in table.drift:
        change = f"{_value(finding, finding.actual)} → {_value(finding, finding.desired)}"
        yield from item(paint.warn(f"~ {finding.field}"), f"{change}: {finding.because}")
    for step in table.steps:
        yield from _step(step, table, paint, full=full)
    if table.steps:
        yield from _effects(table, paint)
    yield from file_sizes.lines(table, paint, full=full)
    yield from predictions.lines(table, paint, full=full)
    yield from _kept(table, paint)
    yield from _warnings(table.warnings, paint)


def _value(finding: Finding, value: object) -> str:
    """A value of a finding; those of ``files`` are bytes."""
    if finding.field.endswith(".maxScan") and isinstance(value, float):
        return f"{value * 100:.3g} %"
    is_size = finding.field.startswith("files.") and type(value) is int
    return words.size(value) if is_size else words.shown(value)  # type: ignore[arg-type]


def _step(step: Step, table: TablePlan, paint: Paint, *, full: bool) -> Iterator[str]:
    match step:
        case ResumeStep():
            amount = relayout.amount(step.groups) if step.groups else _amount(step.files)
            what = f"{step.action} {step.instant}, {amount}"
            yield from item(paint.warn("+ resume"), f"{what}: {step.because}")
            yield from _removed(step, full=full)
        case RollbackStep():
            yield from rollback_step.step_lines(step, paint, full=full)
        case CleanStep():
            yield from _clean(step, table, paint, full=full)
        case ClusterStep():
            yield from relayout.step_lines(step, paint, full=full)
        case IndexStep():
            yield from index_step.step_lines(step, paint)
        case _:
            assert_never(step)


def _clean(step: CleanStep, table: TablePlan, paint: Paint, *, full: bool) -> Iterator[str]:
    whole = 0 if table.observed is None else table.observed.bytes
    removed = int(step.files.bytes.sum())
    share = f" ({words.share(removed, whole)} of the table)" if removed else ""
    yield from item(paint.bad("- clean"), _amount(step.files) + share)
    boundary = step.earliest_instant_to_retain
    since = ""
    if boundary is not None:
        since = f"; earliest instant to retain {boundary} ({words.date(boundary)})"
    yield from more(f"{summary.retention(table.spec)}{since}")
    yield from _removed(step, full=full)


def _removed(step: Removal, *, full: bool) -> Iterator[str]:
    yield from _why(summary.why_removed(step.files))
    yield from _files(step.files) if full else _partitions(step.files)
    if step.delete_partitions:
        yield from _deleted(step.delete_partitions, full=full)


def _amount(files: RemovedFiles) -> str:
    if not len(files):
        return "no files"
    partitions = len(summary.by_partition(files))
    size = words.size(int(files.bytes.sum()))
    where = words.count(partitions, "partition")
    is_flat = partitions == 1 and files.partition[0].as_py() == ""
    return f"{words.count(len(files), 'file')}, {size}" + ("" if is_flat else f" in {where}")


def _why(rules: Iterable[summary.Reasons]) -> Iterator[str]:
    for rule in rules:
        many = words.count(rule.files, "file")
        first, *others = rule.reasons
        if not others:
            yield from more(f"{rule.rule}: {many}: {first[0]}")
            continue
        yield from more(f"{rule.rule}: {many}, for {words.count(len(rule.reasons), 'reason')}:")
        for reason, count in rule.reasons[:_TOP_REASONS]:
            yield from more(f"{words.count(count, 'file')}: {reason}", deeper=2)
        rest = len(rule.reasons) - _TOP_REASONS
        if rest > 0:
            yield from more(f"… and {words.count(rest, 'more reason')}", deeper=2)


def _partitions(files: RemovedFiles) -> Iterator[str]:
    sums = summary.by_partition(files)
    if len(sums) == 1 and not sums[0].name:
        return
    shown = sums if len(sums) <= _TOP_PARTITIONS + 1 else sums[:_TOP_PARTITIONS]
    names = [words.plain(s.name) or "(root)" for s in shown]
    width = min(max(map(len, names), default=0), 40)
    for name, each in zip(names, shown, strict=True):
        many, size = words.count(each.files, "file"), words.size(each.bytes)
        yield f"      {name:<{width}}  {many:>13}  {size:>10}"
    rest = sums[len(shown) :]
    if rest:
        files_, bytes_ = sum(s.files for s in rest), sum(s.bytes for s in rest)
        partitions = words.count(len(rest), "more partition")
        yield f"      … and {partitions} ({words.count(files_, 'file')}, {words.size(bytes_)}),"
        yield "        see plan.json or show --full"


def _files(files: RemovedFiles) -> Iterator[str]:
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
            yield f"      {words.plain(partition) or '(root)'}"
        what = f"{words.plain(name)}  {FILE_KINDS[kind]}, {words.size(size)}"
        yield f"        - {what}, {REMOVAL_RULES[rule]}: {words.plain(because)}"


def _deleted(partitions: tuple[str, ...], *, full: bool) -> Iterator[str]:
    shown = partitions if full else partitions[:_TOP_REASONS]
    names = ", ".join(words.plain(path) for path in shown)
    rest = len(partitions) - len(shown)
    others = f" and {words.number(rest)} more" if rest else ""
    what = words.count(len(partitions), "partition directory", "partition directories")
    yield from more(f"removes {what} once empty: {names}{others}")


def _effects(table: TablePlan, paint: Paint) -> Iterator[str]:
    if table.layout is not None:
        yield from relayout.layout_lines(table.layout, paint)
    window = summary.time_travel(table)
    if window is not None:
        impact = table.impact
        is_same = impact.earliest_readable_before == impact.earliest_readable_after
        label = paint.good("= time travel") if is_same else paint.warn("~ time travel")
        yield from item(label, window)


def _kept(table: TablePlan, paint: Paint) -> Iterator[str]:
    if table.kept is None or not len(table.kept):
        return
    many = words.count(len(table.kept), "file")
    yield from item(
        paint.good("= kept"), f"{many} that the policy alone would remove and other rules save"
    )
    yield from _why(summary.why_kept(table.kept))


def _warnings(notes: Iterable[Note], paint: Paint) -> Iterator[str]:
    for note in notes:
        label = next((text for text in _NOTHING if note.because.startswith(text)), None)
        if note.rule == "nothingToDo" and label is not None:
            said = note.because.removeprefix(label)
            yield from item(paint.good(f"= {_NOTHING[label]}"), said)
            continue
        yield from item(paint.warn("! warning"), f"{note.because} [{note.rule}]")


def _unchanged(tables: list[TablePlan], paint: Paint, *, full: bool) -> Iterator[str]:
    yield f"{words.count(len(tables), 'table')} unchanged:"
    for table in tables:
        reason = summary.unchanged_because(table)
        yield from item(f"= {paint.strong(words.plain(table.name))}", reason)
        said = [n for n in table.warnings if not summary.is_said(n, reason)]
        yield from (f"  {line}" for line in _warnings(said, paint))
        is_asked = table.file_sizes is not None and table.file_sizes.next_insert is not None
        sizes = (
            file_sizes.lines(table, paint, full=full)
            if full or is_asked
            else file_sizes.short(table, paint)
        )
        yield from (f"  {line}" for line in sizes)
