"""Plan which file slices of a merge-on-read table are compacted, and why; pure.

Without ``when`` the slices are those of Hudi: the newest of every file group that has log files and
that no pending compaction or clustering holds (BaseHoodieCompactionPlanGenerator, 0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow.compute as pc

from reconciler import units
from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.instant import COMMITS, Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.compact.conditions import (
    Condition,
    find_drift,
    judge_slices,
    refuse_unknown_zone,
)
from reconciler.planners.compact.deltacommits import Deltacommits, count_deltacommits
from reconciler.planners.compact.log_figures import LogFigures, measure_logs
from reconciler.planners.compact.slice_verdicts import SliceVerdicts, explain_nothing
from reconciler.planners.compaction_obstacles import find_file_obstacles, find_merge_obstacles
from reconciler.planners.newest_slices import make_slice_keys
from reconciler.planners.picture import TablePicture
from reconciler.planners.reasons import format_bytes, pluralize
from reconciler.planners.slice_rewrites import build_rewrites
from reconciler.plans.compact_step import CompactStep, ExpectedCompaction
from reconciler.plans.groups import slice_paths
from reconciler.plans.model import Finding, Note
from reconciler.plans.rewrites import Rewrites
from reconciler.spec.compaction import Compaction
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.spec.partition_filter import find_excluded_partitions
from reconciler.state.model import TableState

_FIELD: Final = "compaction.partitions"
#: the base file of a bootstrapped group, whose rows are outside of the table
_SKELETON: Final = "_00000000000001.parquet"
_HOLDERS: Final = {
    "pendingCompaction": "compaction {} is going to rewrite its file group",
    "pendingLogCompaction": "log compaction {} is going to rewrite its log files",
    "pendingClustering": "clustering {} is going to rewrite its file group",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompactionPart:
    """The compaction step of a table, None if no slice is due, with its notes."""

    step: CompactStep | None = None
    findings: tuple[Finding, ...] = ()
    refusals: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Run:
    """One run of the planner: what is declared, the slices, and the verdicts so far."""

    compaction: Compaction
    files: FileSizes
    state: TableState
    figures: LogFigures
    verdicts: SliceVerdicts
    conditions: tuple[Condition, ...] | None
    deltacommits: Deltacommits


def plan_compaction(
    picture: TablePicture, clustered: Rewrites | None = None
) -> CompactionPart | None:
    """Return the compaction of a table; None if its spec declares none.

    ``clustered``: the groups that a clustering of the same plan rewrites, which merges their log
    files too.
    """
    spec, state = picture.spec, picture.state
    if (compaction := spec.compaction) is None:
        return None
    if refusals := (*_refuse_table(spec, state), *refuse_unknown_zone(picture)):
        return CompactionPart(refusals=refusals)
    figures = measure_logs(state)
    run = _Run(
        compaction=compaction,
        files=picture.file_sizes,
        state=state,
        figures=figures,
        verdicts=SliceVerdicts(figures.has_logs),
        conditions=judge_slices(picture, figures),
        deltacommits=count_deltacommits(state),
    )
    _exclude_held(run)
    _exclude_clustered(run, clustered)
    _exclude_partitions(run, picture)
    _exclude_skeletons(run)
    _exclude_early(run)
    is_due = run.verdicts.is_open.copy()
    findings = tuple(_find_drift(run, is_due))
    obstacles = [*find_file_obstacles(state), *find_merge_obstacles(state)]
    if obstacles and is_due.any():
        note = Note("compaction", f"no compaction: {obstacles[0]}", step="compact")
        return CompactionPart(findings=findings, refusals=(note,))
    if (unsafe := _exclude_unsafe(run, is_due)) is not None:
        return CompactionPart(findings=findings, warnings=(unsafe,))
    chosen = _take_within_budget(run)
    part = CompactionPart(findings=findings, warnings=tuple(_collect_warnings(run, chosen)))
    return replace(part, step=_build_step(run, chosen)) if len(chosen) else part


# --- refusals ------------------------------------------------------------------------------------


def _refuse_table(spec: TableSpec, state: TableState) -> Iterator[Note]:
    """Refuse tables without log files, and those whose writers no lock keeps out."""
    if not state.is_merge_on_read:
        yield Note(
            "compaction",
            "the table is copy-on-write, so it has no log files to compact; remove compaction from "
            "the spec",
            step="compact",
        )
        return
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is not None and lock.provider == "none":
        yield Note(
            "lock",
            "a compaction needs a lock: without one nobody can tell whether a pending one is left "
            "behind; configure concurrency.lock, or remove compaction",
            step="compact",
        )


def find_unsafe_write(state: TableState, writes: Iterable[Instant]) -> Instant | None:
    """Return a pending write beside which no compaction may be requested; None if there is none.

    In version 6 its log files are named after the slices that it found, so rows that it brings to
    them once they are compacted would never be read. Later versions name log files after their
    write. Source: ScheduleCompactionActionExecutor.execute.
    """
    if state.table_version >= LOGS_BY_COMPLETION:
        return None
    services = {clustering.instant for clustering in state.pending_clusterings}
    return next(
        (one for one in writes if one.action in COMMITS and one.requested not in services), None
    )


# --- verdicts ------------------------------------------------------------------------------------


def _exclude_held(run: _Run) -> None:
    """Exclude slices that a pending table service rewrites."""
    slices = run.figures.slices
    for rule, sentence in _HOLDERS.items():
        codes = [code for code, (by, _) in enumerate(slices.holders) if by == rule]
        run.verdicts.decide(
            rule,
            np.isin(slices.holder, codes),
            lambda code, sentence=sentence: sentence.format(slices.holders[code][1]),  # type: ignore[misc]
            slices.holder,
        )


def _exclude_clustered(run: _Run, clustered: Rewrites | None) -> None:
    if clustered is None or not len(clustered):
        return
    keys = make_slice_keys(run.figures.slices)
    is_clustered = to_numpy(pc.is_in(keys, value_set=slice_paths(clustered)))
    text = "a clustering of this plan rewrites it, and merges its log files"
    run.verdicts.decide("clustering", is_clustered, text)


def _exclude_partitions(run: _Run, picture: TablePicture) -> None:
    known, slices = run.state.partitions, run.figures.slices
    reasons = find_excluded_partitions(known, run.compaction.partitions, _FIELD)
    paths = slices.view.files.partitions
    unknown = set(paths) - set(known)
    reasons |= dict.fromkeys(unknown, "its folder is not a partition of the table")
    for rule, excluded in (("partition", reasons), ("expired", picture.expired)):
        texts = [excluded.get(path, "") for path in paths]
        is_out = np.array([bool(text) for text in texts], np.bool_)
        run.verdicts.decide(rule, is_out[slices.partition], texts.__getitem__, slices.partition)


def _exclude_skeletons(run: _Run) -> None:
    slices = run.figures.slices
    names = slices.view.files.name
    is_skeleton = np.zeros(len(slices), np.bool_)
    with_base = np.flatnonzero(slices.has_base)
    bases = names.take(to_arrow(slices.base_row[with_base]))
    is_skeleton[with_base] = to_numpy(pc.ends_with(bases, _SKELETON))
    text = "its base file is a bootstrap skeleton, whose rows are outside the table"
    run.verdicts.decide("bootstrap", is_skeleton, text)


def _exclude_early(run: _Run) -> None:
    """Exclude all slices before enough deltacommits, and those that no condition holds for."""
    everything = np.ones(len(run.verdicts.rule), np.bool_)
    if wait := run.deltacommits.explain_wait(run.compaction):
        run.verdicts.decide("afterDeltaCommits", everything, wait)
    if run.conditions is None:
        return
    is_worth = np.zeros(len(everything), np.bool_)
    for condition in run.conditions:
        is_worth |= condition.is_met
    run.verdicts.decide("when", ~is_worth, "no condition of compaction.when holds")


def _exclude_unsafe(run: _Run, is_due: Mask) -> Note | None:
    """Exclude all slices while a write is pending beside which none may be compacted."""
    state = run.state
    write = find_unsafe_write(state, state.foreign_writes)
    if write is None or not is_due.any():
        return None
    text = (
        f"{write.action} {write.requested} is pending, and in table version {state.table_version} "
        "it may still write log files to the slices that would be compacted"
    )
    run.verdicts.decide("pendingWrite", is_due, text)
    slices = pluralize(int(is_due.sum()), "file slice")
    return Note("pendingWrite", f"no compaction of {slices}: {text}; plan again when it is done")


def _take_within_budget(run: _Run) -> Integers:
    """Return the slices to compact, sorted; the others that are due wait for another run.

    A slice is taken as long as the bytes before it are within the budget, as Hudi's
    BoundedIOCompactionStrategy does, so the last one may exceed it.
    """
    budget, verdicts = run.compaction.budget, run.verdicts
    order = sort_slices(run.figures, run.compaction.order)
    order = order[verdicts.is_open[order]]
    io = run.figures.count_io(run.files.target)[order]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(io)[:-1]])[: len(order)]
    is_taken = np.ones(len(order), np.bool_)
    limits = []
    if budget.rewrite is not None:
        is_taken &= before < budget.rewrite
        limits.append(units.format_size(budget.rewrite))
    if budget.groups is not None:
        is_taken &= np.arange(len(order)) < budget.groups
        limits.append(pluralize(budget.groups, "file slice"))
    is_over = np.zeros(len(verdicts.rule), np.bool_)
    is_over[order[~is_taken]] = True
    text = f"a run compacts at most {' and '.join(limits)} (compaction.budget)"
    verdicts.decide("budget", is_over, text)
    chosen = np.sort(order[is_taken])
    is_chosen = np.zeros(len(verdicts.rule), np.bool_)
    is_chosen[chosen] = True
    verdicts.decide("compact", is_chosen, "it is compacted")
    return chosen


def sort_slices(figures: LogFigures, order: str) -> Integers:
    """Return all slices in the declared order.

    ``logBytes``: those with most bytes of log files first, as Hudi's
    LogFileSizeBasedCompactionStrategy; ``oldest``: those with the oldest log file.
    """
    by_bytes = np.argsort(-figures.slices.logs, kind="stable")
    if order == "logBytes":
        return by_bytes
    return np.array(sorted(by_bytes.tolist(), key=figures.oldest.__getitem__), np.int64)


# --- the step ------------------------------------------------------------------------------------


def _build_step(run: _Run, chosen: Integers) -> CompactStep:
    ones = np.ones(len(chosen), np.int64)
    starts = np.arange(len(chosen) + 1)
    because = [_explain_slice(run, number) for number in chosen.tolist()]
    return CompactStep(
        order=run.compaction.order,
        groups=build_rewrites(run.figures.slices, chosen, starts, ones, because),
        expected=_sum_partitions(run.figures, chosen),
        untouched=run.verdicts.list_untouched(),
    )


def _explain_slice(run: _Run, number: int) -> str:
    """Return what becomes of a slice, and why."""
    slices = run.figures.slices
    count = int(run.figures.files[number])
    logs = f"{pluralize(count, 'log file')} of {format_bytes(int(slices.logs[number]))}"
    on = f" on a base file of {format_bytes(int(slices.base[number]))}"
    amount = logs + (on if slices.base_row[number] >= 0 else "")
    become = f"{amount} become{'s' * (count == 1)} 1 base file"
    return f"{become}: {_find_reason(run, number)}"


def _find_reason(run: _Run, number: int) -> str:
    if run.conditions is None:
        limit = f"compaction.afterDeltaCommits: {run.compaction.after_delta_commits}"
        return f"{run.deltacommits} ({limit})"
    met = [condition.because for condition in run.conditions if condition.is_met[number]]
    return " and ".join(met)


def _sum_partitions(figures: LogFigures, chosen: Integers) -> tuple[ExpectedCompaction, ...]:
    """Return what each partition reads and is expected to write, sorted by partition."""
    slices = figures.slices
    codes, which = np.unique(slices.partition[chosen], return_inverse=True)
    sums = [
        np.bincount(which, weights=values, minlength=len(codes)).astype(np.int64).tolist()
        for values in (
            figures.files[chosen],
            slices.logs[chosen],
            slices.bytes[chosen],
            figures.estimate_written()[chosen],
        )
    ]
    counts = np.bincount(which, minlength=len(codes)).tolist()
    paths = slices.view.files.partitions
    rows = zip(codes.tolist(), counts, *sums, strict=True)
    found = [
        ExpectedCompaction(
            partition=paths[code],
            slices=count,
            log_files=files,
            log_bytes=logs,
            bytes=size,
            expected_bytes=written,
        )
        for code, count, files, logs, size, written in rows
    ]
    return tuple(sorted(found, key=lambda one: one.partition))


def _find_drift(run: _Run, is_due: Mask) -> Iterator[Finding]:
    slices = run.figures.slices
    count, logs = int(is_due.sum()), int(slices.logs[is_due].sum())
    files = pluralize(int(run.figures.files[is_due].sum()), "log file")
    share = 100 * logs / max(int(slices.bytes[is_due].sum()), 1)
    amount = (
        f"{pluralize(count, 'file slice')} with {files} "
        f"of {format_bytes(logs)}, {share:.0f} % of their bytes"
    )
    yield from find_drift(run.conditions, is_due, run.compaction, run.deltacommits.count, amount)


def _collect_warnings(run: _Run, chosen: Integers) -> Iterator[Note]:
    over = len(run.verdicts.find("budget"))
    if over:
        verb = "waits" if over == 1 else "wait"
        slices = pluralize(over, "file slice")
        after = pluralize(run.compaction.after_delta_commits, "more deltacommit")
        text = f"{slices} {verb} for another run, after {after}: compaction.budget limits this one"
        yield Note("budget", text)
    if not len(chosen):
        yield Note("nothingToDo", explain_nothing(run.verdicts.list_untouched()))
