"""Collect what is known of the least and greatest values of base files; pure.

Plans read only the statistics that decide something. A drawing takes whatever was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers
from reconciler.hudi.files.table_files import find_rows
from reconciler.index.model import FileIndex
from reconciler.plans.columns import nullable_indices
from reconciler.state.model import TableState

#: least and greatest values, an element per file of the state, null if unknown
Bounds = tuple[Any, Any]


def find_bounds(state: TableState, columns: Sequence[str]) -> dict[str, Bounds]:
    """Return the bounds of the columns that anything is known of."""
    found: dict[str, Bounds] = {}
    for column, bounds in _list_known(state, columns):
        if column not in found:
            found[column] = bounds
        elif found[column][0].type == bounds[0].type:
            least, greatest = found[column]
            found[column] = pc.coalesce(least, bounds[0]), pc.coalesce(greatest, bounds[1])
    return {column: pair for column, pair in found.items() if pair[0].null_count < len(state.files)}


def _list_known(state: TableState, columns: Sequence[str]) -> Iterator[tuple[str, Bounds]]:
    """Yield columns with bounds: of the clustering's statistics, the queries' and the index's."""
    facts, forecast, index = state.clustering_facts, state.forecast_input, state.index_state
    if facts is not None and facts.bounds is not None:
        yield from zip(columns, facts.bounds, strict=False)
    if forecast is not None and forecast.index is not None:
        yield from _take_columns(forecast.index, forecast.rows, state, columns)
    if index is not None and index.index is not None:
        keys = index.index
        names = pc.binary_join_element_wise(keys.partition.cast(pa.string()), keys.name, "/")
        yield from _take_columns(index.index, find_rows(state.files, names), state, columns)


def _take_columns(
    index: FileIndex, rows: Integers, state: TableState, columns: Sequence[str]
) -> Iterator[tuple[str, Bounds]]:
    """Yield the columns of an index by file; ``rows``: the file of each row, -1 for none."""
    place = np.full(len(state.files), -1, np.int64)
    is_present = rows >= 0
    place[rows[is_present]] = np.flatnonzero(is_present)
    indices = nullable_indices(place)
    for column in columns:
        stats = index.columns.get(column)
        if stats is not None:
            yield column, (stats.least.take(indices), stats.greatest.take(indices))
