"""Log records among each other as Hudi 0.x merges them, which is not how Hudi 1.x does.

Every payload class of 0.x compares event times here, also the one that then overwrites the base
file (OverwriteWithLatestAvroPayload.preCombine). A record always follows a deletion of a delete
block, whatever their event times; and such a deletion of a textual event time always deletes,
because Java compares it as another class of text (HoodieMergedLogRecordScanner). Decimals compare
as the bytes that Avro holds of them, so those below zero come last (SpillableMapUtils).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.file_slices.merge.ordering import pick_newest, rank_rows


def pick_precombined(
    codes: NDArray[np.int64],
    groups: int,
    ordering: Sequence[Any],
    *,
    is_final: NDArray[np.bool_],
    is_listed: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Per group the row that wins; arguments as of ``pick_newest``."""
    ends = is_listed & (is_final | any(map(_compares_as_other_class, ordering)))
    ordering = [part for column in ordering for part in _to_byte_order(column)]
    found = pick_newest(codes, groups, ordering, is_final=ends, is_listed=is_listed)
    timed = is_listed & ~ends
    if timed.any():
        _merge_timed_deletions(
            found, codes, rank_rows(ordering, len(codes)), ends, is_listed, timed
        )
    return found


def _compares_as_other_class(column: Any) -> bool:
    kind, types = column.type, pa.types
    return bool(types.is_string(kind) or types.is_decimal(kind) or types.is_date(kind))


def _to_byte_order(column: Any) -> list[Any]:
    """Columns that compare as a column's Avro bytes do, of equal length and without signs."""
    if not pa.types.is_decimal(column.type):
        return [column]
    return [pc.less(column, pa.scalar(Decimal(), column.type)).cast(pa.int8()), column]


def _merge_timed_deletions(
    found: NDArray[np.int64],
    codes: NDArray[np.int64],
    rank: NDArray[np.int64],
    ends: NDArray[np.bool_],
    is_listed: NDArray[np.bool_],
    timed: NDArray[np.bool_],
) -> None:
    """Keys that a deletion with an event time names: few, and each step depends on the last."""
    named = np.zeros(len(found), np.bool_)
    named[codes[timed]] = True
    state: dict[int, int] = {}
    for row in np.flatnonzero(named[codes]).tolist():
        code = int(codes[row])
        old = state.get(code)
        is_older = old is not None and rank[old] > rank[row] and not ends[row]
        if not is_older or (is_listed[old] and not is_listed[row]):
            state[code] = row
    for code, row in state.items():
        found[code] = row
