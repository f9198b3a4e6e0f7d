"""Plan the cluster step of a table: the step, its effect, refusals and warnings; pure.

It is used only for tables whose spec declares a rewrite: a clustering, or file sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from typing import Final

import numpy as np

from reconciler.errors import BusyError, UnsupportedError, did_you_mean
from reconciler.hudi.metadata.sync_decisions import SyncEffect, decide_rewrite_sync
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.buckets import find_buckets, measure_unfolded
from reconciler.planners.cluster.gain import list_partition_gains
from reconciler.planners.cluster.layout_figures import PartitionFigures, predict_layout
from reconciler.planners.cluster.notes import refuse_tiny_files, refuse_tiny_target
from reconciler.planners.cluster.oversized import find_oversized
from reconciler.planners.cluster.planner import ClusteringDecision, decide_clustering
from reconciler.planners.cluster.quiet_partitions import refuse_unknown_zone
from reconciler.planners.cluster.size_limits import SizeLimits
from reconciler.planners.cluster.slice_verdicts import RULES
from reconciler.planners.cluster.withheld import decide_withheld
from reconciler.planners.cluster.writer_sizes import warn_of_writers
from reconciler.planners.drift import UnclusteredSlices
from reconciler.planners.picture import TablePicture
from reconciler.planners.reasons import pluralize, speak_of
from reconciler.plans import columns
from reconciler.plans.layout_change import (
    LayoutChange,
    LayoutFigures,
    PartitionGain,
    Sampled,
    Untouched,
)
from reconciler.plans.model import UNMEASURED_RULES, ClusterStep, Finding, Note
from reconciler.plans.refusals import warn_of_unlocked_writes
from reconciler.state.clustering_facts import ClusteringFacts
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.model import TableState

_META: Final = "_hoodie_"
_INFLIGHT: Final = "hoodie.table.metadata.partitions.inflight"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterPlan:
    """The cluster step and its effect. All but notes are None if nothing is rewritten.

    ``findings``: differences from the spec that no rewrite removes.
    """

    step: ClusterStep | None = None
    layout: LayoutChange | None = None
    unclustered: UnclusteredSlices | None = None
    findings: tuple[Finding, ...] = ()
    refusals: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()


def plan_cluster_step(
    picture: TablePicture,
    decision: ClusteringDecision | None = None,
    sampled: Sampled | None = None,
) -> ClusterPlan:
    """Return the cluster step of a table whose spec declares a clustering or file sizes.

    ``decision``, ``sampled``: those of the forecast, if the spec has queries.
    """
    if not picture.can_rewrite:
        return ClusterPlan(refusals=tuple(_refuse_damaged_write(picture.state)))
    if decision is None:
        decision = decide_clustering(picture)
    state, facts = picture.state, picture.statistics.facts
    notes = (*_collect_warnings(decision, facts), *_warn_of_pending(state))
    wrong = tuple(_find_wrong_columns(decision.layout, facts))
    never = (
        *decision.refusals,
        *_refuse_consistent_hashing(facts),
        *refuse_unknown_zone(picture),
    )
    oversized = find_oversized(picture, decision)
    findings: tuple[Finding, ...] = (oversized,) if oversized is not None else ()
    if not len(decision.groups):
        doubts = tuple(replace(note, step=None) for note in (*never, *wrong))
        refused = tuple(refuse_tiny_target(picture.file_sizes.target, oversized))
        findings += tuple(_find_missing_layout(decision, wrong))
        plan = ClusterPlan(findings=findings, refusals=refused, warnings=(*doubts, *notes))
        return plan if refused else _add_withheld_drift(picture, decision, plan)
    if never:
        return ClusterPlan(findings=findings, refusals=never, warnings=notes)
    refusals, drops = _check_metadata_indexes(picture, decision)
    target = picture.file_sizes.target
    tiny = refuse_tiny_files(decision.groups, _count_rows(picture, decision), target)
    if refusals := (*wrong, *refusals, *tiny):
        return ClusterPlan(findings=findings, refusals=refusals, warnings=notes)
    layout = decision.layout
    writers = warn_of_writers(picture, decision.candidates, decision.members)
    return ClusterPlan(
        step=ClusterStep(
            columns=layout.columns,
            curve=layout.curve,
            mapping=layout.mapping,
            purpose=None if picture.spec.clustering else "sizes",
            groups=decision.groups,
        ),
        layout=_describe_change(picture, decision, sampled),
        unclustered=_measure_unclustered(picture, decision),
        findings=findings,
        warnings=(*notes, *drops, *warn_of_unlocked_writes(picture.spec, state), *writers),
    )


def _add_withheld_drift(
    picture: TablePicture, decision: ClusteringDecision, plan: ClusterPlan
) -> ClusterPlan:
    """Return the plan with the drift, or the doubt, of slices that wait: for commits or a budget.

    A table is not in sync if it would be rewritten without the wait.
    """
    withheld = decide_withheld(picture, decision)
    if withheld is None:
        return plan
    due, warnings = withheld.due, plan.warnings
    if withheld.named is not None:
        former = {*decision.warnings}
        warnings = (*(note for note in warnings if note not in former), *withheld.named)
    if len(due.groups):
        return replace(plan, unclustered=_measure_unclustered(picture, due), warnings=warnings)
    doubts = (note for note in due.warnings if note.rule in UNMEASURED_RULES)
    rules = {note.rule for note in plan.warnings}
    more = (note for note in doubts if note.rule not in rules)
    return replace(plan, warnings=(*plan.warnings, *more))


# --- refusals and warnings -----------------------------------------------------------------------


def _collect_warnings(decision: ClusteringDecision, facts: ClusteringFacts) -> Iterator[Note]:
    """Yield warnings from reading the table, then those of the decision with other rules."""
    notes = [Note(doubt.rule, doubt.because) for doubt in facts.warnings]
    rules = {note.rule for note in notes}
    yield from notes
    yield from (note for note in decision.warnings if note.rule not in rules)


def _refuse_damaged_write(state: TableState) -> Iterator[Note]:
    """Refuse a rewrite for file sizes alone if a past write cannot be read."""
    if state.damaged_write:
        yield Note(
            "damagedWrite", f"no rewrite for file sizes: {state.damaged_write}", step="cluster"
        )


def _refuse_consistent_hashing(facts: ClusteringFacts) -> Iterator[Note]:
    """Refuse to cluster a table with a consistent-hashing bucket index."""
    if facts.is_consistently_hashed:
        yield Note(
            "bucketIndex",
            "the table has a consistent-hashing bucket index, which maps every key to a file "
            "group; rows that writers put into a group replaced by clustering would never be "
            "read; let Hudi resize the buckets",
            step="cluster",
        )


def _find_wrong_columns(layout: ClusteringLayout, facts: ClusteringFacts) -> Iterator[Note]:
    """Yield refusals for columns that rows cannot be ordered by."""
    known = facts.columns
    if known is None:
        return
    for name in layout.columns:
        if name.startswith(_META):
            continue
        if name not in known:
            near = did_you_mean(name, known)
            hint = f"did you mean {near!r}?" if near else f"its columns are {', '.join(known)}"
            problem = f"clustering.columns: the table has no column {name!r}; {hint}"
            yield Note("columns", problem, step="cluster")
        elif known[name]:
            rules = f"{name} is a {known[name]}, which has no order; remove it"
            yield Note("columns", f"clustering.columns: {rules}", step="cluster")


def _find_missing_layout(
    decision: ClusteringDecision, wrong: tuple[Note, ...]
) -> Iterator[Finding]:
    """Yield that rows cannot be in the declared order; nothing of a table without rows.

    ``wrong``: the columns that rows cannot be ordered by.
    """
    if wrong and len(decision.candidates):
        yield Finding(
            field="clustering.columns",
            desired=list(decision.layout.columns),
            actual=None,
            because="; ".join(note.because.removeprefix("clustering.columns: ") for note in wrong),
        )


def _warn_of_pending(state: TableState) -> Iterator[Note]:
    """Warn of pending clusterings whose file groups must not be rewritten."""
    described = {pending.instant for pending in state.pending_clusterings}
    counts = Counter(given.instant for given in state.clusterings)
    for instant in described:  # these get another warning
        counts.pop(instant, None)
    for instant, count in counts.items():
        yield Note(
            "pendingClustering",
            f"clustering {instant} is pending and will rewrite {pluralize(count, 'file group')}; "
            "they are not changed until it is run or rolled back",
        )


def _count_rows(picture: TablePicture, decision: ClusteringDecision) -> int | None:
    """Return the rows of the slices to rewrite; None if a base file's are unknown, or with logs."""
    candidates, member = decision.candidates, decision.group_of >= 0
    counts = picture.statistics.facts.rows[candidates.base_row[member & candidates.has_base]]
    is_known = counts.all() and not candidates.logs[member].any()
    return int(counts.sum()) if is_known else None


def _check_metadata_indexes(
    picture: TablePicture, decision: ClusteringDecision
) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
    """Return refusals for metadata indexes that forbid a rewrite, and warnings for dropped ones."""
    state = picture.state
    bases = decision.candidates.base_row[decision.group_of >= 0]
    rows = int(picture.statistics.facts.rows[bases[bases >= 0]].sum())
    inflight = state.properties.get(_INFLIGHT, "")
    try:
        verdicts = decide_rewrite_sync(
            state.metadata_partitions,
            table_version=state.table_version,
            rows=rows,
            inflight=tuple(name for name in inflight.split(",") if name),
        )
    except BusyError as error:
        return (), (Note("metadata", str(error)),)
    except UnsupportedError as error:
        return (Note("metadata", f"no clustering: {error}", step="cluster"),), ()
    return (), tuple(
        Note(
            "metadata",
            f"the clustering drops {partition} of the metadata table, which a Hudi writer must "
            f"rebuild: {verdict.because}",
        )
        for partition, verdict in verdicts.items()
        if verdict.effect is SyncEffect.DROP
    )


# --- the effect of the step ----------------------------------------------------------------------


def _describe_change(
    picture: TablePicture, decision: ClusteringDecision, sampled: Sampled | None
) -> LayoutChange:
    known = picture.statistics
    forecast = predict_layout(decision, picture.file_sizes, known.sizes, known.ranges)
    return LayoutChange(
        below=tuple(forecast.before.sizes.upper_bounds.tolist()),
        before=_sum_figures(forecast.before),
        after=_sum_figures(forecast.after),
        untouched=_list_untouched(decision),
        bytes_written=forecast.bytes_written,
        sampled=sampled,
        gains=_list_gains(decision),
    )


def _list_gains(decision: ClusteringDecision) -> tuple[PartitionGain, ...] | None:
    """Return the gains of the partitions that are rewritten for them; None if there are none."""
    if decision.gains is None:
        return None
    candidates, rewritten = decision.candidates, decision.group_of >= 0
    partitions = candidates.view.files.partitions
    size = np.zeros(len(partitions), np.int64)
    np.add.at(size, candidates.partition[rewritten], candidates.bytes[rewritten])
    return list_partition_gains(decision.gains, partitions, size) or None


def _sum_figures(figures: PartitionFigures) -> LayoutFigures:
    overlap = figures.table_overlap
    return LayoutFigures(
        files=int(figures.files.sum()),
        small=int(figures.small.sum()),
        bytes=int(figures.bytes.sum()),
        overlap=None if isnan(overlap) else round(overlap, 2),
        sizes=tuple(figures.sizes.files.tolist()),
    )


def _list_untouched(decision: ClusteringDecision) -> tuple[Untouched, ...]:
    """Return the unchanged slices by rule, with the most frequent sentence of each."""
    code, texts = columns.dictionary_codes(decision.because), decision.because.dictionary
    untouched = []
    for number, rule in enumerate(RULES):
        codes = code[decision.rule == number]
        if rule != "group" and len(codes):
            most = int(np.bincount(codes).argmax())
            because = speak_of(len(codes), str(texts[most].as_py()))
            untouched.append(Untouched(rule, len(codes), because))
    return tuple(sorted(untouched, key=lambda rule: (-rule.slices, rule.rule)))


def _measure_unclustered(picture: TablePicture, decision: ClusteringDecision) -> UnclusteredSlices:
    """Measure what is not as declared in the partitions that are rewritten."""
    candidates, triggers = decision.candidates, decision.triggers
    member = decision.group_of >= 0
    touched = np.unique(candidates.partition[member])
    bases = candidates.base[member & candidates.has_base]
    is_sized = ~find_buckets(candidates)  # buckets keep the sizes that they have
    small = SizeLimits.from_spec(picture.file_sizes).find_small(candidates) & is_sized
    large = np.zeros_like(small) if triggers is None else triggers.is_large & is_sized
    touched_small, worst = touched, np.zeros(0)
    if triggers is not None:
        touched_small = touched[(triggers.packs | (triggers.large > 0))[touched]]
        overlap = triggers.overlap[touched]
        worst = overlap[~np.isnan(overlap) & (triggers.when.overlap_above is not None)]
    is_touched = np.isin(candidates.partition, touched_small)
    past, gain = picture.statistics.past, None
    if decision.gains is not None and decision.gains.fires[touched].any():
        gain = round(float(np.nanmax(decision.gains.share[touched])), 3)
    return UnclusteredSlices(
        layout=decision.layout,
        past=past[-1] if past else None,
        slices=int(member.sum()),
        partitions=len(touched_small),
        mean_bytes=int(bases.mean()) if len(bases) else None,
        small=int((small & is_touched).sum()),
        files=int(((candidates.has_base | small) & is_touched).sum()),
        large=int((large & is_touched).sum()),
        only_logs=int((small & ~candidates.has_base & is_touched).sum()),
        overlap=round(float(worst.max()), 2) if len(worst) else None,
        gain=gain,
        unfolded=measure_unfolded(candidates, member, always=triggers is None),
    )
