"""Merge log records with each other as Hudi 0.x does, which differs from Hudi 1.x.

Every payload class of 0.x compares event times here, even the one that then overwrites the base
file (OverwriteWithLatestAvroPayload.preCombine). A record after a deletion of a delete block always
wins, whatever their event times. A deletion with a textual event time always deletes, because Java
compares it with another text class (HoodieMergedLogRecordScanner). Decimals compare by their Avro
bytes, so negative ones come last (SpillableMapUtils).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask
from reconciler.file_slices.merge.ordering import pick_newest, rank_rows


def pick_precombined(
    codes: Integers,
    groups: int,
    ordering: Sequence[Any],
    *,
    is_final: Mask,
    is_listed: Mask,
) -> Integers:
    """Return the winning row of each group; arguments as in ``pick_newest``."""
    is_absolute = is_listed & (is_final | any(map(_compares_as_other_class, ordering)))
    ordering = [part for column in ordering for part in _to_byte_order(column)]
    winners = pick_newest(codes, groups, ordering, is_final=is_absolute, is_listed=is_listed)
    has_event_time = is_listed & ~is_absolute
    if has_event_time.any():
        _merge_timed_deletions(
            winners, codes, rank_rows(ordering, len(codes)), is_absolute, is_listed, has_event_time
        )
    return winners


def _compares_as_other_class(column: Any) -> bool:
    kind, types = column.type, pa.types
    return bool(types.is_string(kind) or types.is_decimal(kind) or types.is_date(kind))


def _to_byte_order(column: Any) -> list[Any]:
    """Return columns that compare as a column's Avro bytes: equal length, without sign."""
    if not pa.types.is_decimal(column.type):
        return [column]
    return [pc.less(column, pa.scalar(Decimal(), column.type)).cast(pa.int8()), column]


def _merge_timed_deletions(
    winners: Integers,
    codes: Integers,
    rank: Integers,
    is_absolute: Mask,
    is_listed: Mask,
    has_event_time: Mask,
) -> None:
    """Merge keys that have a deletion with an event time, row by row.

    They are few, and each step depends on the previous one.
    """
    is_affected = np.zeros(len(winners), np.bool_)
    is_affected[codes[has_event_time]] = True
    current: dict[int, int] = {}
    for row in np.flatnonzero(is_affected[codes]).tolist():
        code = int(codes[row])
        previous = current.get(code)
        is_older = previous is not None and rank[previous] > rank[row] and not is_absolute[row]
        if not is_older or (is_listed[previous] and not is_listed[row]):
            current[code] = row
    for code, row in current.items():
        winners[code] = row
