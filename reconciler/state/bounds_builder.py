"""Collect least and greatest values of columns, file by file, into Arrow arrays; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Codes, Integers, to_nullable
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from reconciler.hudi.metadata.column_stats import Bound

#: Arrow types by Python type; decimals with 38 digits before and after the point
_TYPES: Final[dict[type, pa.DataType]] = {
    int: pa.int64(),
    float: pa.float64(),
    bytes: pa.large_binary(),
    Decimal: pa.decimal256(76, 38),
}
_UNKNOWN: Final = -1

#: rows of files, their least and their greatest values
_Chunk = tuple["Integers", Any, Any]


@dataclass(slots=True, kw_only=True)
class BoundsBuilder:
    """The bounds of one column for ``files`` files; the last value added for a file counts."""

    files: int
    _chunks: dict[type, list[_Chunk]] = field(default_factory=dict)

    def add(
        self,
        rows: Integers,
        least: Sequence[Bound | None],
        greatest: Sequence[Bound | None],
    ) -> None:
        """Add bounds of files by their rows; None if unknown."""
        kinds = [
            type(low) if type(low) is type(high) else None
            for low, high in zip(least, greatest, strict=True)
        ]
        for kind, stored in _TYPES.items():
            some = [place for place, found in enumerate(kinds) if found is kind]
            if some:
                low = _build_array([least[place] for place in some], stored)
                high = _build_array([greatest[place] for place in some], stored)
                self._chunks.setdefault(kind, []).append((rows[some], low, high))

    def build_arrays(self, instant: Codes) -> tuple[Any, Any]:
        """Return the least and the greatest value of each file, null if unknown.

        ``instant``: per file, codes that ascend with time. If the type of the column has changed,
        integers, decimals and floats compare as floats. Text and numbers do not compare, so only
        the kind of the newest file is used.
        """
        kinds = self._comparable_kinds(instant)
        stored = _TYPES[kinds[0]] if len(kinds) == 1 else pa.float64()
        chunks = [chunk for kind in kinds for chunk in self._chunks[kind]]
        place = self._find_places(chunks)
        at = to_nullable(place, place >= 0)
        empty = pa.array([], stored)
        low = pa.concat_arrays([empty, *(_cast_column(low, stored) for _, low, _ in chunks)])
        high = pa.concat_arrays([empty, *(_cast_column(high, stored) for _, _, high in chunks)])
        return low.take(at), high.take(at)

    def _comparable_kinds(self, instant: Codes) -> list[type]:
        """Return the kinds that compare with each other: all numbers, or text."""
        kinds = [kind for kind in _TYPES if kind in self._chunks]
        if bytes not in kinds or len(kinds) == 1:
            return kinds
        newest = {
            kind: max(int(instant[rows].max()) for rows, _, _ in self._chunks[kind])
            for kind in kinds
        }
        is_text = max(kinds, key=newest.__getitem__) is bytes
        return [kind for kind in kinds if (kind is bytes) == is_text]

    def _find_places(self, chunks: Sequence[_Chunk]) -> Integers:
        """Return per file its position in the concatenated chunks, -1 for none."""
        place = np.full(self.files, _UNKNOWN, np.int64)
        rows = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _, _ in chunks)])
        place[rows] = np.arange(len(rows))
        return place


def _build_array(values: Sequence[Any], stored: pa.DataType) -> Any:
    """Return an array of one kind; numbers beyond 64 bits or 76 digits are unknown."""
    try:
        return pa.array(values, stored)
    except (pa.ArrowInvalid, OverflowError):
        return pa.array([_value_or_none(value, stored) for value in values], stored)


def _value_or_none(value: Any, stored: pa.DataType) -> Any:
    try:
        return pa.scalar(value, stored).as_py()
    except (pa.ArrowInvalid, OverflowError):
        return None


def _cast_column(column: Any, stored: pa.DataType) -> Any:
    return column if column.type == stored else column.cast(stored, safe=False)
