"""Read a table, and propose clustering and index columns for its declared queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from reconciler.hudi.load import load_properties
from reconciler.planners.picture import TablePicture
from reconciler.planners.prediction import advice
from reconciler.planners.prediction.advice import Advice
from reconciler.planners.prediction.forecast import choose_samples
from reconciler.plans.unreadable_table import OnCrash, report_problem
from reconciler.spec.model import TableSpec
from reconciler.state.clustering_facts_reader import read_clustering_facts
from reconciler.state.model import TableState
from reconciler.state.observe import observe
from reconciler.state.sampling.forecast_input import add_forecast_input
from reconciler.state.sampling.row_sample import SampleLimits, read_sample
from reconciler.storage.api import Storage
from reconciler.storage.read_only import ReadOnlyStorage


def advise_spec(
    spec: TableSpec,
    open_storage: Callable[..., Storage],
    observed_ms: int,
    on_crash: OnCrash | None,
) -> Advice:
    """Return the advice for a spec's table; what goes wrong is its ``error``.

    ``on_crash`` gets errors that are bugs of this program.
    """
    try:
        storage = ReadOnlyStorage(open_storage(spec.path, spec.storage_options))
        return advise_table(storage, spec, observed_ms=observed_ms)
    except Exception as error:  # noqa: BLE001 (one table must not stop the others)
        problem = report_problem(spec, error, on_crash)
    return Advice(name=spec.name, path=spec.path, queries=spec.queries, error=problem)


def advise_table(
    storage: Storage, spec: TableSpec, *, observed_ms: int, max_rows: int | None = None
) -> Advice:
    """Return the layout, index columns and compaction that the queries of a spec need.

    Reads footers, or their entries in indexes, and a sample of at most ``max_rows`` rows. The same
    files give the same advice. Raises StorageError, FormatError, UnsupportedError, BlockedError.
    """
    rows = max_rows or advice.MAX_ROWS
    state = observe(storage, advice.widen_spec(spec), observed_ms=observed_ms)
    state = add_forecast_input(
        storage, replace(spec, clustering=None), state, choose_samples, with_log_rows=True
    )
    draft = advice.draft_advice(TablePicture(spec, state))
    if draft.table is None:
        return draft.advice
    known = draft.forecast_input
    requests, limits = draft.choose_samples(rows), SampleLimits(rows=rows)
    sample = read_sample(storage, state.files, requests, known.columns, known.schema, limits)
    found = advice.finish_advice(draft, sample)
    return advice.choose_proposal(found, spec, partial(_explain_no_step, storage, state))


def _explain_no_step(storage: Storage, state: TableState, proposal: TableSpec) -> str | None:
    """Return why the plan of a proposed spec rewrites nothing; None if it has a step."""
    facts = read_clustering_facts(storage, load_properties(storage), proposal, state)
    known = state.with_facts(clustering_facts=facts, forecast_input=None)
    known = add_forecast_input(storage, proposal, known, choose_samples)
    return advice.explain_no_step(TablePicture(proposal, known))
