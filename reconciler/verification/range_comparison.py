"""Compare a stored range with what a file holds, as a reader that skips files does; pure.

A range that is wider than needed is no difference: readers open more files than they need, and
find all rows. Source: ColumnStatsIndexSupport, DataSkippingUtils (0.15 to 1.2).
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import quote_value
from reconciler.hudi.metadata.stored_ranges import StoredRange
from reconciler.verification.footer_ranges import FoundRange

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class RangeVerdict(StrEnum):
    """The outcome of a comparison. ``doubtful``: the footer does not decide it."""

    FITS = "fits"
    NARROW = "narrow"
    DOUBTFUL = "doubtful"


def compare_ranges(stored: StoredRange, found: FoundRange, kind: Any) -> RangeVerdict:
    """Return whether a reader that skips files by the stored range loses rows.

    ``kind``: the column's Arrow type.

    >>> stored = StoredRange(least=1, greatest=5, nulls=0, values=9)
    >>> found = FoundRange(least=2, greatest=6, nulls=0, values=9, is_exact=True)
    >>> compare_ranges(stored, found, pa.int32()).name
    'NARROW'
    """
    verdict = _compare(stored, found)
    may_be_millis = pa.types.is_timestamp(kind) and not stored.is_typed
    if verdict is RangeVerdict.NARROW and may_be_millis and isinstance(stored.least, int):
        return _compare(stored.in_milliseconds(), found)
    return verdict


def _compare(stored: StoredRange, found: FoundRange) -> RangeVerdict:
    if found.values == 0 or found.is_all_null:
        is_hidden = found.nulls > 0 and stored.nulls == 0
        return RangeVerdict.NARROW if is_hidden else RangeVerdict.FITS
    if stored.says_all_null:
        is_known = found.values > 0 and found.nulls >= 0
        return RangeVerdict.NARROW if is_known else RangeVerdict.DOUBTFUL
    if stored.nulls == 0 and found.nulls > 0:
        return RangeVerdict.NARROW
    return _compare_bounds(stored, found)


def _compare_bounds(stored: StoredRange, found: FoundRange) -> RangeVerdict:
    if found.least is None or found.greatest is None:
        return RangeVerdict.DOUBTFUL
    low: Any = stored.least
    high: Any = stored.greatest
    try:
        if low <= found.least and found.greatest <= high:
            return RangeVerdict.FITS
    except TypeError:  # the column's type has changed its order, and readers do not compare them
        return RangeVerdict.FITS
    return RangeVerdict.NARROW if found.is_exact else RangeVerdict.DOUBTFUL


def describe_both(stored: StoredRange, found: FoundRange, kind: Any) -> dict[str, str]:
    """Return what an index records and what a file holds in words, for a difference."""
    return {"recorded": describe_stored(stored, kind), "actual": describe_found(found, kind)}


def describe_stored(stored: StoredRange | None, kind: Any) -> str:
    """Return a stored range in words."""
    if stored is None:
        return "nothing"
    if stored.says_all_null:
        return "null in all rows"
    nulls = "no null" if stored.nulls == 0 else "nulls" if stored.nulls > 0 else "unknown nulls"
    return f"{_describe_span(stored.least, stored.greatest, kind)}, {nulls}"


def describe_found(found: FoundRange, kind: Any) -> str:
    """Return what a file holds in words."""
    nulls = "no null" if found.nulls == 0 else f"{found.nulls} nulls"
    if found.nulls < 0:
        nulls = "unknown nulls"
    if found.is_all_null:
        return f"null in all {found.values} rows"
    if found.least is None or found.greatest is None:
        return f"unknown bounds, {nulls}"
    if found.has_nan:
        is_only = isinstance(found.least, float) and found.least == math.inf
        low = "NaN" if is_only else f"{_describe_bound(found.least, kind)} to NaN"
        return f"{low}, {nulls}"
    return f"{_describe_span(found.least, found.greatest, kind)}, {nulls}"


def _describe_span(least: Any, greatest: Any, kind: Any) -> str:
    low, high = _describe_bound(least, kind), _describe_bound(greatest, kind)
    return low if low == high else f"{low} to {high}"


def _describe_bound(bound: Any, kind: Any) -> str:
    """Return a bound as people write it.

    >>> _describe_bound(19000, pa.date32()), _describe_bound(b"a", pa.string())
    ('2022-01-08', "'a'")
    """
    try:
        if pa.types.is_date32(kind):
            return (date(1970, 1, 1) + timedelta(days=bound)).isoformat()
        if pa.types.is_timestamp(kind):
            return (_EPOCH + timedelta(microseconds=bound)).isoformat()
    except (OverflowError, TypeError):
        return str(bound)
    if pa.types.is_boolean(kind):
        return str(bool(bound)).lower()
    if isinstance(bound, bytes):
        text = bound.decode(errors="backslashreplace") if pa.types.is_string(kind) else bound.hex()
        return quote_value(text, 40)
    return str(bound) if not isinstance(bound, Decimal) else f"{bound.normalize():f}"
