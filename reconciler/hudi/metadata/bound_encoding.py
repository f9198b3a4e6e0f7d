"""How the index column_stats keeps the bounds of a column that no record of it shows yet.

Tables of version 9 say the type beside the bounds; older ones say it by the wrapper alone, and keep
decimals with 15 digits behind the point. Source: HoodieAvroWrapperUtils, ValueType (1.1 on),
HoodieTableMetadataUtil.isColumnTypeSupported (1.x); and records that 0.15.0, 1.0.2 and 1.2.0 wrote
of every type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from reconciler.hudi.metadata.record_encoder import Bound, BoundWrapper

#: entries that are written by one build at most: of each, the driver has some hundred bytes
MAX_ENTRIES: Final = 2_000_000
_MODEL: Final = "org.apache.hudi.avro.model"
#: the first table version whose records say the type of their bounds
_TYPED: Final = 9
#: digits on either side of the point that the older wrapper of decimals has
_DIGITS: Final = 15
_INT: Final = (-(1 << 31), (1 << 31) - 1)
_LONG: Final = (-(1 << 63), (1 << 63) - 1)
#: the years 1 to 9999, which is what Spark says of dates and times, and a year before for calendars
#: that count old days otherwise
_DAYS: Final = (-719_528, 2_932_896)
_MICROS: Final = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)
#: behind every text but those that begin with as many of the last character there is
_LAST_TEXT: Final = "\U0010ffff" * 16
_LAST_BYTES: Final = b"\xff" * 64
#: not NaN: Hudi 1.2 skips a file that ranges to NaN where greater numbers are asked for
_FLOATS: Final = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundEncoding:
    """How bounds of a column are wrapped, and bounds that lie about no file.

    ``least``, ``greatest``: for files of which nothing is proven.
    """

    wrapper: BoundWrapper
    least: Bound
    greatest: Bound


def find_bound_encoding(kind: Any, table_version: int) -> BoundEncoding | None:
    """For a column of this Arrow type; None where it cannot be kept, or it is not known how."""
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
    for is_it, wrapper, ordinal, ends in plain:
        if is_it:
            return _build_encoding(wrapper, ordinal, ends, table_version)
    return None


def is_indexed_by_hudi(kind: Any, table_version: int) -> bool:
    """Whether a writer that indexes all columns would index one of this Arrow type.

    Readers of version 6 believe that every column has its records, lists and structs too.
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
        said = f"{kind.precision},{kind.scale}"
        return _build_encoding("BytesWrapper", 10, ends, table_version, said)
    return (
        _build_encoding("DecimalWrapper", 10, ends, table_version)
        if _fits_old_decimal(kind)
        else None
    )


def _fits_old_decimal(kind: Any) -> bool:
    return bool(kind.scale <= _DIGITS and kind.precision - kind.scale <= _DIGITS)
