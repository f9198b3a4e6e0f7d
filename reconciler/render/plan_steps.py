"""The steps of a plan for a terminal: what each does, to which files, and why.

The lines are those of ``plan_text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from reconciler.hudi.metadata.table import FILES
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import (
    FILE_KINDS,
    REMOVAL_RULES,
    CleanStep,
    ClusterStep,
    IndexStep,
    MetadataStep,
    OrphanFiles,
    OrphansStep,
    Removal,
    RemovedFiles,
    ResumeStep,
    RollbackStep,
    Step,
    TablePlan,
)
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.refused_steps import find_refusals
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.render import (
    archive_step,
    cluster_step,
    compact_step,
    deletion_step,
    plan_summary,
    savepoints,
    words,
)
from reconciler.render.terminal import Terminal, limit_rows, name_rows

_MAX_PARTITIONS: Final = 8
_MAX_REASONS: Final = 2
_MAX_DELETED_PARTITIONS: Final = 2
_TARGET_NAMES: Final = {"zindex": "the index", "column_stats": "Hudi's column_stats"}


def step_lines(  # noqa: C901, PLR0915 (a case for each kind of step)
    step: Step, table: TablePlan, terminal: Terminal, *, full: bool
) -> Iterator[str]:
    """One step with its reasons; ``full`` lists every file.

    A step that is refused is marked as not applied, with the rules that refuse it.
    """
    refusals = find_refusals(step, table.refusals)
    refused_by = ", ".join(dict.fromkeys(note.rule for note in refusals))
    match step:
        case ResumeStep():
            yield from _resume_lines(step, terminal, refused_by, full=full)
        case RollbackStep():
            yield from _rollback_lines(step, terminal, full=full)
        case DeletePartitionStep():
            yield from deletion_step.step_lines(step, terminal, refused_by, full=full)
        case CleanStep():
            yield from _clean_lines(step, table, terminal, refused_by, full=full)
        case SavepointStep():
            yield from savepoints.step_lines(step, terminal, refused_by)
        case ClusterStep():
            yield from cluster_step.step_lines(step, terminal, refused_by, full=full)
        case CompactStep():
            yield from compact_step.step_lines(step, terminal, refused_by, full=full)
        case MetadataStep():
            yield from _metadata_lines(step, terminal, refused_by)
        case IndexStep():
            yield from _index_lines(step, terminal, refused_by)
        case OrphansStep():
            yield from _orphan_lines(step, table, terminal, refused_by, full=full)
        case ArchiveStep():
            yield from archive_step.step_lines(step, terminal, refused_by, full=full)
        case _:
            assert_never(step)


def reason_lines(rules: Iterable[plan_summary.RuleReasons], terminal: Terminal) -> Iterator[str]:
    """The files of each rule, with the most frequent reasons."""
    for rule in rules:
        amount = words.format_count(rule.files, "file")
        if len(rule.reasons) == 1:
            yield from terminal.detail(f"{rule.rule}: {amount}: {rule.reasons[0].text}")
            continue
        reasons = words.format_count(len(rule.reasons), "reason")
        yield from terminal.detail(f"{rule.rule}: {amount}, for {reasons}:")
        sentences = [f"{words.format_count(r.count, 'file')}: {r.text}" for r in rule.reasons]
        yield from terminal.details(sentences, _MAX_REASONS, "reason", indent=2)


# --- steps ---------------------------------------------------------------------------------------


def _resume_lines(
    step: ResumeStep, terminal: Terminal, refused_by: str, *, full: bool
) -> Iterator[str]:
    amount = cluster_step.format_amount(step.groups) if step.groups else _format_amount(step.files)
    what = f"{step.action} {step.instant}, {amount}"
    yield from terminal.step("+ resume", terminal.warn, f"{what}: {step.because}", refused_by)
    yield from _removal_lines(step, terminal, full=full)
    if full and step.attempt is not None:
        yield from terminal.detail("files of the earlier attempt that are deleted:")
        names = [*map(words.escape_text, step.attempt.name.to_pylist())]
        yield from _group_by_partition(step.attempt.partition.to_pylist(), names)


def _rollback_lines(step: RollbackStep, terminal: Terminal, *, full: bool) -> Iterator[str]:
    amount = words.format_count(len(step.files), "file")
    what = f"{words.escape_text(step.action)} {step.instant}, {amount}"
    yield from terminal.item(terminal.warn("- rollback"), f"{what}: {step.because}")
    if full:
        names = [*map(words.escape_text, step.files.name.to_pylist())]
        yield from _group_by_partition(step.files.partition.to_pylist(), names)
        appends = [(one.partition, name) for one in step.appends or () for name in one.logs]
        if appends:
            yield from terminal.detail("rows of the write are cancelled in:")
            yield from _group_by_partition(
                [path for path, _ in appends], [words.escape_text(name) for _, name in appends]
            )


def _clean_lines(
    step: CleanStep, table: TablePlan, terminal: Terminal, refused_by: str, *, full: bool
) -> Iterator[str]:
    total = 0 if table.observed is None else table.observed.bytes
    removed = int(step.files.bytes.sum())
    share = f" ({words.format_share(removed, total)} of the table)" if removed else ""
    amount = _format_amount(step.files) + share
    yield from terminal.step("- clean", terminal.bad, amount, refused_by)
    retention, boundary = plan_summary.describe_retention(table.spec), ""
    if (instant := step.earliest_instant_to_retain) is not None:
        boundary = f"; earliest instant to retain {instant} ({words.format_instant(instant)})"
    yield from terminal.detail(f"{retention}{boundary}")
    yield from _removal_lines(step, terminal, full=full)


def _metadata_lines(step: MetadataStep, terminal: Terminal, refused_by: str) -> Iterator[str]:
    is_whole = FILES in step.partitions
    names = "the whole metadata table" if is_whole else " and ".join(step.partitions)
    sign, does = ("~", "rebuilds") if step.change == "rebuild" else ("-", "drops")
    yield from terminal.step(f"{sign} metadata", terminal.warn, f"{does} {names}", refused_by)
    yield from terminal.detail(step.because)


def _index_lines(step: IndexStep, terminal: Terminal, refused_by: str) -> Iterator[str]:
    names = " and ".join(_TARGET_NAMES[target] for target in step.targets)
    what = f"{names} of {', '.join(step.columns)}" if step.columns else names
    files = words.format_count(step.files, "base file")
    reads = f"reads the footers of {files}" if step.files else "reads no footers"
    yield from terminal.step("~ index", terminal.warn, f"{what}; {reads}", refused_by)
    if step.add:
        yield from terminal.detail(f"adds {', '.join(step.add)}")
    if step.drop:
        yield from terminal.detail(f"drops {', '.join(step.drop)}")
    yield from terminal.detail(step.because)


def _orphan_lines(
    step: OrphansStep, table: TablePlan, terminal: Terminal, refused_by: str, *, full: bool
) -> Iterator[str]:
    total = 0 if table.observed is None else table.observed.bytes
    share = words.format_share(int(step.files.bytes.sum()), total)
    amount = f"{_format_amount(step.files)} ({share} of the table)"
    yield from terminal.step("- orphans", terminal.bad, amount, refused_by)
    yield from terminal.detail(plan_summary.describe_orphan_age(table.spec))
    reasons = plan_summary.orphan_reasons(step.files)
    sentences = [f"{words.format_count(r.count, 'file')}: {r.text}" for r in reasons]
    yield from terminal.details(sentences, _MAX_REASONS, "reason")
    yield from _orphan_file_lines(step.files) if full else _partition_lines(step.files, terminal)


# --- removed files -------------------------------------------------------------------------------


def _removal_lines(step: Removal, terminal: Terminal, *, full: bool) -> Iterator[str]:
    yield from reason_lines(plan_summary.removal_reasons(step.files), terminal)
    yield from _file_lines(step.files) if full else _partition_lines(step.files, terminal)
    if step.delete_partitions:
        yield from _deleted_partition_lines(step.delete_partitions, terminal, full=full)


def _format_amount(files: RemovedFiles | OrphanFiles) -> str:
    if not len(files):
        return "no files"
    partitions = plan_summary.count_partitions(files)
    size = words.format_size(int(files.bytes.sum()))
    where = words.format_count(partitions, "partition")
    is_flat = partitions == 1 and files.partition[0].as_py() == ""
    return f"{words.format_count(len(files), 'file')}, {size}" + ("" if is_flat else f" in {where}")


def _partition_lines(files: RemovedFiles | OrphanFiles, terminal: Terminal) -> Iterator[str]:
    """The partitions that lose most bytes, in the order of their paths."""
    removals = plan_summary.removed_by_partition(files)
    if len(removals) == 1 and not removals[0].name:
        return
    limit = limit_rows(len(removals), _MAX_PARTITIONS)
    shown = sorted(removals[:limit], key=lambda removal: removal.name)
    figures = (
        f"{words.format_count(removal.files, 'file'):>13}  {words.format_size(removal.bytes):>10}"
        for removal in shown
    )
    yield from name_rows((removal.name for removal in shown), figures)
    if rest := removals[limit:]:
        amount = words.format_count(sum(removal.files for removal in rest), "file")
        size = words.format_size(sum(removal.bytes for removal in rest))
        partitions = words.format_count(len(rest), "more partition")
        yield from terminal.detail(f"… and {partitions} ({amount}, {size}); show --full lists all")


def _file_lines(files: RemovedFiles) -> Iterator[str]:
    columns = (files.bytes, files.kind, files.rule)
    rows = zip(
        files.name.to_pylist(),
        *(column.tolist() for column in columns),
        files.because.to_pylist(),
        strict=True,
    )
    texts = (
        f"{words.escape_text(name)}  {FILE_KINDS[kind]}, {words.format_size(size)}, "
        f"{REMOVAL_RULES[rule]}: {words.escape_text(because)}"
        for name, size, kind, rule, because in rows
    )
    return _group_by_partition(files.partition.to_pylist(), texts)


def _orphan_file_lines(files: OrphanFiles) -> Iterator[str]:
    columns = (files.bytes.tolist(), files.kind.tolist(), files.because.to_pylist())
    texts = (
        f"{words.escape_text(name)}  {FILE_KINDS[kind]}, {words.format_size(size)}: "
        f"{words.escape_text(because)}"
        for name, size, kind, because in zip(files.name.to_pylist(), *columns, strict=True)
    )
    return _group_by_partition(files.partition.to_pylist(), texts)


def _group_by_partition(partitions: Iterable[str], texts: Iterable[str]) -> Iterator[str]:
    """A line per file, below the name of its partition."""
    previous = None
    for partition, text in zip(partitions, texts, strict=True):
        if partition != previous:
            previous = partition
            yield f"      {words.escape_text(partition) or '(root)'}"
        yield f"        - {text}"


def _deleted_partition_lines(
    partitions: tuple[str, ...], terminal: Terminal, *, full: bool
) -> Iterator[str]:
    shown = partitions if full else partitions[:_MAX_DELETED_PARTITIONS]
    names = ", ".join(words.escape_text(path) for path in shown)
    rest = len(partitions) - len(shown)
    others = f" and {words.format_number(rest)} more" if rest else ""
    folders = words.format_count(len(partitions), "partition directory")
    yield from terminal.detail(f"removes {folders} once empty: {names}{others}")
