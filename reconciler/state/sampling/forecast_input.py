"""Read the input of forecasts for specs with queries: statistics and sampled rows.

A planner chooses the files to sample from the statistics, so the caller passes it as a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers
from reconciler.errors import FormatError, ReconcilerError, UnsupportedError
from reconciler.file_slices.merge.ordering import find_type
from reconciler.hudi.load import load_properties
from reconciler.index.predicate_columns import find_query_columns
from reconciler.lazy_dataclass import dataclass
from reconciler.state.clustering_facts import ReadWarning
from reconciler.state.current_files import find_newest_bases
from reconciler.state.partition_values import read_partition_columns
from reconciler.state.sampling.file_statistics import (
    WARNING_RULE,
    FileStatistics,
    FileStatisticsReader,
)
from reconciler.state.sampling.log_facts import LogFactsReader
from reconciler.state.sampling.model import ForecastInput, SampleRequest
from reconciler.state.sampling.row_sample import MAX_WHOLE_ROWS, SampleLimits, read_sample
from reconciler.state.schema import build_table_schema, find_renamed_in_files, read_declared_schema

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.spec.model import TableSpec
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

_NOTHING: Final = pa.schema([])


class SampleChooser(Protocol):
    """Chooses the base files to sample from the statistics in a state; planners provide it."""

    def __call__(
        self, spec: TableSpec, state: TableState, *, only_max_scan: bool = False
    ) -> Sequence[SampleRequest]: ...


def add_forecast_input(
    storage: Storage,
    spec: TableSpec,
    state: TableState,
    choose_samples: SampleChooser,
    *,
    only_max_scan: bool = False,
    with_log_rows: bool = False,
) -> TableState:
    """Return the state with its forecast input; unchanged for a spec without queries.

    ``only_max_scan``: read only what decides about steps. ``with_log_rows``: read rows of log files
    even if the spec has no compaction block, to know what a compaction writes. If something cannot
    be read, nothing is predicted; the plan then has a warning and no step changes.
    """
    if (only_max_scan and not _decide_steps(spec)) or not spec.queries:
        return state
    logs = _LogReading(
        with_records=not only_max_scan,
        with_rows=not only_max_scan and (with_log_rows or spec.compaction is not None),
    )
    try:
        return _read_input(
            storage, spec, state, partial(choose_samples, only_max_scan=only_max_scan), logs
        )
    except (ReconcilerError, pa.ArrowException, OSError) as problem:
        because = f"there are no predictions for the declared queries: {problem}"
        warning = ReadWarning(rule=WARNING_RULE, because=because)
        none = np.zeros(0, np.int64)
        empty = ForecastInput(index=None, rows=none, schema=_NOTHING, warnings=(warning,))
        return state.with_facts(forecast_input=empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogReading:
    """What to read of log files: see ``LogFactsReader.read``."""

    with_records: bool
    with_rows: bool


def _decide_steps(spec: TableSpec) -> bool:
    """Return whether the queries of a spec decide about steps, by ``maxScan`` or by the gain."""
    clustering = spec.clustering
    has_gain = (
        clustering is not None
        and bool(clustering.columns)
        and not clustering.when.always
        and clustering.when.gain_above is not None
    )
    return has_gain or any(query.max_scan is not None for query in spec.queries)


def _read_input(
    storage: Storage,
    spec: TableSpec,
    state: TableState,
    choose_samples: Callable[[TableSpec, TableState], Sequence[SampleRequest]],
    logs: _LogReading,
) -> TableState:
    observed = state.with_facts(forecast_input=_read_statistics(storage, spec, state, logs))
    assert observed.forecast_input is not None
    groups = choose_samples(spec, observed)
    if not groups or observed.forecast_input.index is None or _is_bootstrapped(storage):
        return observed
    sample = read_sample(
        storage,
        state.files,
        groups,
        observed.forecast_input.columns,
        observed.forecast_input.schema,
        SampleLimits(whole_rows=MAX_WHOLE_ROWS),
    )
    return observed.with_facts(forecast_input=replace(observed.forecast_input, sample=sample))


def _is_bootstrapped(storage: Storage) -> bool:
    """Return whether files may have only keys, because their rows are in other files."""
    return load_properties(storage).bootstrap_base is not None


def _read_statistics(
    storage: Storage, spec: TableSpec, state: TableState, log_reading: _LogReading
) -> ForecastInput:
    properties = load_properties(storage)
    files = find_newest_bases(state.view)
    schema, warnings = _read_schema(storage, properties, state)
    values = _partition_values(state, schema, properties)
    queries = [query.where for query in spec.queries]
    named = find_query_columns(queries, schema)
    query_columns = tuple(name for name in named if name not in values)
    lacking = {*properties.partition_fields, *_find_renamed(storage, state, files)}
    if properties.bootstrap_base is not None:
        lacking.update(query_columns)
    telling = FileStatisticsReader(
        storage=storage,
        properties=properties,
        state=state,
        files=files,
        columns=query_columns,
        schema=schema,
        supplied=frozenset(lacking),
    )
    statistics = telling.read() if schema.names else FileStatistics(index=None, source="")
    logs, log_warnings = LogFactsReader(
        storage=storage,
        properties=properties,
        state=state,
        bases=files,
        columns=query_columns,
        schema=schema,
    ).read(with_records=log_reading.with_records, with_rows=log_reading.with_rows)
    declared = spec.clustering.columns if spec.clustering else ()
    wanted = [*declared, *named]
    return ForecastInput(
        index=statistics.index,
        rows=files,
        schema=schema,
        zone=spec.timezone or "UTC",
        partition_values=values,
        columns=tuple(dict.fromkeys(c for c in wanted if find_type(schema, c) is not None)),
        source=statistics.source,
        damaged=statistics.damaged,
        warnings=(*warnings, *statistics.warnings, *log_warnings),
        logs=logs,
    )


def _read_schema(
    storage: Storage, properties: TableProperties, state: TableState
) -> tuple[Any, tuple[ReadWarning, ...]]:
    try:
        schema = read_declared_schema(storage, properties, state)
        if schema is not None:
            return build_table_schema(schema.text, schema.path, properties), ()
        problem_text = "no commit has the table's schema"
    except (FormatError, UnsupportedError) as problem:
        problem_text = str(problem)
    if not len(state.files):
        return _NOTHING, ()
    because = f"there are no predictions for the declared queries: {problem_text}"
    return _NOTHING, (ReadWarning(rule=WARNING_RULE, because=because),)


def _partition_values(
    state: TableState, schema: Any, properties: TableProperties
) -> dict[str, Any]:
    """Return the column values in partition paths; none if a path has no valid value."""
    try:
        restored, columns = read_partition_columns(state.files.partitions, schema, properties)
    except UnsupportedError:
        return {}
    return dict(zip(restored.names, columns, strict=True))


def _find_renamed(storage: Storage, state: TableState, files: Integers) -> tuple[str, ...]:
    """Return the columns that files may have under another name."""
    try:
        return tuple(find_renamed_in_files(storage, state, files))
    except FormatError:
        return ()
