"""Read the state of a table for its plan, its status or its files alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from reconciler.state.observe import observe
from reconciler.storage.read_only import ReadOnlyStorage

if TYPE_CHECKING:
    from datetime import datetime

    from reconciler.spec.model import TableSpec
    from reconciler.state.listing_memory import ListingCache
    from reconciler.state.model import TableState
    from reconciler.state.timeline_reader import ProcessCheck
    from reconciler.storage.api import Storage

#: what a state is read for; a view needs neither predictions nor orphan files
Purpose = Literal["plan", "status", "view"]


def observe_for(  # noqa: PLR0913 (what is read of a table)
    purpose: Purpose,
    spec: TableSpec,
    opened: Storage,
    at: datetime,
    check_process: ProcessCheck,
    *,
    with_simulation: bool = False,
    listing_cache: ListingCache | None = None,
) -> TableState:
    """Return the state at a time for a purpose, and for a simulated insert if asked.

    Of the metadata table only a plan verifies more than the listing. ``listing_cache``, and what
    it raises: as ``observe``.
    """
    storage, is_planned = ReadOnlyStorage(opened), purpose == "plan"
    state = observe(
        storage,
        spec,
        observed_ms=round(at.timestamp() * 1000),
        check_process=check_process,
        with_orphans=purpose == "status",
        listing_cache=listing_cache,
    )
    if spec.metadata is not None and purpose != "view":
        from reconciler.verification.verify import add_metadata_verification  # noqa: PLC0415 (few specs declare it)

        state = add_metadata_verification(storage, spec, state, only_listing=not is_planned)
    if purpose == "status" and state.is_merge_on_read:
        from reconciler.state.oldest_log_reader import find_oldest_log  # noqa: PLC0415 (few tables)

        state = state.with_facts(oldest_log=find_oldest_log(storage, state))
    if is_planned and (spec.files is not None or with_simulation):
        from reconciler.state.write_history import add_recent_writes  # noqa: PLC0415 (few specs have files)

        state = add_recent_writes(storage, state, for_simulation=with_simulation)
    if is_planned and spec.partition_retention is not None:
        from reconciler.status.deleted_rows import count_deleted_rows  # noqa: PLC0415 (few specs)

        state = count_deleted_rows(storage, spec, state, at)
    if not spec.queries:
        return state
    from reconciler.planners.prediction.forecast import choose_samples  # noqa: PLC0415
    from reconciler.state.sampling.forecast_input import add_forecast_input  # noqa: PLC0415

    return add_forecast_input(storage, spec, state, choose_samples, only_max_scan=not is_planned)
