"""What the columns of a plan add up to, ready to be said; computed from whole columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from reconciler.plans import columns
from reconciler.plans.model import (
    KEEP_RULES,
    REMOVAL_RULES,
    IndexStep,
    KeptFiles,
    Note,
    Plan,
    RemovedFiles,
    RollbackStep,
    TablePlan,
)
from reconciler.render import words

TableVerdict = Literal["error", "blocked", "change", "unchanged"]


@dataclass(frozen=True, slots=True)
class PartitionRemoval:
    """Files and bytes of one partition, or of one rule and reason."""

    name: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RuleReasons:
    """The files of one rule, and its reasons, the one with most files first."""

    rule: str
    files: int
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTotals:
    """Of a whole plan. Files and bytes are of the tables that would change; blocked ones apart.

    ``bytes_rewritten``: bytes that are read and written anew; ``tables_indexed``: tables with an index step;
    ``rollbacks``: writes that are taken back, whose files are in none of these figures.
    """

    tables: int
    change: int
    blocked: int
    errors: int
    unchanged: int
    files_removed: int
    bytes_removed: int
    bytes_rewritten: int
    tables_indexed: int
    rollbacks: int


def table_verdict(table: TablePlan) -> TableVerdict:
    """What becomes of the table when the plan is applied."""
    if table.error is not None:
        return "error"
    if table.refusals:
        return "blocked"
    return "change" if table.has_changes else "unchanged"


def count_totals(plan: Plan) -> PlanTotals:
    """The plan in numbers."""
    verdicts = [table_verdict(table) for table in plan.tables]
    changing = [t for t, v in zip(plan.tables, verdicts, strict=True) if v == "change"]
    return PlanTotals(
        tables=len(verdicts),
        change=verdicts.count("change"),
        blocked=verdicts.count("blocked"),
        errors=verdicts.count("error"),
        unchanged=verdicts.count("unchanged"),
        files_removed=sum(table.impact.files_removed for table in changing),
        bytes_removed=sum(table.impact.bytes_removed for table in changing),
        bytes_rewritten=sum(table.impact.bytes_rewritten for table in changing),
        tables_indexed=sum(
            any(isinstance(s, IndexStep) for s in table.steps) for table in changing
        ),
        rollbacks=sum(isinstance(s, RollbackStep) for table in changing for s in table.steps),
    )


def tables_by_size(plan: Plan, *wanted: TableVerdict) -> list[TablePlan]:
    """The tables of some verdicts: most bytes removed or rewritten first, most files, by name."""
    return sorted(
        (table for table in plan.tables if table_verdict(table) in wanted),
        key=lambda t: (
            -(t.impact.bytes_removed + t.impact.bytes_rewritten),
            -t.impact.files_removed,
            t.name,
        ),
    )


def removed_by_partition(files: RemovedFiles) -> list[PartitionRemoval]:
    """What goes from every partition: most bytes first, then most files, then by path."""
    paths, row = columns.rank_values(files.partition)
    count = np.bincount(row, minlength=len(paths))
    size = np.zeros(len(paths), np.int64)
    np.add.at(size, row, files.bytes)
    sums = zip(paths, count.tolist(), size.tolist(), strict=True)
    return sorted(
        (PartitionRemoval(*each) for each in sums if each[1]),
        key=lambda s: (-s.bytes, -s.files, s.name),
    )


def removal_reasons(files: RemovedFiles) -> list[RuleReasons]:
    """Rules and reasons of a step."""
    return _count_reasons(REMOVAL_RULES, files.rule, files.because)


def keep_reasons(kept: KeptFiles) -> list[RuleReasons]:
    """Rules and reasons of what stays."""
    return _count_reasons(KEEP_RULES, kept.rule, kept.because)


def _count_reasons(names: tuple[str, ...], rule: Any, because: Any) -> list[RuleReasons]:
    texts, row = columns.rank_values(because)
    found = []
    for code, name in enumerate(names):
        counts = np.bincount(row[rule == code], minlength=len(texts)).tolist()
        reasons = sorted(
            ((text, many) for text, many in zip(texts, counts, strict=True) if many),
            key=lambda pair: (-pair[1], pair[0]),
        )
        if reasons:
            found.append(RuleReasons(name, sum(many for _, many in reasons), tuple(reasons)))
    return sorted(found, key=lambda r: (-r.files, r.rule))


def describe_retention(spec: Mapping[str, Any]) -> str:
    """The declared retention as a sentence.

    >>> retention({"retention": {"policy": "KEEP_LATEST_BY_HOURS", "hours": 168}})
    'KEEP_LATEST_BY_HOURS, 168 hours (7 days)'
    >>> retention({})
    'no retention declared: nothing is removed'
    """
    block = spec.get("retention")
    if not isinstance(block, Mapping):
        return "no retention declared: nothing is removed"
    policy = words.escape_text(str(block.get("policy", "")))
    match block:
        case {"commits": int(kept)}:
            much = words.format_count(kept, "commit")
        case {"hours": int(kept)}:
            days = f" ({words.format_duration(3600 * kept)})" if kept % 24 == 0 else ""
            much = words.format_count(kept, "hour") + days
        case {"fileVersions": int(kept)}:
            much = words.format_count(kept, "file version")
        case _:
            return policy
    return f"{policy}, {much}"


def describe_time_travel(table: TablePlan) -> str | None:
    """How far back a read can go before and after, in dates and in words; None when unknown."""
    before = table.impact.earliest_readable_before
    after = table.impact.earliest_readable_after
    last = None if table.observed is None else table.observed.last_completed
    if before is None and after is None:
        return None
    if before == after:
        return f"back to {words.format_instant(after)}, as before{_format_reach(after, last)}"
    if before is None or after is None:
        return f"{words.format_instant(before)} → {words.format_instant(after)}"
    old, new = words.time_between(before, last), words.time_between(after, last)
    shrinks = ""
    if old is not None and new is not None:
        a, b = (
            words.format_duration(old.total_seconds()),
            words.format_duration(new.total_seconds()),
        )
        shrinks = f" (shrinks from {a} to {b})" if a != b else f" (stays about {a})"
    a, b = words.format_instant(before), words.format_instant(after)
    return f"{before} → {after}{shrinks}" if a == b else f"{a} → {b}{shrinks}"


def _format_reach(instant: str | None, last: str | None) -> str:
    reach = words.time_between(instant, last)
    return "" if reach is None else f" ({words.format_duration(reach.total_seconds())})"


def explain_unchanged(table: TablePlan) -> str:
    """Why nothing happens to a table, in one sentence."""
    nothing = [
        words.escape_text(note.because) for note in table.warnings if _is_nothing_to_do(note)
    ]
    if nothing:
        return "; ".join(said.removeprefix("nothing to do: ") for said in nothing)
    if not isinstance(table.spec.get("retention"), Mapping):
        return describe_retention(table.spec)
    for note in table.warnings:
        if note.rule in _BLOCKING_RULES:
            return words.escape_text(note.because)
    return "as declared"


def is_explained(note: Note, explanation: str) -> bool:
    """Whether ``explain_unchanged`` says what a warning does."""
    return _is_nothing_to_do(note) or words.escape_text(note.because) in explanation


def _is_nothing_to_do(note: Note) -> bool:
    return note.rule == "nothingToDo" or "nothing to do" in note.because


#: warnings that explain by themselves why a table has no step
_BLOCKING_RULES = ("pendingClean", "pendingWrite", "idle")
