"""Sum the columns of a plan for its renderers, from whole columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from reconciler.arrays import sum_by_code
from reconciler.lazy_dataclass import dataclass
from reconciler.plans import columns
from reconciler.plans.added_bytes import estimate_bytes_added
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.model import (
    KEEP_RULES,
    REMOVAL_RULES,
    IndexStep,
    KeptFiles,
    MetadataStep,
    Note,
    OrphanFiles,
    OrphansStep,
    RemovedFiles,
    RollbackStep,
    Step,
    TablePlan,
)
from reconciler.plans.partition_deletion import deleted_partitions
from reconciler.plans.plan import Plan
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.render import words
from reconciler.render.reasons import Reason, join_reasons

TableVerdict = Literal["error", "blocked", "blockedInPart", "change", "unchanged"]
#: warnings that explain by themselves why a table has no step
_BLOCKING_RULES: Final = ("pendingClean", "pendingWrite", "idle", "timeline")
_NO_ORPHANS: Final = "no retention declared, and no orphan file to remove"


class PartitionRemoval(NamedTuple):
    """Files and bytes that are removed from one partition."""

    name: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RuleReasons:
    """The files of one rule and its reasons, the most frequent first."""

    rule: str
    files: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTotals:
    """Totals of a plan; files and bytes are those of the steps that are applied.

    ``change``: tables to change as a whole. ``blocked_in_part``: tables with a refused kind of
    step; the others are applied. ``is_empty``: no table has a step that is applied.
    ``bytes_rewritten``: bytes that are read and written anew. ``bytes_added``: estimated bytes of
    the new files. ``tables_indexed``: tables with an index step. ``rollbacks``: dead writes, whose
    files are in none of these figures. ``orphans``: files that no write knows, which are among
    those removed. ``partitions_deleted``, ``bytes_deleted``: those of deletions of partitions,
    whose files stay until a clean. ``savepoints_made``, ``savepoints_removed``:
    steps. ``instants_archived``: of the tables'
    own timelines.
    """

    tables: int
    change: int
    blocked: int
    blocked_in_part: int
    is_empty: bool
    errors: int
    unchanged: int
    files_removed: int
    bytes_removed: int
    bytes_rewritten: int
    bytes_added: int
    tables_indexed: int
    rollbacks: int
    orphans: int
    partitions_deleted: int = 0
    bytes_deleted: int = 0
    savepoints_made: int = 0
    savepoints_removed: int = 0
    instants_archived: int = 0
    repairs: int = 0


def table_verdict(table: TablePlan) -> TableVerdict:
    """Return what happens to the table when the plan is applied."""
    if table.error is not None:
        return "error"
    if table.refusals:
        return "blocked" if table.is_blocked else "blockedInPart"
    return "change" if table.has_changes else "unchanged"


def count_totals(plan: Plan) -> PlanTotals:
    """Return the totals of a plan."""
    verdicts = [table_verdict(table) for table in plan.tables]
    applied = [list_applied_steps(table) for table in plan.tables]
    changing = [table for table, steps in zip(plan.tables, applied, strict=True) if steps]
    return PlanTotals(
        tables=len(verdicts),
        change=verdicts.count("change"),
        blocked=verdicts.count("blocked"),
        blocked_in_part=verdicts.count("blockedInPart"),
        is_empty=not changing,
        errors=verdicts.count("error"),
        unchanged=verdicts.count("unchanged"),
        files_removed=sum(table.impact.files_removed for table in changing),
        bytes_removed=sum(table.impact.bytes_removed for table in changing),
        bytes_rewritten=sum(table.impact.bytes_rewritten for table in changing),
        bytes_added=sum(map(estimate_bytes_added, changing)),
        tables_indexed=sum(any(isinstance(s, IndexStep) for s in steps) for steps in applied),
        rollbacks=sum(isinstance(s, RollbackStep) for steps in applied for s in steps),
        partitions_deleted=sum(map(count_deleted_partitions, changing)),
        bytes_deleted=sum(map(sum_deleted_bytes, changing)),
        orphans=sum(len(s.files) for steps in applied for s in steps if isinstance(s, OrphansStep)),
        savepoints_made=_count_savepoints(applied, "create"),
        savepoints_removed=_count_savepoints(applied, "remove"),
        instants_archived=sum(
            len(s.instants) for steps in applied for s in steps if isinstance(s, ArchiveStep)
        ),
        repairs=sum(any(isinstance(s, MetadataStep) for s in steps) for steps in applied),
    )


def count_deleted_partitions(table: TablePlan) -> int:
    """Return the number of partitions that are deleted."""
    return len(deleted_partitions(list_applied_steps(table)))


def sum_deleted_bytes(table: TablePlan) -> int:
    """Return the bytes of the partitions that are deleted, which a clean removes later."""
    return sum(partition.bytes for partition in deleted_partitions(list_applied_steps(table)))


def _count_savepoints(applied: Iterable[Iterable[Step]], change: str) -> int:
    """Return the number of steps that make or remove a savepoint."""
    steps = (step for steps in applied for step in steps)
    return sum(isinstance(step, SavepointStep) and step.change == change for step in steps)


def format_net_change(added: int, removed: int) -> str:
    """Return the net change of bytes with its sign; empty if nothing is added or removed.

    >>> format_net_change(0, 2048), format_net_change(4096, 1024), format_net_change(0, 0)
    ('-2.0 KiB', 'about +3.0 KiB', '')
    """
    if not added and not removed:
        return ""
    net = added - removed
    sign = "+" if net > 0 else "-" if net < 0 else ""
    return f"{'about ' if added else ''}{sign}{words.format_size(abs(net))}"


def tables_by_size(plan: Plan, *wanted: TableVerdict) -> list[TablePlan]:
    """Return the tables with these verdicts: most bytes first, then most files, then by name."""
    return sorted(
        (table for table in plan.tables if table_verdict(table) in wanted),
        key=lambda table: (
            -(table.impact.bytes_removed + table.impact.bytes_rewritten + sum_deleted_bytes(table)),
            -table.impact.files_removed,
            table.name,
        ),
    )


def removed_by_partition(files: RemovedFiles | OrphanFiles) -> list[PartitionRemoval]:
    """Return what every partition loses: most bytes first, then most files, then by path."""
    paths, row = columns.rank_values(files.partition)
    count = np.bincount(row, minlength=len(paths))
    size = sum_by_code(row, files.bytes, len(paths))
    sums = zip(paths, count.tolist(), size.tolist(), strict=True)
    return sorted(
        (PartitionRemoval(*sums_of_path) for sums_of_path in sums if sums_of_path[1]),
        key=lambda s: (-s.bytes, -s.files, s.name),
    )


def count_partitions(files: RemovedFiles | OrphanFiles) -> int:
    """Return how many partitions lose files."""
    _paths, row = columns.rank_values(files.partition)
    return int(np.count_nonzero(np.bincount(row)))


def removal_reasons(files: RemovedFiles) -> list[RuleReasons]:
    """Return the rules by which a step removes files, with their reasons."""
    return _count_reasons(REMOVAL_RULES, files.rule, files.because)


def orphan_reasons(files: OrphanFiles) -> tuple[Reason, ...]:
    """Return the reasons for which orphan files are removed, the most frequent first."""
    texts, row = columns.rank_values(files.because)
    counts = np.bincount(row, minlength=len(texts)).tolist()
    return tuple(
        join_reasons(
            Reason(text, count) for text, count in zip(texts, counts, strict=True) if count
        )
    )


def describe_orphan_age(spec: Mapping[str, Any]) -> str:
    """Return from which age on orphan files are removed, as text.

    >>> describe_orphan_age({"orphans": {"olderThan": "3d"}})
    'files that no write knows and no reader sees, older than 3d'
    """
    block = spec.get("orphans")
    age = block.get("olderThan") if isinstance(block, Mapping) else None
    older = f", older than {words.escape_text(str(age))}" if age else ""
    return f"files that no write knows and no reader sees{older}"


def keep_reasons(kept: KeptFiles) -> list[RuleReasons]:
    """Return the rules that keep files, with their reasons."""
    return _count_reasons(KEEP_RULES, kept.rule, kept.because)


def _count_reasons(names: tuple[str, ...], rule: Any, because: Any) -> list[RuleReasons]:
    texts, row = columns.rank_values(because)
    rules = []
    for code, name in enumerate(names):
        counts = np.bincount(row[rule == code], minlength=len(texts)).tolist()
        reasons = join_reasons(
            Reason(text, count) for text, count in zip(texts, counts, strict=True) if count
        )
        if reasons:
            files = sum(reason.count for reason in reasons)
            rules.append(RuleReasons(name, files, tuple(reasons)))
    return sorted(rules, key=lambda rule: (-rule.files, rule.rule))


def describe_retention(spec: Mapping[str, Any]) -> str:
    """Return the declared retention as text.

    >>> describe_retention({"retention": {"policy": "KEEP_LATEST_BY_HOURS", "hours": 168}})
    'KEEP_LATEST_BY_HOURS, 168 hours (7 days)'
    >>> describe_retention({})
    'no retention declared: nothing is removed'
    """
    block = spec.get("retention")
    if not isinstance(block, Mapping):
        return "no retention declared: nothing is removed"
    policy = words.escape_text(str(block.get("policy", "")))
    match block:
        case {"commits": int(kept)}:
            amount = words.format_count(kept, "commit")
        case {"hours": int(kept)}:
            days = f" ({words.format_duration(3600 * kept)})" if kept % 24 == 0 else ""
            amount = words.format_count(kept, "hour") + days
        case {"fileVersions": int(kept)}:
            amount = words.format_count(kept, "file version")
        case _:
            return policy
    return f"{policy}, {amount}"


def describe_time_travel(table: TablePlan) -> str | None:
    """Return how far back a read can go, before and after; None if it is unknown."""
    before = table.impact.earliest_readable_before
    after = table.impact.earliest_readable_after
    last = None if table.observed is None else table.observed.window_end
    if before is None and after is None:
        return None
    if before == after:
        reach = words.format_time_between(after, last)
        back = f" ({reach})" if reach else ""
        return f"back to {words.format_instant(after)}, as before{back}"
    if before is None or after is None:
        return f"{words.format_instant(before)} → {words.format_instant(after)}"
    old, new = words.format_time_between(before, last), words.format_time_between(after, last)
    shrinks = ""
    if old is not None and new is not None:
        shrinks = f" (shrinks from {old} to {new})" if old != new else f" (stays about {old})"
    first, second = words.format_instant(before), words.format_instant(after)
    if first == second:
        first, second = before, after
    return f"{first} → {second}{shrinks}"


def explain_unchanged(table: TablePlan) -> str:
    """Return in one sentence why nothing happens to a table."""
    if nothing := [note.because for note in table.warnings if _is_nothing_to_do(note)]:
        reasons = map(words.escape_text, nothing)
        return "; ".join(reason.removeprefix("nothing to do: ") for reason in reasons)
    is_cleaned = isinstance(table.spec.get("retention"), Mapping)
    if not is_cleaned and not isinstance(table.spec.get("timeline"), Mapping):
        has_orphans = isinstance(table.spec.get("orphans"), Mapping)
        return _NO_ORPHANS if has_orphans else describe_retention(table.spec)
    for note in table.warnings:
        if note.rule in _BLOCKING_RULES:
            return words.escape_text(note.because)
    return "as declared"


def is_explained(note: Note, explanation: str) -> bool:
    """Return whether the explanation by ``explain_unchanged`` contains a warning."""
    return _is_nothing_to_do(note) or words.escape_text(note.because) in explanation


def _is_nothing_to_do(note: Note) -> bool:
    return note.rule == "nothingToDo" or "nothing to do" in note.because
