"""Read a table once, and simulate retentions and layouts for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from reconciler.lazy_dataclass import dataclass
from reconciler.planners.layout_simulation import (
    LayoutChoice,
    LayoutComparison,
    draft_layouts,
    finish_layouts,
)
from reconciler.planners.picture import TablePicture
from reconciler.planners.prediction.advice import MAX_ROWS, widen_spec
from reconciler.planners.prediction.forecast import choose_samples
from reconciler.planners.retention_simulation import (
    RetentionChoice,
    RetentionCurve,
    simulate_retentions,
)
from reconciler.plans.unreadable_table import OnCrash, report_problem
from reconciler.spec.model import Retention, TableSpec
from reconciler.state.model import TableState
from reconciler.state.observe import observe
from reconciler.state.sampling.forecast_input import add_forecast_input
from reconciler.state.sampling.row_sample import SampleLimits, read_sample
from reconciler.state.timeline_reader import ProcessCheck
from reconciler.storage.api import Storage
from reconciler.storage.read_only import ReadOnlyStorage


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSimulation:
    """What a table would be with other declarations. ``error`` is set if it could not be read.

    ``retention``: None if no retention was asked for; ``layouts``: None if no layout was.
    """

    name: str
    path: str
    retention: RetentionCurve | None = None
    layouts: LayoutComparison | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRequest:
    """What to simulate: other retentions, and other layouts of rows and sizes of files."""

    retentions: tuple[RetentionChoice, ...] = ()
    layouts: tuple[LayoutChoice, ...] = ()


def simulate_spec(
    request: SimulationRequest,
    open_storage: Callable[..., Storage],
    now: datetime,
    is_alive: ProcessCheck,
    on_crash: OnCrash | None,
    spec: TableSpec,
) -> TableSimulation:
    """Return the simulation of a spec's table; what goes wrong is its ``error``.

    ``on_crash`` gets errors that are bugs of this program.
    """
    made = TableSimulation(name=spec.name, path=spec.path)
    try:
        storage = ReadOnlyStorage(open_storage(spec.path, spec.storage_options))
        return _simulate_table(made, storage, spec, request, now, is_alive)
    except Exception as error:  # noqa: BLE001 (one table must not stop the others)
        return replace(made, error=report_problem(spec, error, on_crash))


def _simulate_table(
    made: TableSimulation,
    storage: Storage,
    spec: TableSpec,
    request: SimulationRequest,
    now: datetime,
    is_alive: ProcessCheck,
) -> TableSimulation:
    """Read the files and the timeline once, and plan every choice for what was read."""
    observed_ms = round(now.timestamp() * 1000)
    wanted = _choose_reads(spec, request)
    state = observe(storage, wanted, observed_ms=observed_ms, check_process=is_alive)
    if request.retentions:
        curve = simulate_retentions(spec, state, now, request.retentions)
        made = replace(made, retention=curve)
    if request.layouts:
        made = replace(made, layouts=_compare_layouts(storage, spec, state, request.layouts))
    return made


def _choose_reads(spec: TableSpec, request: SimulationRequest) -> TableSpec:
    """Return a spec for which all is read that the simulations need, with one listing.

    A clean of another policy needs the whole timeline; layouts need record sizes.
    """
    wanted = widen_spec(spec) if request.layouts else replace(spec, clustering=None)
    retention = None
    if request.retentions:
        first = request.retentions[0]
        declared = spec.retention or Retention(policy=first.policy, keep=first.keep)
        retention = replace(declared, scan="full")
    return replace(wanted, retention=retention, index=None, orphans=None)


def _compare_layouts(
    storage: Storage, spec: TableSpec, state: TableState, choices: Sequence[LayoutChoice]
) -> LayoutComparison:
    """Read statistics and one sample of rows, and try every layout on it."""
    if not spec.queries:
        return LayoutComparison(because="the spec declares no queries; add those that matter")
    state = add_forecast_input(storage, replace(spec, clustering=None), state, choose_samples)
    draft = draft_layouts(TablePicture(spec, state), choices)
    requests, known = draft.choose_samples(), draft.forecast_input
    if not requests:
        return draft.comparison
    limits = SampleLimits(rows=MAX_ROWS)
    sample = read_sample(storage, state.files, requests, known.columns, known.schema, limits)
    return finish_layouts(draft, sample)
