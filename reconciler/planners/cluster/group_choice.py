"""Choose the groups of file slices that are worth rewriting; pure.

Hudi rewrites small files again and again. Here a partition must exceed a threshold, and files that
are already clustered as declared stay. Only new files start a group, so slices that are skipped
once are skipped again, and a second run finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reconciler import units
from reconciler.arrays import Integers, Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.clustering_input import ClusteringInput
from reconciler.planners.cluster.gain import PartitionGains, find_gains
from reconciler.planners.cluster.grouping import SliceGroups, concatenate_groups, form_groups
from reconciler.planners.cluster.repeated_clustering import (
    find_slices_to_combine,
    group_overlapping_clusterings,
)
from reconciler.planners.cluster.size_choice import (
    explain_unsplit,
    find_wrong_sizes,
    is_settled_throughout,
    is_worth_for_sizes,
)
from reconciler.planners.cluster.slice_verdicts import SINGLE_FILE, SliceVerdicts
from reconciler.planners.cluster.triggers import find_unmeasured
from reconciler.planners.newest_slices import CandidateSlices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenGroups:
    """The groups to rewrite. ``is_for_query``: bool per group, a query is the reason for it.

    ``gains``: the predicted gains; None if none are predicted.
    """

    groups: SliceGroups
    is_for_query: Mask
    gains: PartitionGains | None = None


def choose_groups(need: ClusteringInput, verdicts: SliceVerdicts) -> ChosenGroups:
    """Return the groups worth rewriting, those with the smallest slices first.

    ``verdicts`` gets the reason of every slice that is in no group; the others stay undecided.
    """
    candidates = need.candidates
    _explain_only_logs(need, verdicts)
    is_open = verdicts.is_open
    gains = find_gains(need, is_open)
    gaining = gains.groups if gains is not None else concatenate_groups([])
    is_open[gaining.members] = False
    selected = is_open & need.triggers.is_selected(candidates.partition)
    read = is_open & need.max_scan.is_read if need.max_scan is not None else np.zeros_like(selected)
    settled = is_open & need.is_settled & ~find_wrong_sizes(need, selected)
    groups, is_asked, left = _form_groups(need, gaining, selected, read, settled)
    is_open[groups.members] = settled[groups.members] = False
    _explain_untriggered(need, verdicts, is_open, gains)
    _explain_enough_passes(need, verdicts, is_open & selected & need.passes.is_done)
    _explain_ungrouped(need, verdicts, left)
    _explain_clustered(need, verdicts, settled & selected)
    order = _sort_by_gain(need, groups)
    return ChosenGroups(groups=groups.take(order), is_for_query=is_asked[order], gains=gains)


def _form_groups(
    need: ClusteringInput, gaining: SliceGroups, selected: Mask, read: Mask, settled: Mask
) -> tuple[SliceGroups, Mask, Integers]:
    """Return all groups, whether each is for a query, and the new slices left over.

    ``gaining``: groups chosen for their gain. ``selected``, ``read``, ``settled``: the slices that
    triggers select, that a query over its ``maxScan`` reads, and that are clustered as declared.
    """
    wide = need.triggers.is_wide
    settled = settled & ~find_slices_to_combine(
        need, selected & ~settled, settled & selected & wide
    )
    fresh, is_asked, left = _group_new_slices(need, selected & ~settled, read & ~settled)
    fresh = concatenate_groups([gaining, fresh])
    fresh = add_small_files(need, fresh, settled & need.triggers.is_small)
    settled[fresh.members] = False
    again = group_overlapping_clusterings(need, np.flatnonzero(settled & selected & wide))
    settled[again.members] = False
    better = _group_slow_slices(need, np.flatnonzero(settled & read))
    none, all_ = np.zeros(len(again), np.bool_), np.ones(len(better), np.bool_)
    is_asked = np.concatenate([np.zeros(len(gaining), np.bool_), is_asked, none, all_])
    return concatenate_groups([fresh, again, better]), is_asked, left


def explain_partition(
    need: ClusteringInput,
    gains: PartitionGains | None,
    partition: int,
    *,
    query: str = "",
    rewritten: int | None = None,
) -> str:
    """Explain which thresholds a partition exceeds, or that it exceeds none.

    ``query``: the sentence about a query over its ``maxScan`` if that is the reason; then only
    exceeded thresholds are added. ``rewritten``: bytes of the partition's groups; None: it stays.
    """
    clauses = [query] if query else []
    clauses += need.triggers.list_clauses(partition, only_exceeded=bool(query))
    is_shown = gains is not None and gains.is_predicted(partition)
    if gains is not None and is_shown and (gains.fires[partition] or not query):
        clauses.append(gains.explain(partition, rewritten))
    return " and ".join(clauses) or f"no condition of {need.block}.when is known to hold here"


def _explain_only_logs(need: ClusteringInput, verdicts: SliceVerdicts) -> None:
    """Record the reason of slices without a base file that are not rewritten for their size."""
    only_logs = ~need.candidates.has_base & ~need.triggers.is_small
    verdicts.decide("logs", only_logs, "it has only log files; a compaction gives it a base file")


def _sort_by_gain(need: ClusteringInput, groups: SliceGroups) -> Integers:
    """Return the numbers of the groups, those with the smallest slices first."""
    mean = groups.sum_values(need.candidates.bytes) / np.maximum(groups.sizes, 1)
    first = np.argsort(groups.first_members, kind="stable")
    return first[np.argsort(mean[first], kind="stable")]


def _group_new_slices(
    need: ClusteringInput, selected: Mask, read: Mask
) -> tuple[SliceGroups, Mask, Integers]:
    """Group the slices that are not clustered as declared.

    Returns the groups, whether each is for a query, and the slices left over. ``selected``: slices
    that triggers select; ``read``: slices that a query over its ``maxScan`` reads. Both are grouped
    together first if that helps the query; then those of triggers alone; then those of queries
    alone. So a second plan has nothing new to consider.
    """
    partition = need.candidates.partition
    is_near = np.zeros(len(need.triggers.fires), np.bool_)
    is_near[partition[read]] = True
    open_ = (selected | read) & is_near[partition]

    def take_groups(which: Mask, worth: _WorthCheck, near: Mask) -> list[SliceGroups]:
        formed, _ = form_groups(
            need.sort_slices(np.flatnonzero(which), near),
            need.pack,
            worth,
            partition,
        )
        for groups in formed:
            open_[groups.members] = False
            selected[groups.members] = False
        return formed

    both = take_groups(open_, lambda groups: _is_worth_for_queries(need, groups, selected), is_near)
    is_asked = [~_are_all(groups, need.triggers.is_selected(partition)) for groups in both]
    alone = take_groups(selected, lambda groups: _is_worth(need, groups), np.zeros_like(is_near))
    is_asked += [np.zeros(len(groups), np.bool_) for groups in alone]
    none = np.zeros_like(selected)
    rest = take_groups(open_, lambda groups: _is_worth_for_queries(need, groups, none), is_near)
    is_asked += [np.ones(len(groups), np.bool_) for groups in rest]
    flags = np.concatenate([np.zeros(0, np.bool_), *is_asked])
    return concatenate_groups([*both, *alone, *rest]), flags, np.flatnonzero(selected)


_WorthCheck = Callable[[SliceGroups], Mask]


def _are_all(groups: SliceGroups, is_one: Mask) -> Mask:
    """Return per group whether the flag is set for all its slices."""
    are_all: Mask = groups.sum_values(is_one.astype(np.int64)) == groups.sizes
    return are_all


def _is_worth_for_queries(need: ClusteringInput, groups: SliceGroups, selected: Mask) -> Mask:
    """Return as ``_is_worth``, but groups with slices beyond ``selected`` must help a query."""
    is_worth = _is_worth(need, groups)
    asked = np.flatnonzero(is_worth & ~_are_all(groups, selected))
    is_worth[asked] = _reduces_reads(need, groups.take(asked))
    return is_worth


def _reduces_reads(need: ClusteringInput, groups: SliceGroups) -> Mask:
    assert need.max_scan is not None, "a query exceeds its maxScan"
    if need.max_scan.gains is None or not len(groups):
        return np.ones(len(groups), np.bool_)
    return need.max_scan.gains(groups, need.count_outputs(groups), need.is_clustered)


def _group_slow_slices(need: ClusteringInput, settled: Integers) -> SliceGroups:
    """Group clustered slices whose rewrite makes queries over their ``maxScan`` read less."""
    is_near = np.ones(len(need.triggers.fires), np.bool_)
    groups = need.pack(need.sort_slices(settled, is_near))
    groups = groups.filter(need.passes.needs_pass(groups))
    return groups.filter(_reduces_reads(need, groups)) if len(groups) else groups


def _explain_untriggered(
    need: ClusteringInput, verdicts: SliceVerdicts, stays: Mask, gains: PartitionGains | None
) -> None:
    """Record the reason of the slices that no trigger selects."""
    candidates, triggers = need.candidates, need.triggers
    fires = triggers.fires[candidates.partition]
    explain_unsplit(need, verdicts, stays)
    if gains is not None:
        is_near = gains.fires[candidates.partition] & stays & ~fires
        _explain_clustered(need, verdicts, is_near & need.is_settled)
        verdicts.decide("noGain", is_near, "its group would be read hardly less")
    _explain_unmeasured(need, verdicts, stays)
    verdicts.decide(
        "when",
        stays & ~fires,
        lambda partition: explain_partition(need, gains, partition),
        candidates.partition,
    )
    limit = units.format_size(triggers.limits.small)
    measured = ~np.isnan(triggers.overlap[candidates.partition])
    share = " and few files overlap with it" if measured.any() else ""
    large = f"its base file is not below files.small ({limit})"
    is_large = stays & ~(triggers.is_small | triggers.is_wide)
    verdicts.decide("large", is_large, lambda known: large + (share if known else ""), measured)


def _explain_unmeasured(need: ClusteringInput, verdicts: SliceVerdicts, stays: Mask) -> None:
    """Record the reason of new slices whose gain or overlap nothing tells."""
    candidates, clustering = need.candidates, need.clustering
    if not clustering.columns:
        return
    is_new = stays & ~need.is_clustered
    columns = ", ".join(clustering.columns)
    verdicts.decide(
        "unmeasured",
        find_unmeasured(candidates, clustering.when, need.ranges, is_new),
        f"the base files of its partition have no known statistics on {columns}",
    )


def _is_worth(need: ClusteringInput, groups: SliceGroups) -> Mask:
    """Return per group whether rewriting it is worthwhile.

    Packing must make fewer files, or bring files to declared sizes. Clustering by columns needs
    several slices or output files, or a single small file if ``singleFile`` allows it, and a slice
    that may be clustered again. Files clustered as declared are rewritten for their sizes alone.
    """
    outputs = need.count_outputs(groups)
    for_sizes = is_worth_for_sizes(need, groups, outputs)
    if not need.clustering.columns:
        return for_sizes
    worth: Mask = (groups.sizes > 1) | (outputs > 1)
    if need.clustering.single_file:
        worth |= need.triggers.is_small[groups.first_members]
    if need.limits.large is not None:
        worth &= for_sizes | ~is_settled_throughout(need, groups)
    return worth & need.passes.needs_pass(groups)


def _explain_ungrouped(need: ClusteringInput, verdicts: SliceVerdicts, left: Integers) -> None:
    if not need.clustering.columns:
        no_gain = "packing it with others of its partition would not make fewer files"
    else:
        no_gain = "rewriting it alone would not reduce its overlap"
        verdicts.decide("singleFile", left[need.triggers.is_small[left]], SINGLE_FILE)
    verdicts.decide("noGain", left, no_gain)


def _explain_enough_passes(need: ClusteringInput, verdicts: SliceVerdicts, done: Mask) -> None:
    """Record the reason of slices that were clustered as declared often enough."""
    candidates, files = need.candidates, need.candidates.view.files
    parts = max(len(files.partitions), 1)

    def explain(code: int) -> str:
        instant, partition = divmod(code, parts)
        return (
            f"clustering {files.instants[instant]} ordered it as declared, and its partition was "
            f"clustered {need.passes.limits[partition]} times; only new rows cause another rewrite"
        )

    codes = _base_instants(candidates) * parts + candidates.partition
    verdicts.decide("clustered", done, explain, codes)


def _base_instants(slices: CandidateSlices) -> Integers:
    """Return per slice the code of the instant of its base file."""
    files = slices.view.files
    return files.instant[slices.base_row].astype(np.int64) if len(files) else slices.base_row


def _explain_clustered(need: ClusteringInput, verdicts: SliceVerdicts, clustered: Mask) -> None:
    instants = need.candidates.view.files.instants
    verdicts.decide(
        "clustered",
        clustered,
        lambda code: f"clustering {instants[code]} ordered it as declared",
        _base_instants(need.candidates),
    )


def add_small_files(need: ClusteringInput, groups: SliceGroups, is_able: Mask) -> SliceGroups:
    """Return the groups with those small clustered files added that each save a file.

    A file is added only to a group at least as big as itself. So a row is rewritten a few times in
    its life, and not with every new file.
    """
    candidates = need.candidates
    able = np.flatnonzero(is_able)
    if not len(able) or not len(groups):
        return groups
    able = able[np.lexsort((able, candidates.bytes[able], candidates.partition[able]))]
    every = np.arange(len(need.triggers.fires) + 1)
    bounds = np.searchsorted(candidates.partition[able], every)
    starts, ends = bounds[:-1].copy(), bounds[1:]
    total, data = groups.sum_values(candidates.bytes), groups.sum_values(need.row_bytes)
    partition = candidates.partition[groups.first_members]
    joining: list[list[int]] = [[] for _ in range(len(groups))]
    for number in np.flatnonzero((starts < ends)[partition]).tolist():
        at, end = int(starts[partition[number]]), int(ends[partition[number]])
        while at < end and _has_room(need, int(able[at]), total[number], data[number]):
            joining[number].append(int(able[at]))
            total[number] += candidates.bytes[able[at]]
            data[number] += need.row_bytes[able[at]]
            at += 1
        starts[partition[number]] = at
    parts = [
        SliceGroups(members, np.array([0, len(members)], np.int64))
        for number, more in enumerate(joining)
        for members in [np.concatenate([groups[number], np.array(more, np.int64)])]
    ]
    return concatenate_groups(parts)


def _has_room(need: ClusteringInput, candidate: int, total: np.int64, data: np.int64) -> bool:
    size = need.candidates.bytes[candidate]
    if size > total or total + size > need.max_group_bytes:
        return False
    before, after = need.limits.count_files(
        need.sizes, np.array([data, data + need.row_bytes[candidate]])
    ).tolist()
    return bool(after == before)
