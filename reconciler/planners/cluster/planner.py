"""Plan which slices a clustering rewrites together, into how many files, and why; pure.

With ``when: always`` the groups are those of Hudi 1.2.0 (PartitionAwareClusteringPlanStrategy).
Otherwise a partition must exceed a threshold, and slices clustered as declared stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler import units
from reconciler.arrays import Integers, Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.after_commits import NOTHING_TO_DO, check_after_commits
from reconciler.planners.cluster.asked_boxes import AskedBoxes
from reconciler.planners.cluster.buckets import BucketGroups, choose_buckets
from reconciler.planners.cluster.clustering_input import (
    ClusteringInput,
    MaxScanDemand,
    SimulatedGains,
)
from reconciler.planners.cluster.gain import PartitionGains
from reconciler.planners.cluster.group_choice import choose_groups, explain_partition
from reconciler.planners.cluster.grouping import SliceGroups, find_first_in_partition, pack_next_fit
from reconciler.planners.cluster.notes import (
    refuse_agreed_buckets,
    warn_of_damaged_files,
    warn_of_pending_writes,
    warn_of_unmeasured,
)
from reconciler.planners.cluster.passes import count_passes, has_few_logs, is_clustered
from reconciler.planners.cluster.pending_slices import exclude_pending
from reconciler.planners.cluster.quiet_partitions import find_busy_partitions
from reconciler.planners.cluster.size_limits import SizeLimits
from reconciler.planners.cluster.slice_verdicts import (
    RULES,
    SINGLE_FILE,
    SliceVerdicts,
    explain_no_groups,
    format_slices,
)
from reconciler.planners.cluster.triggers import Triggers, evaluate_triggers
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.planners.newest_slices import CandidateSlices, find_candidates
from reconciler.planners.picture import TablePicture
from reconciler.planners.reasons import format_bytes, pluralize
from reconciler.planners.slice_rewrites import build_rewrites
from reconciler.plans.model import Note
from reconciler.plans.rewrites import Rewrites
from reconciler.spec.model import Clustering, FileSizes, TableSpec
from reconciler.spec.partition_filter import find_excluded_partitions
from reconciler.spec.rules import find_large
from reconciler.state.clustering_layout import ClusteringLayout, declared_layout
from reconciler.state.model import TableState


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteringDecision:
    """The groups to rewrite, and the verdict on every candidate slice.

    ``layout``: the declared row order. ``groups`` are in the order of partitions. ``rule``: int8
    per slice of ``candidates``, into RULES; ``because``: a dictionary array with a sentence per
    slice. ``group_of``: int64 per slice, its group; -1 for none. ``triggers``: what was measured in
    the partitions; None under ``when: always``. ``members``: int64, the slices of the groups, group
    by group in the order of their rows. ``is_clustered``: bool per slice, an earlier clustering
    wrote its base file as declared. ``gains``: the predicted gains; None if none are predicted.
    """

    layout: ClusteringLayout
    groups: Rewrites
    candidates: CandidateSlices
    rule: NDArray[np.int8]
    because: Any
    group_of: Integers
    triggers: Triggers | None
    members: Integers
    is_clustered: Mask
    refusals: tuple[Note, ...]
    warnings: tuple[Note, ...]
    gains: PartitionGains | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ClusteringRun:
    """One run of the planner: the declaration, the slices, and the verdicts so far."""

    spec: TableSpec
    clustering: Clustering
    files: FileSizes
    limits: SizeLimits
    state: TableState
    candidates: CandidateSlices
    verdicts: SliceVerdicts
    statistics: KnownStatistics
    max_scan: MaxScanDemand | None
    buckets: BucketGroups = field(default_factory=BucketGroups)

    @property
    def layout(self) -> ClusteringLayout:
        """Return the declared row order."""
        return declared_layout(self.clustering)

    @property
    def block(self) -> str:
        """Return the block of the spec that declares partitions, budget and triggers."""
        return "files" if self.spec.clustering is None else "clustering"

    @property
    def is_clustered(self) -> Mask:
        """Return which slices have a base file that an earlier clustering wrote as declared."""
        return is_clustered(self.candidates, self.statistics.past, self.layout)


def decide_clustering(
    picture: TablePicture,
    max_scan: MaxScanDemand | None = None,
    simulated: SimulatedGains | None = None,
) -> ClusteringDecision:
    """Decide what to rewrite of a table.

    ``max_scan``: slices to rewrite for a query. ``simulated``: simulated gains of queries.
    """
    avoided = {"expired": picture.expired, "quiet": find_busy_partitions(picture)}
    return plan_clustering(
        picture.spec, picture.state, picture.statistics, max_scan, simulated, avoided=avoided
    )


def plan_clustering(
    spec: TableSpec,
    state: TableState,
    statistics: KnownStatistics,
    max_scan: MaxScanDemand | None = None,
    simulated: SimulatedGains | None = None,
    *,
    avoided: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> ClusteringDecision:
    """Decide about the newest slice of every file group. The spec declares a rewrite.

    ``max_scan``: slices to rewrite for a query's ``maxScan``; ignored under ``when: always``.
    ``simulated``: simulated gains of declared queries; None: gains are predicted from ranges.
    ``avoided``: partitions to leave alone, each with the reason, by rule: ``expired`` ones are past
    their retention, ``quiet`` ones were written recently.
    Damaged files of the ``statistics`` are not rewritten.
    """
    if (clustering := spec.rewriting) is None:
        raise ValueError("the spec declares neither a clustering nor file sizes")
    candidates = find_candidates(state)
    if not clustering.columns:
        statistics, max_scan = replace(statistics, ranges=None), None
    table = _ClusteringRun(
        spec=spec,
        clustering=clustering,
        files=spec.files or FileSizes(),
        limits=SizeLimits.from_spec(spec.files or FileSizes()),
        state=state,
        candidates=candidates,
        verdicts=SliceVerdicts(len(candidates)),
        statistics=statistics,
        max_scan=max_scan,
    )
    exclude_pending(candidates, table.verdicts, but_writes=clustering.when.always)
    _exclude_partitions(table, avoided)
    _exclude_damaged(table)
    blocking_note = check_after_commits(
        clustering, state, statistics.past, table.layout, table.verdicts
    )
    table = _plan_buckets(table)
    if clustering.when.always:
        groups, weight = _group_like_hudi(table), _hudi_weight(table)
        outputs = np.maximum(-(-groups.sum_values(weight) // table.files.target), 1)
        chosen = _take_within_budget(table, groups)
        reasons = ["whatever is small is rewritten (when: always)"] * len(chosen)
        return _build_decision(
            table, None, groups.take(chosen), outputs[chosen], reasons, blocking_note
        )
    need = replace(_build_input(table), simulated=simulated)
    worth = choose_groups(need, table.verdicts)
    chosen = _take_within_budget(table, worth.groups)
    groups, outputs = worth.groups.take(chosen), need.count_outputs(worth.groups)[chosen]
    reasons = _explain_choice(need, worth.gains, groups, worth.is_for_query[chosen])
    decision = _build_decision(table, need.triggers, groups, outputs, reasons, blocking_note)
    return _add_gains(decision, worth.gains)


def _explain_choice(
    need: ClusteringInput, gains: PartitionGains | None, groups: SliceGroups, is_asked: Mask
) -> list[str]:
    """Return why each group is rewritten; ``is_asked``: a query is the reason for it."""
    candidates = need.candidates
    query = need.max_scan.reason if need.max_scan is not None else ""
    partition = candidates.partition[groups.first_members]
    rewritten = np.zeros(len(need.triggers.fires), np.int64)
    np.add.at(rewritten, partition, groups.sum_values(candidates.bytes))
    return [
        explain_partition(
            need, gains, code, query=query if asked else "", rewritten=int(rewritten[code])
        )
        for code, asked in zip(partition.tolist(), is_asked.tolist(), strict=True)
    ]


def _add_gains(decision: ClusteringDecision, gains: PartitionGains | None) -> ClusteringDecision:
    """Return the decision with the predicted gains; without groups its note names the greatest."""
    text = "" if gains is None else gains.explain_best()
    if len(decision.groups) or not text:
        return replace(decision, gains=gains)
    warnings = tuple(
        replace(note, because=f"{note.because}; {text}") if note.rule == NOTHING_TO_DO else note
        for note in decision.warnings
    )
    return replace(decision, gains=gains, warnings=warnings)


def _exclude_partitions(table: _ClusteringRun, avoided: Mapping[str, Mapping[str, str]]) -> None:
    known, field = table.state.partitions, f"{table.block}.partitions"
    reasons = find_excluded_partitions(known, table.clustering.partitions, field)
    paths, partition = table.candidates.view.files.partitions, table.candidates.partition
    unknown = set(paths) - set(known)
    reasons |= dict.fromkeys(unknown, "its folder is not a partition of the table")
    for rule, excluded in (("partition", reasons), *avoided.items()):
        texts = [excluded.get(path, "") for path in paths]
        is_out = np.array([bool(text) for text in texts], np.bool_)
        table.verdicts.decide(rule, is_out[partition], texts.__getitem__, partition)


def _exclude_damaged(table: _ClusteringRun) -> None:
    if table.statistics.damaged:
        rows, base_row = sorted(table.statistics.damaged), table.candidates.base_row
        explain = table.statistics.damaged.__getitem__
        table.verdicts.decide("damaged", np.isin(base_row, rows), explain, base_row)


def _plan_buckets(table: _ClusteringRun) -> _ClusteringRun:
    """Return the run with the buckets that it rewrites; no other group may take these."""
    large = table.limits.large or find_large(table.files.target)
    due = choose_buckets(
        table.candidates, table.verdicts, table.clustering, table.is_clustered, large
    )
    buckets = due.take(_take_within_budget(table, due.groups))
    table.verdicts.reserve(buckets.slices)
    return replace(table, buckets=buckets)


def _hudi_weight(table: _ClusteringRun) -> Integers:
    """Return slice sizes as Hudi counts them: base files only; the target for a log-only slice."""
    candidates = table.candidates
    return np.where(candidates.has_base, candidates.base, table.files.target)


def _group_like_hudi(table: _ClusteringRun) -> SliceGroups:
    """Return the groups of Hudi 1.2.0 in its order: small base files, the biggest first."""
    candidates, clustering, verdicts = table.candidates, table.clustering, table.verdicts
    limit = units.format_size(table.files.small)
    large = f"its base file is not below files.small ({limit})"
    verdicts.decide("large", candidates.base >= table.files.small, large)
    slices, weight = np.flatnonzero(verdicts.is_open), _hudi_weight(table)
    order = slices[np.lexsort((slices, -weight[slices], candidates.partition[slices]))]
    groups = pack_next_fit(order, candidates.partition, weight, clustering.budget.per_group)
    among = find_first_in_partition(groups, candidates.partition, clustering.budget.groups)
    _exclude_over_budget(table, groups.filter(~among))
    groups = groups.filter(among)
    if clustering.single_file:
        return groups
    is_single = (groups.sizes == 1) & (groups.sum_values(weight) <= table.files.target)
    single = groups.filter(is_single)
    verdicts.decide("singleFile", single.members, SINGLE_FILE)
    return groups.filter(~is_single)


def _build_input(table: _ClusteringRun) -> ClusteringInput:
    candidates, clustering, ranges = table.candidates, table.clustering, table.statistics.ranges
    settled = table.is_clustered & has_few_logs(candidates)
    passes = count_passes(candidates, table.spec, clustering, settled, table.statistics.past)
    can_split = table.limits.can_split(candidates, table.statistics.sizes) & ~passes.is_done
    return ClusteringInput(
        clustering=clustering,
        block=table.block,
        limits=table.limits,
        candidates=candidates,
        triggers=evaluate_triggers(
            candidates,
            table.limits,
            can_split,
            clustering.when,
            ranges,
            is_open=table.verdicts.is_open,
            sizes=table.statistics.sizes,
        ),
        is_clustered=table.is_clustered,
        is_settled=settled,
        passes=passes,
        row_bytes=table.statistics.sizes.data_bytes(candidates.base, candidates.logs),
        sizes=table.statistics.sizes,
        ranges=ranges,
        max_scan=table.max_scan,
        asked=AskedBoxes.build(
            table.spec.queries, clustering.columns, table.statistics.facts.bounds, ranges
        )
        if ranges is not None and clustering.when.gain_above is not None
        else None,
    )


def _take_within_budget(table: _ClusteringRun, groups: SliceGroups) -> Integers:
    """Return the first groups that fit into the budget of one run, sorted by partition."""
    budget, first = table.clustering.budget, table.buckets
    left = np.inf if budget.rewrite is None else budget.rewrite
    left -= int(table.candidates.bytes[first.slices].sum())
    taken: list[int] = []
    for number, size in enumerate(groups.sum_values(table.candidates.bytes).tolist()):
        if len(taken) + len(first) >= budget.groups:
            break
        if size <= left:
            taken.append(number)
            left -= size
    is_taken = np.zeros(len(groups), np.bool_)
    is_taken[taken] = True
    _exclude_over_budget(table, groups.filter(~is_taken))
    chosen = np.array(taken, np.int64)
    return chosen[
        np.argsort(table.candidates.partition[groups.first_members[chosen]], kind="stable")
    ]


def _exclude_over_budget(table: _ClusteringRun, groups: SliceGroups) -> None:
    budget = table.clustering.budget
    rewrite = "" if budget.rewrite is None else f" and {units.format_size(budget.rewrite)}"
    limit = f"{pluralize(budget.groups, 'group')}{rewrite}"
    reason = f"a run rewrites at most {limit} ({table.block}.budget)"
    table.verdicts.decide("budget", groups.members, reason)


def _build_decision(
    table: _ClusteringRun,
    fired: Triggers | None,
    groups: SliceGroups,
    outputs: Integers,
    reasons: list[str],
    blocking_note: Note | None,
) -> ClusteringDecision:
    candidates, verdicts = table.candidates, table.verdicts
    groups, outputs, reasons = table.buckets.join(groups, outputs, reasons, candidates)
    verdicts.release()
    because = _explain_groups(table, groups, outputs, reasons)
    group_of = np.full(len(candidates), -1, np.int64)
    group_of[groups.members] = groups.number_members()
    verdicts.decide("group", groups.members, because.__getitem__, group_of)
    return ClusteringDecision(
        layout=table.layout,
        groups=build_rewrites(candidates, groups.members, groups.starts, outputs, because),
        candidates=candidates,
        rule=verdicts.rule,
        because=verdicts.because,
        group_of=group_of,
        triggers=fired,
        members=groups.members,
        is_clustered=table.is_clustered,
        refusals=tuple(refuse_agreed_buckets(candidates)),
        warnings=tuple(_collect_warnings(table, groups, blocking_note)),
    )


def _explain_groups(
    table: _ClusteringRun, groups: SliceGroups, outputs: Integers, reasons: list[str]
) -> list[str]:
    sums = groups.sum_values(table.candidates.bytes).tolist()
    rows = zip(groups.sizes.tolist(), sums, outputs.tolist(), reasons, strict=True)
    return [
        f"{pluralize(slices, 'file slice')} of {format_bytes(size)} become{'s' * (slices == 1)} "
        f"{pluralize(files, 'file')}: {reason}"
        for slices, size, files, reason in rows
    ]


def _collect_warnings(
    table: _ClusteringRun, groups: SliceGroups, blocking_note: Note | None
) -> Iterable[Note]:
    clustering, rule = table.clustering, table.verdicts.rule
    yield from warn_of_damaged_files(table.candidates, rule, table.statistics.damaged)
    if blocking_note is not None:
        yield blocking_note
        return
    yield from warn_of_unmeasured(table.candidates, clustering, rule)
    over = int((rule == RULES.index("budget")).sum())
    if over:
        waits = f"{{}} wait for another run: {table.block}.budget limits this one"
        yield Note("budget", format_slices(waits, over))
    yield from warn_of_pending_writes(table.candidates, groups)
    if not len(groups):
        yield Note(NOTHING_TO_DO, explain_no_groups(rule, table.block))
