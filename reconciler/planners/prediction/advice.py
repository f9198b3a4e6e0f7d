"""Advise a layout and index columns for the queries of a table; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reconciler import units
from reconciler.planners.cluster.candidates import find_candidates as newest_slices
from reconciler.planners.cluster.known_statistics import collect_statistics
from reconciler.planners.prediction.current_reads import measure_reads
from reconciler.planners.prediction.layout_candidates import (
    LayoutCandidate,
    LayoutTrial,
    QueryColumns,
    QueryReads,
    choose_trial,
    find_query_columns,
    list_candidates,
    rank_trials,
)
from reconciler.planners.prediction.layout_trials import WholeTable, try_layout
from reconciler.planners.protection import build_table_view
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import Note, Sampled
from reconciler.spec.model import Clustering, ClusteringBudget, ClusteringTrigger, Query, TableSpec
from reconciler.state.observe import observe
from reconciler.state.sampling.forecast_input import add_forecast_input
from reconciler.state.sampling.row_sample import read_sample

if TYPE_CHECKING:
    from reconciler.planners.cluster.candidates import CandidateSlices
    from reconciler.planners.prediction.current_reads import CurrentReads
    from reconciler.state.model import TableState
    from reconciler.state.sampling.model import ForecastInput
    from reconciler.storage.api import Storage

#: rows that layouts are tried on; a few dozen layouts take about a second each
MAX_ROWS: Final = 80_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Advice:
    """The advice for one table. ``error`` is set if it could not be read.

    ``current``: what each query reads now; None if too little is known of the files, and then no
    layout was tried. ``files``, ``bytes``: of the newest slices. ``trials``: best first.
    ``best``: the proposed one; None if none is worth a rewrite; ``because`` gives the reason.
    ``declared``: the layout of the spec. ``index``: the index columns that the spec should have;
    empty if it has all of them.
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
    index: tuple[str, ...] = ()
    sampled: Sampled | None = None
    notes: tuple[Note, ...] = ()
    error: str | None = None

    @property
    def has_changes(self) -> bool:
        """Return whether the spec should change."""
        changes = self.best is not None and self.best.candidate != self.declared
        return changes or bool(self.index)


def advise_table(
    storage: Storage, spec: TableSpec, *, observed_ms: int, max_rows: int = MAX_ROWS
) -> Advice:
    """What layout and index the spec's queries ask for; the spec has some.

    Reads footers, or what indexes say of them, and the row groups of a sample; of the same files
    always the same. Raises StorageError, FormatError, UnsupportedError, BlockedError.
    """
    state = observe(storage, _widen_spec(spec), observed_ms=observed_ms)
    state = add_forecast_input(storage, replace(spec, clustering=None), state)
    foresight = state.forecast_input
    assert foresight is not None, "the spec has queries"
    declared = _declared_candidate(spec, foresight)
    more = declared.columns if declared else ()
    columns = tuple(dict.fromkeys((*foresight.columns, *more)))
    foresight = replace(foresight, columns=columns)
    asks = find_query_columns(spec.queries, foresight.schema, tuple(foresight.partition_values))
    doubts = tuple(Note(doubt.rule, doubt.because) for doubt in foresight.warnings)
    known = Advice(
        name=spec.name,
        path=spec.path,
        queries=spec.queries,
        declared=declared,
        index=_list_index_columns(spec, asks),
        notes=(*asks.notes, *doubts),
    )
    found = newest_slices(state, build_table_view(state))
    now = measure_reads(spec, foresight, found)
    if now is None:
        return replace(known, because="too little is known of the table's files to try a layout")
    reads = zip(now.reads.files.tolist(), now.reads.bytes.tolist(), strict=True)
    known = replace(
        known,
        current=tuple(QueryReads(files=files, bytes=size) for files, size in reads),
        files=len(found),
        bytes=now.table_bytes,
    )
    whole = _build_table(spec, state, found, now)
    if not asks.columns or not (whole.outputs > 1).any():
        return replace(known, because=_explain_no_trial(asks, whole))
    return _try_layouts(storage, state, foresight, whole, list_candidates(asks), known, max_rows)


def _try_layouts(  # noqa: PLR0913, PLR0917
    storage: Storage,
    state: TableState,
    foresight: ForecastInput,
    whole: WholeTable,
    options: Sequence[LayoutCandidate],
    known: Advice,
    most_rows: int,
) -> Advice:
    """Return the advice after trying the layouts and the declared one."""
    sample = read_sample(
        storage,
        state.files,
        whole.choose_samples(most_rows),
        foresight.columns,
        foresight.schema,
        max_rows=most_rows,
    )
    sampled = Sampled(
        row_groups=sample.groups, total_row_groups=sample.total_groups, rows=len(sample.rows)
    )
    foresight = replace(foresight, sample=sample)
    declared = [known.declared] if known.declared else []
    tries = [try_layout(whole, foresight, one) for one in dict.fromkeys([*declared, *options])]
    trials = rank_trials((one for one in tries if one is not None), known.declared)
    assert known.current is not None, "it was looked at"
    best = choose_trial(known.current, trials)
    because = _explain_choice(known.current, trials, best, known.declared)
    return replace(
        known,
        trials=trials,
        best=best,
        because=because,
        sampled=sampled,
        notes=(*known.notes, *_warn_of_logs(whole)),
    )


def _warn_of_logs(whole: WholeTable) -> Iterator[Note]:
    """Warn that the figures do not include log files."""
    if (whole.candidates.logs > 0).any():
        yield Note(
            "logs",
            "every query reads slices with log files today, and the figures of the layouts do not "
            "include log files; compact first for better figures",
        )


def _widen_spec(spec: TableSpec) -> TableSpec:
    """Return a spec for which record sizes are read but nothing that only a trigger needs."""
    whole = Clustering(columns=(), when=ClusteringTrigger(always=True))
    return replace(spec, clustering=whole, retention=None)


def _build_table(
    spec: TableSpec, state: TableState, found: CandidateSlices, now: CurrentReads
) -> WholeTable:
    known = collect_statistics(spec, state)
    budget = spec.clustering.budget if spec.clustering else ClusteringBudget()
    return WholeTable.build(
        found,
        now,
        rows=known.facts.rows,
        sizes=known.sizes,
        target=known.files.target,
        per_group=budget.per_group,
    )


def _declared_candidate(spec: TableSpec, foresight: ForecastInput) -> LayoutCandidate | None:
    """Return the declared layout if it orders rows by columns of the table."""
    asked = spec.clustering
    if asked is None or not asked.columns or not {*asked.columns} <= {*foresight.schema.names}:
        return None
    return LayoutCandidate(
        columns=asked.columns, curve=asked.curve or "kd-tree", mapping=asked.mapping
    )


def _list_index_columns(spec: TableSpec, asks: QueryColumns) -> tuple[str, ...]:
    """Return all index columns that the spec should have; empty if it has them."""
    there = spec.index.columns if spec.index else ()
    more = [name for name in asks.index_columns if name not in there]
    return (*there, *more) if more else ()


def _explain_no_trial(asks: QueryColumns, whole: WholeTable) -> str:
    if not asks.columns:
        return "no layout helps: no query filters on a column that can order rows"
    if not len(whole.candidates):
        return "no layout was tried: the table has no files"
    files, target = pluralize(int(whole.outputs.sum()), "file"), units.format_size(whole.target)
    return (
        f"no layout helps: with files of {target} (files.target) the table has {files}, one per "
        "partition or group, and queries cannot skip parts of a file"
    )


def _explain_choice(
    now: Sequence[QueryReads],
    trials: Sequence[LayoutTrial],
    best: LayoutTrial | None,
    declared: LayoutCandidate | None,
) -> str:
    before = sum(one.bytes for one in now)
    if not trials:
        return "no layout was tried: no row of the table's files could be sampled"
    if not before:
        return "no layout helps: the queries read nothing today"
    share = f"{100 * trials[0].bytes / before:.0f} %"
    if best is None:
        still = f"{share} of what they read today" if trials[0].bytes <= before else "more"
        return (
            f"the current layout is good enough: with the best layout tried the queries would read "
            f"{still}, and a rewrite should save at least 10 %"
        )
    if best.candidate == declared:
        return f"the declared layout is best: after it is applied the queries read {share} of today"
    return f"the queries would read {share} of what they read today"
