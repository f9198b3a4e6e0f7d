"""Choose how column_stats stores the bounds of a column that has no entry yet.

Tables of version 9 record the type of the bounds. Older ones show it only by the wrapper, and keep
decimals with 15 digits after the point. Source: HoodieAvroWrapperUtils, ValueType (1.1 on),
HoodieTableMetadataUtil.isColumnTypeSupported (1.x); and entries that 0.15.0, 1.0.2 and 1.2.0 wrote
for every type.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Final

from reconciler.hudi.metadata.record_encoder import Bound, BoundWrapper
from reconciler.lazy_dataclass import dataclass

#: most entries that one build writes; the driver holds about a hundred bytes of each
MAX_ENTRIES: Final = 2_000_000
_MODEL: Final = "org.apache.hudi.avro.model"
#: the first table version whose records hold the type of their bounds
_TYPED: Final = 9
#: digits on each side of the point in the older wrapper of decimals
_DIGITS: Final = 15
_INT: Final = (-(1 << 31), (1 << 31) - 1)
_LONG: Final = (-(1 << 63), (1 << 63) - 1)
#: years 1 to 9999, which Spark supports, and one year earlier for calendars that count old days
#: differently
_DAYS: Final = (-719_528, 2_932_896)
_MICROS: Final = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)
#: sorts after every text that does not start with 16 times the last character
_LAST_TEXT: Final = "\U0010ffff" * 16
_LAST_BYTES: Final = b"\xff" * 64
#: not NaN: Hudi 1.2 skips a file whose range ends in NaN when a query asks for greater numbers
_FLOATS: Final = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundEncoding:
    """The wrapper for a column's bounds, and bounds that hold for every file.

    ``least``, ``greatest``: bounds for files whose real bounds are not proven.
    """

    wrapper: BoundWrapper
    least: Bound
    greatest: Bound


def find_bound_encoding(kind: Any, table_version: int) -> BoundEncoding | None:
    """Return the encoding for an Arrow type, None if it is unknown or not supported."""
    import pyarrow as pa  # noqa: PLC0415

    types = pa.types
    if types.is_decimal128(kind):
        return _encode_decimal_type(kind, table_version)
    if types.is_timestamp(kind):
        is_known = kind.unit == "us" and kind.tz is not None
        return _build_encoding("LongWrapper", 16, _MICROS, table_version) if is_known else None
    if types.is_date32(kind):
        wrapper = "IntWrapper" if table_version >= _TYPED else "DateWrapper"
        return _build_encoding(wrapper, 12, _DAYS, table_version)
    plain: list[tuple[bool, str, int, tuple[Bound, Bound]]] = [
        (types.is_boolean(kind), "BooleanWrapper", 2, (False, True)),
        (kind in {pa.int8(), pa.int16(), pa.int32()}, "IntWrapper", 3, _INT),
        (types.is_int64(kind), "LongWrapper", 4, _LONG),
        (types.is_float32(kind), "FloatWrapper", 5, _FLOATS),
        (types.is_float64(kind), "DoubleWrapper", 6, _FLOATS),
        (types.is_string(kind), "StringWrapper", 7, ("", _LAST_TEXT)),
        (types.is_binary(kind), "BytesWrapper", 8, (b"", _LAST_BYTES)),
    ]
    for is_match, wrapper, ordinal, ends in plain:
        if is_match:
            return _build_encoding(wrapper, ordinal, ends, table_version)
    return None


def is_indexed_by_hudi(kind: Any, table_version: int) -> bool:
    """Return whether a writer that indexes all columns would index this Arrow type.

    Readers of version 6 expect entries of every column, also of lists and structs.
    """
    import pyarrow as pa  # noqa: PLC0415

    types = pa.types
    if table_version < 8:  # noqa: PLR2004
        return True
    if types.is_decimal128(kind) and table_version < _TYPED:
        return _fits_old_decimal(kind)
    return not types.is_nested(kind)


def _build_encoding(
    wrapper: str,
    ordinal: int,
    ends: tuple[Bound, Bound],
    table_version: int,
    type_parameters: str | None = None,
) -> BoundEncoding:
    typed = None
    if table_version >= _TYPED:
        typed = (
            f"{_MODEL}.HoodieValueTypeInfo",
            {"typeOrdinal": ordinal, "additionalInfo": type_parameters},
        )
    return BoundEncoding(
        wrapper=BoundWrapper(wrapper=f"{_MODEL}.{wrapper}", value_type=typed),
        least=ends[0],
        greatest=ends[1],
    )


def _encode_decimal_type(kind: Any, table_version: int) -> BoundEncoding | None:
    most = Decimal(f"{10**kind.precision - 1}E-{kind.scale}")
    # not -most, which rounds to the digits of the context
    ends = (most.copy_negate(), most)
    if table_version >= _TYPED:
        parameters = f"{kind.precision},{kind.scale}"
        return _build_encoding("BytesWrapper", 10, ends, table_version, parameters)
    return (
        _build_encoding("DecimalWrapper", 10, ends, table_version)
        if _fits_old_decimal(kind)
        else None
    )


def _fits_old_decimal(kind: Any) -> bool:
    return bool(kind.scale <= _DIGITS and kind.precision - kind.scale <= _DIGITS)
