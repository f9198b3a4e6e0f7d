"""Advise a layout and index columns for the queries of a table; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reconciler import units
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.buckets import find_buckets
from reconciler.planners.cluster.cluster_plan import plan_cluster_step
from reconciler.planners.cluster.planner import decide_clustering
from reconciler.planners.cluster.size_limits import find_split_rule
from reconciler.planners.newest_slices import find_candidates
from reconciler.planners.picture import TablePicture
from reconciler.planners.prediction.compaction_advice import CompactionAdvice, advise_compaction
from reconciler.planners.prediction.current_reads import can_skip_slices, measure_reads
from reconciler.planners.prediction.forecast import describe_sample, forecast_queries
from reconciler.planners.prediction.layout_candidates import (
    MIN_SAVING,
    LayoutCandidate,
    LayoutTrial,
    QueryColumns,
    QueryReads,
    choose_trial,
    find_query_columns,
    list_candidates,
    rank_trials,
    sum_bytes,
    weigh_queries,
)
from reconciler.planners.prediction.layout_trials import WholeTable, try_layout
from reconciler.planners.reasons import pluralize
from reconciler.plans.layout_change import Sampled
from reconciler.plans.model import Note
from reconciler.spec.model import Clustering, ClusteringBudget, ClusteringTrigger, Query, TableSpec

if TYPE_CHECKING:
    from reconciler.planners.newest_slices import CandidateSlices
    from reconciler.planners.prediction.current_reads import CurrentReads
    from reconciler.state.sampling.model import ForecastInput, RowSample, SampleRequest

#: rows that layouts are tried on; a few dozen layouts take about a second each
MAX_ROWS: Final = 80_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Advice:
    """The advice for one table. ``error`` is set if it could not be read.

    ``current``: what each query reads now; None if too little is known of the files, and then no
    layout was tried. ``files``, ``bytes``: totals of the newest slices. ``trials``: best first.
    ``best``: the proposed one; None if none is worth a rewrite; ``because`` gives the reason.
    ``declared``: the layout of the spec. ``when``: the conditions that the spec should have so that
    its plan applies the layout; None if it has them. ``index``: the index columns that the spec
    should have; empty if it has all of them, or if they spare no query a file. ``skips_files``:
    whether statistics spare a query a file as the table lies; None if that is unknown.
    ``compaction``: what log files cost the queries; None if they read none.
    """

    name: str
    path: str
    queries: tuple[Query, ...] = ()
    current: tuple[QueryReads, ...] | None = None
    files: int = 0
    bytes: int = 0
    trials: tuple[LayoutTrial, ...] = ()
    best: LayoutTrial | None = None
    because: str = ""
    declared: LayoutCandidate | None = None
    when: ClusteringTrigger | None = None
    index: tuple[str, ...] = ()
    skips_files: bool | None = None
    sampled: Sampled | None = None
    notes: tuple[Note, ...] = ()
    error: str | None = None
    compaction: CompactionAdvice | None = None

    @property
    def has_changes(self) -> bool:
        """Return whether the spec should change."""
        return self.changes_clustering or bool(self.index) or self.adds_compaction

    @property
    def adds_compaction(self) -> bool:
        """Return whether the spec should declare a compaction."""
        return self.compaction is not None and self.compaction.block is not None

    @property
    def changes_clustering(self) -> bool:
        """Return whether the clustering block of the spec should change."""
        is_new = self.best is not None and self.best.candidate != self.declared
        return is_new or self.when is not None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdviceDraft:
    """The advice for a table before layouts are tried on a sample of its rows.

    ``table``: None if there is no layout to try; then the advice is complete.
    """

    advice: Advice
    forecast_input: ForecastInput
    table: WholeTable | None = None
    candidates: tuple[LayoutCandidate, ...] = ()

    def choose_samples(self, max_rows: int) -> tuple[SampleRequest, ...]:
        """Return what to sample of the table for layouts fitted to ``max_rows`` rows."""
        return () if self.table is None else self.table.choose_samples(max_rows)


def draft_advice(picture: TablePicture) -> AdviceDraft:
    """Return the advice for a spec with queries as far as it needs no sample of rows."""
    spec, forecast_input = picture.spec, picture.state.forecast_input
    assert forecast_input is not None, "the spec has queries"
    declared = _declared_candidate(spec, forecast_input)
    more = declared.columns if declared else ()
    forecast_input = replace(
        forecast_input, columns=tuple(dict.fromkeys((*forecast_input.columns, *more)))
    )
    wanted = find_query_columns(
        spec.queries, forecast_input.schema, tuple(forecast_input.partition_values)
    )
    warnings = tuple(Note(warning.rule, warning.because) for warning in forecast_input.warnings)
    advice = Advice(
        name=spec.name,
        path=spec.path,
        queries=spec.queries,
        declared=declared,
        index=_list_index_columns(spec, wanted),
        notes=(*wanted.notes, *warnings),
    )
    candidates = find_candidates(picture.state)
    current = measure_reads(spec, forecast_input, candidates)
    if current is None:
        because = "too little is known of the table's files to try a layout"
        return AdviceDraft(advice=replace(advice, because=because), forecast_input=forecast_input)
    reads = zip(current.reads.files.tolist(), current.reads.bytes.tolist(), strict=True)
    advice = replace(
        advice,
        current=tuple(QueryReads(files=files, bytes=size) for files, size in reads),
        files=len(candidates),
        bytes=current.table_bytes,
        skips_files=can_skip_slices(current, forecast_input, candidates)
        if len(candidates)
        else None,
        compaction=advise_compaction(picture, current, candidates),
    )
    table = build_whole_table(picture, candidates, current)
    if not wanted.columns or not (table.outputs > 1).any() or _has_only_buckets(candidates):
        advice = _leave_out_index(replace(advice, because=_explain_no_trial(wanted, table)))
        return AdviceDraft(advice=advice, forecast_input=forecast_input)
    return AdviceDraft(
        advice=advice,
        forecast_input=forecast_input,
        table=table,
        candidates=list_candidates(wanted),
    )


def finish_advice(draft: AdviceDraft, sample: RowSample) -> Advice:
    """Return the advice after trying the layouts and the declared one on a sample."""
    advice, table = draft.advice, draft.table
    if table is None or advice.current is None:
        return advice
    forecast_input = replace(draft.forecast_input, sample=sample)
    declared = [advice.declared] if advice.declared else []
    candidates = dict.fromkeys([*declared, *draft.candidates])
    tried = [try_layout(table, forecast_input, layout) for layout in candidates]
    weights = weigh_queries(advice.queries)
    known = (trial for trial in tried if trial is not None)
    trials = rank_trials(known, advice.declared, weights)
    best = choose_trial(advice.current, trials, weights)
    advice = replace(
        advice,
        trials=trials,
        best=best,
        because=_explain_choice(advice, trials, best, weights),
        sampled=describe_sample(sample),
        notes=(*advice.notes, *_warn_of_logs(table)),
    )
    return _leave_out_index(advice)


def list_proposals(spec: TableSpec, advice: Advice) -> tuple[TableSpec, ...]:
    """Return the specs to plan with before the best layout is proposed, the preferred one first.

    The first keeps the conditions of the spec, or the defaults. The others have a lower limit for
    the gain, down to the least that is worth a rewrite.
    """
    if advice.best is None:
        return ()
    layout = advice.best.candidate
    block = replace(
        spec.clustering or Clustering(columns=()),
        columns=layout.columns,
        curve=layout.curve,
        mapping=layout.mapping,
    )
    small = block.when.small_file_share_above
    eager = ClusteringTrigger(small_file_share_above=small, gain_above=MIN_SAVING)
    conditions = dict.fromkeys([block.when, ClusteringTrigger(), eager])
    blocks = [replace(block, when=when) for when in conditions]
    return tuple(replace(spec, clustering=some, retention=None) for some in blocks)


def explain_no_step(picture: TablePicture) -> str | None:
    """Return why the plan of a proposal rewrites nothing; None if it has a step."""
    decision = (
        decide_clustering(picture)
        if picture.state.forecast_input is None
        else forecast_queries(picture).decision
    )
    plan = plan_cluster_step(picture, decision)
    if plan.step is not None:
        return None
    notes = (*plan.refusals, *plan.warnings)
    return next((note.because for note in notes), "no file slice is rewritten")


def choose_proposal(
    advice: Advice, spec: TableSpec, explain: Callable[[TableSpec], str | None]
) -> Advice:
    """Return the advice with the first proposal whose plan has a step, or without any.

    ``explain``: returns why the plan of a spec rewrites nothing, None if it has a step.
    """
    reasons = []
    for proposal in list_proposals(spec, advice):
        assert proposal.clustering is not None, "proposals have a clustering block"
        why = explain(proposal)
        if why is None:
            when = proposal.clustering.when
            now = spec.clustering.when if spec.clustering is not None else ClusteringTrigger()
            return advice if when == now else replace(advice, when=when)
        reasons.append(why)
    if not reasons:
        return advice
    because = f"nothing is proposed, because a plan would rewrite nothing: {reasons[0]}"
    return _leave_out_index(replace(advice, best=None, because=because))


def _leave_out_index(advice: Advice) -> Advice:
    """Return the advice without an index that spares no query a file.

    A layout that is proposed or declared makes files that an index can skip.
    """
    is_idle = advice.skips_files is False and advice.best is None and advice.declared is None
    return replace(advice, index=()) if is_idle else advice


def _warn_of_logs(table: WholeTable) -> Iterator[Note]:
    """Warn that the figures do not include log files."""
    if (table.candidates.logs > 0).any():
        yield Note(
            "logs",
            "every query reads slices with log files today, and the figures of the layouts do not "
            "include log files; compact first for better figures",
        )


def widen_spec(spec: TableSpec) -> TableSpec:
    """Return a spec for which record sizes are read but nothing that only a trigger needs."""
    everything = Clustering(columns=(), when=ClusteringTrigger(always=True))
    return replace(spec, clustering=everything, retention=None)


def build_whole_table(
    picture: TablePicture, candidates: CandidateSlices, current: CurrentReads
) -> WholeTable:
    """Return the table as layouts are tried on it; ``current``: what queries read of the slices."""
    statistics, clustering = picture.statistics, picture.spec.clustering
    budget = clustering.budget if clustering else ClusteringBudget()
    return WholeTable.build(
        candidates,
        current,
        rows=statistics.facts.rows,
        sizes=statistics.sizes,
        split=find_split_rule(picture.spec),
        per_group=budget.per_group,
    )


def _declared_candidate(spec: TableSpec, forecast_input: ForecastInput) -> LayoutCandidate | None:
    """Return the declared layout if it orders rows by columns of the table."""
    clustering = spec.clustering
    if (
        clustering is None
        or not clustering.columns
        or not {*clustering.columns} <= {*forecast_input.schema.names}
    ):
        return None
    return LayoutCandidate(
        columns=clustering.columns, curve=clustering.curve or "kd-tree", mapping=clustering.mapping
    )


def _list_index_columns(spec: TableSpec, wanted: QueryColumns) -> tuple[str, ...]:
    """Return all index columns that the spec should have; empty if it has them."""
    indexed = spec.index.columns if spec.index else ()
    more = [name for name in wanted.index_columns if name not in indexed]
    return (*indexed, *more) if more else ()


def _has_only_buckets(candidates: CandidateSlices) -> bool:
    """Return whether every file slice is a bucket, which clustering neither merges nor splits."""
    return len(candidates) > 0 and bool(find_buckets(candidates).all())


def _explain_no_trial(wanted: QueryColumns, table: WholeTable) -> str:
    if not wanted.columns:
        return "no layout helps: no query filters on a column that can order rows"
    if not len(table.candidates):
        return "no layout was tried: the table has no files"
    if _has_only_buckets(table.candidates):
        return (
            "no layout helps: the table has a bucket index, so rows stay in the file group of "
            "their bucket, and queries cannot skip parts of a file"
        )
    files = pluralize(int(table.outputs.sum()), "file")
    target = units.format_size(table.split.target)
    return (
        f"no layout helps: with files of {target} (files.target) the table has {files}, one per "
        "partition or group, and queries cannot skip parts of a file"
    )


def _explain_choice(
    advice: Advice,
    trials: Sequence[LayoutTrial],
    best: LayoutTrial | None,
    weights: Sequence[float],
) -> str:
    before = sum_bytes(advice.current or (), weights)
    if not trials:
        return "no layout was tried: no row of the table's files could be sampled"
    if not before:
        return "no layout helps: the queries read nothing today"
    after = sum_bytes(trials[0].reads, weights)
    counted = ", each counted as often as it runs" if len(set(weights)) > 1 else ""
    share = f"{100 * after / before:.0f} %"
    if best is None:
        still = f"{share} of what they read today{counted}" if after <= before else "more"
        return (
            f"the current layout is good enough: with the best layout tried the queries would read "
            f"{still}, and a rewrite should save at least 10 %"
        )
    if best.candidate == advice.declared:
        read = f"after it is applied the queries read {share} of today"
        return f"the declared layout is best: {read}{counted}"
    return f"the queries would read {share} of what they read today{counted}"
