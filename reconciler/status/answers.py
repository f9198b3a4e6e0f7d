"""Answers about a file, an instant or a partition of a table that was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from reconciler.hudi.load import load_archived_instants, load_properties
from reconciler.hudi.timeline.instant import Instant
from reconciler.planners.answers.model import Search
from reconciler.planners.answers.planned_table import PlannedTable
from reconciler.planners.answers.search import search_name
from reconciler.planners.compose import plan_table
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.storage.api import Storage
from reconciler.storage.locations import find_below
from reconciler.storage.read_only import ReadOnlyStorage


def explain_name(
    spec: TableSpec,
    state: TableState,
    now: datetime,
    name: str,
    open_storage: Callable[..., Storage],
) -> Search:
    """Return why what has a name stays or goes; the archived timeline is read only if needed."""
    planned = PlannedTable(spec, state, plan_table(spec, state, now), now)

    def read_archived() -> Iterable[Instant]:
        storage = ReadOnlyStorage(open_storage(spec.path, spec.storage_options))
        return load_archived_instants(storage, load_properties(storage))

    return search_name(planned, _find_relative(name, spec.path, state.location), read_archived)


def _find_relative(name: str, *roots: str) -> str:
    """Return the path below the table that a URL in any spelling names; other names as they are."""
    if "://" not in name:
        return name
    found = (find_below(root, name) for root in roots)
    return next((path for path in found if path is not None), name)
