"""What the columns of a plan add up to, ready to be said; computed from whole columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from reconciler.plan import columns
from reconciler.plan.model import (
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

Verdict = Literal["error", "blocked", "change", "unchanged"]


@dataclass(frozen=True, slots=True)
class Sum:
    """Files and bytes of one partition, or of one rule and reason."""

    name: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Reasons:
    """The files of one rule, and its reasons, the one with most files first."""

    rule: str
    files: int
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Of a whole plan. Files and bytes are of the tables that would change; blocked ones apart.

    ``rewritten``: bytes that are read and written anew; ``indexed``: tables with an index step;
    ``undone``: writes that are taken back, whose files are in none of these figures.
    """

    tables: int
    change: int
    blocked: int
    errors: int
    unchanged: int
    files: int
    bytes: int
    rewritten: int
    indexed: int
    undone: int


def verdict(table: TablePlan) -> Verdict:
    """What becomes of the table when the plan is applied."""
    if table.error is not None:
        return "error"
    if table.refusals:
        return "blocked"
    return "change" if table.has_changes else "unchanged"


def totals(plan: Plan) -> Totals:
    """The plan in numbers."""
    verdicts = [verdict(table) for table in plan.tables]
    changing = [t for t, v in zip(plan.tables, verdicts, strict=True) if v == "change"]
    return Totals(
        tables=len(verdicts),
        change=verdicts.count("change"),
        blocked=verdicts.count("blocked"),
        errors=verdicts.count("error"),
        unchanged=verdicts.count("unchanged"),
        files=sum(table.impact.files_removed for table in changing),
        bytes=sum(table.impact.bytes_removed for table in changing),
        rewritten=sum(table.impact.bytes_rewritten for table in changing),
        indexed=sum(any(isinstance(s, IndexStep) for s in table.steps) for table in changing),
        undone=sum(isinstance(s, RollbackStep) for table in changing for s in table.steps),
    )


def biggest_first(plan: Plan, *wanted: Verdict) -> list[TablePlan]:
    """The tables of some verdicts: most bytes removed or rewritten first, most files, by name."""
    return sorted(
        (table for table in plan.tables if verdict(table) in wanted),
        key=lambda t: (
            -(t.impact.bytes_removed + t.impact.bytes_rewritten),
            -t.impact.files_removed,
            t.name,
        ),
    )


def by_partition(files: RemovedFiles) -> list[Sum]:
    """What goes from every partition: most bytes first, then most files, then by path."""
    paths, row = columns.ranked(files.partition)
    count = np.bincount(row, minlength=len(paths))
    size = np.zeros(len(paths), np.int64)
    np.add.at(size, row, files.bytes)
    sums = zip(paths, count.tolist(), size.tolist(), strict=True)
    return sorted(
        (Sum(*each) for each in sums if each[1]), key=lambda s: (-s.bytes, -s.files, s.name)
    )


def why_removed(files: RemovedFiles) -> list[Reasons]:
    """Rules and reasons of a step."""
    return _reasons(REMOVAL_RULES, files.rule, files.because)


def why_kept(kept: KeptFiles) -> list[Reasons]:
    """Rules and reasons of what stays."""
    return _reasons(KEEP_RULES, kept.rule, kept.because)


def _reasons(names: tuple[str, ...], rule: Any, because: Any) -> list[Reasons]:
    texts, row = columns.ranked(because)
    found = []
    for code, name in enumerate(names):
        counts = np.bincount(row[rule == code], minlength=len(texts)).tolist()
        reasons = sorted(
            ((text, many) for text, many in zip(texts, counts, strict=True) if many),
            key=lambda pair: (-pair[1], pair[0]),
        )
        if reasons:
            found.append(Reasons(name, sum(many for _, many in reasons), tuple(reasons)))
    return sorted(found, key=lambda r: (-r.files, r.rule))


def retention(spec: Mapping[str, Any]) -> str:
    """The declared retention as a sentence.

    >>> retention({"retention": {"policy": "KEEP_LATEST_BY_HOURS", "hours": 168}})
    'KEEP_LATEST_BY_HOURS, 168 hours (7 days)'
    >>> retention({})
    'no retention declared: nothing is removed'
    """
    block = spec.get("retention")
    if not isinstance(block, Mapping):
        return "no retention declared: nothing is removed"
    policy = words.plain(str(block.get("policy", "")))
    match block:
        case {"commits": int(kept)}:
            much = words.count(kept, "commit")
        case {"hours": int(kept)}:
            days = f" ({words.span(3600 * kept)})" if kept % 24 == 0 else ""
            much = words.count(kept, "hour") + days
        case {"fileVersions": int(kept)}:
            much = words.count(kept, "file version")
        case _:
            return policy
    return f"{policy}, {much}"


def time_travel(table: TablePlan) -> str | None:
    """How far back a read can go before and after, in dates and in words; None when unknown."""
    before = table.impact.earliest_readable_before
    after = table.impact.earliest_readable_after
    last = None if table.observed is None else table.observed.last_completed
    if before is None and after is None:
        return None
    if before == after:
        return f"back to {words.date(after)}, as before{_reach(after, last)}"
    if before is None or after is None:
        return f"{words.date(before)} → {words.date(after)}"
    old, new = words.between(before, last), words.between(after, last)
    shrinks = ""
    if old is not None and new is not None:
        a, b = words.span(old.total_seconds()), words.span(new.total_seconds())
        shrinks = f" (shrinks from {a} to {b})" if a != b else f" (stays about {a})"
    a, b = words.date(before), words.date(after)
    return f"{before} → {after}{shrinks}" if a == b else f"{a} → {b}{shrinks}"


def _reach(instant: str | None, last: str | None) -> str:
    reach = words.between(instant, last)
    return "" if reach is None else f" ({words.span(reach.total_seconds())})"


def unchanged_because(table: TablePlan) -> str:
    """Why nothing happens to a table, in one sentence."""
    nothing = [words.plain(note.because) for note in table.warnings if _is_nothing(note)]
    if nothing:
        return "; ".join(said.removeprefix("nothing to do: ") for said in nothing)
    if not isinstance(table.spec.get("retention"), Mapping):
        return retention(table.spec)
    for note in table.warnings:
        if note.rule in _BLOCKING:
            return words.plain(note.because)
    return "as declared"


def is_said(note: Note, reason: str) -> bool:
    """Whether ``unchanged_because`` says what a warning does."""
    return _is_nothing(note) or words.plain(note.because) in reason


def _is_nothing(note: Note) -> bool:
    return note.rule == "nothingToDo" or "nothing to do" in note.because


#: warnings that explain by themselves why a table has no step
_BLOCKING = ("pendingClean", "pendingWrite", "idle")
