"""What a plan predicts from, read after the table itself: only for specs with queries.

Which files are worth a sample is the planner's to say, so this comes between two of its runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reconciler.errors import FormatError, ReconcilerError, UnsupportedError
from reconciler.foresight.sample import MOST_GROUPS, read_sample
from reconciler.foresight.statistics import RULE, Telling, Told
from reconciler.foresight.whole_rows import MOST_ROWS as WHOLE_ROWS
from reconciler.hudi.load import load_properties
from reconciler.index.named import asked_columns
from reconciler.merge.ordering import type_at
from reconciler.planners.foresee import to_sample
from reconciler.reader.partitions import partition_columns
from reconciler.state.columns import declared_columns, load_versions, table_schema
from reconciler.state.evidence import Doubt
from reconciler.state.foresight import Foresight
from reconciler.state.renames import renamed_columns
from reconciler.state.view import newest_bases, view_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.hudi.properties import TableProperties
    from reconciler.spec.model import TableSpec
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

_NOTHING: Final = pa.schema([])


def with_foresight(
    storage: Storage, spec: TableSpec, state: TableState, *, only_max_scan: bool = False
) -> TableState:
    """The state with what its predictions are made from; as it is for a spec without queries.

    ``only_max_scan``: no more than what decides about steps. Where something cannot be read nothing
    is predicted, which the plan says and which stops no step.
    """
    needed = [query for query in spec.queries if query.max_scan is not None or not only_max_scan]
    if not needed:
        return state
    try:
        return _foreseen(storage, spec, state, only_max_scan=only_max_scan)
    except (ReconcilerError, pa.ArrowException, OSError) as problem:
        says = f"nothing is predicted for the declared queries: {problem}"
        return replace(state, foresight=_nothing(Doubt(rule=RULE, because=says)))


def _nothing(doubt: Doubt) -> Foresight:
    return Foresight(
        index=None,
        rows=np.zeros(0, np.int64),
        schema=_NOTHING,
        zone="UTC",
        values={},
        columns=(),
        source="",
        doubts=(doubt,),
    )


def _foreseen(
    storage: Storage, spec: TableSpec, state: TableState, *, only_max_scan: bool
) -> TableState:
    found = replace(state, foresight=_statistics(storage, spec, state))
    assert found.foresight is not None
    groups = to_sample(spec, found, only_max_scan=only_max_scan)
    if not groups or found.foresight.index is None or _is_bootstrapped(storage):
        return found
    sample = read_sample(
        storage,
        state.files,
        groups,
        found.foresight.columns,
        found.foresight.schema,
        most=MOST_GROUPS,
        whole=WHOLE_ROWS,
    )
    return replace(found, foresight=replace(found.foresight, sample=sample))


def _is_bootstrapped(storage: Storage) -> bool:
    """Whether files may hold keys alone, their rows being elsewhere."""
    return load_properties(storage).bootstrap_base is not None


def _statistics(storage: Storage, spec: TableSpec, state: TableState) -> Foresight:
    properties = load_properties(storage)
    files = newest_bases(view_of(state))
    schema, doubts = _schema(storage, properties, state)
    values = _values(state, schema, properties)
    queries = [query.where for query in spec.queries]
    named = asked_columns(queries, schema)
    asked = tuple(name for name in named if name not in values)
    lacking = {*properties.partition_fields, *_renamed(storage, state, files)}
    if properties.bootstrap_base is not None:
        lacking.update(asked)
    telling = Telling(
        storage=storage,
        properties=properties,
        state=state,
        files=files,
        columns=asked,
        schema=schema,
        supplied=frozenset(lacking),
    )
    told = telling.told() if schema.names else Told(index=None, source="")
    declared = spec.clustering.columns if spec.clustering else ()
    wanted = [*declared, *named]
    return Foresight(
        index=told.index,
        rows=files,
        schema=schema,
        zone=spec.timezone or "UTC",
        values=values,
        columns=tuple(dict.fromkeys(c for c in wanted if type_at(schema, c) is not None)),
        source=told.source,
        damaged=told.damaged,
        doubts=(*doubts, *told.doubts),
    )


def _schema(
    storage: Storage, properties: TableProperties, state: TableState
) -> tuple[Any, tuple[Doubt, ...]]:
    try:
        found = declared_columns(storage, properties, state)
        if found is not None:
            return table_schema(found.text, found.path, properties), ()
        why = "no commit says the table's columns"
    except (FormatError, UnsupportedError) as problem:
        why = str(problem)
    if not len(state.files):
        return _NOTHING, ()
    says = f"nothing is predicted for the declared queries: {why}"
    return _NOTHING, (Doubt(rule=RULE, because=says),)


def _values(state: TableState, schema: Any, properties: TableProperties) -> dict[str, Any]:
    """What folders say; nothing where that is not a value."""
    try:
        restored, columns = partition_columns(state.files.partitions, schema, properties)
    except UnsupportedError:
        return {}
    return dict(zip(restored.names, columns, strict=True))


def _renamed(storage: Storage, state: TableState, files: NDArray[np.int64]) -> tuple[str, ...]:
    """Columns that files may hold under another name."""
    try:
        versions = load_versions(storage)
    except FormatError:
        return ()
    if not versions or not len(files):
        return ()
    oldest = state.files.instants[int(state.files.instant[files].min())]
    newest = max((i.requested for i in state.timeline.commits), default=oldest)
    return tuple(renamed_columns(versions, oldest=oldest, as_of=newest))
