"""Read the state of a table for its plan or its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.state.observe import observe
from reconciler.storage.read_only import ReadOnlyStorage

if TYPE_CHECKING:
    from reconciler.spec.model import TableSpec
    from reconciler.state.model import TableState
    from reconciler.state.timeline_reader import ProcessCheck
    from reconciler.storage.api import Storage


def observe_for_plan(
    spec: TableSpec,
    opened: Storage,
    observed_ms: int,
    check_process: ProcessCheck,
    *,
    with_predictions: bool,
    with_simulation: bool = False,
) -> TableState:
    """Return the state for planning, also for predictions and for a simulated insert if asked.

    Without predictions, as for a status, only the listing of the metadata table is verified.
    Raises as ``observe`` does.
    """
    storage = ReadOnlyStorage(opened)
    state = observe(storage, spec, observed_ms=observed_ms, check_process=check_process)
    if spec.metadata is not None:
        from reconciler.verification.verify import add_metadata_verification  # noqa: PLC0415 (few specs declare it)

        state = add_metadata_verification(storage, spec, state, only_listing=not with_predictions)
    if with_predictions and (spec.files is not None or with_simulation):
        from reconciler.state.write_history import add_recent_writes  # noqa: PLC0415 (few specs have files)

        state = add_recent_writes(storage, state, with_footers=with_simulation)
    if not spec.queries:
        return state
    from reconciler.planners.prediction.forecast import choose_samples  # noqa: PLC0415
    from reconciler.state.sampling.forecast_input import add_forecast_input  # noqa: PLC0415

    return add_forecast_input(
        storage, spec, state, choose_samples, only_max_scan=not with_predictions
    )
