"""Spell the values of key and partition columns as Hudi does; pure, by column.

Source: HoodieAvroUtils.convertValueForAvroLogicalTypes and Java's toString of its results, as
upserts and inserts use it. Hudi's bulk insert by rows spells timestamps in the zone of its JVM, so
its own upserts do not find those keys; this package spells them as upserts do.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import RowsError, UnsupportedError
from reconciler.file_slices.merge.ordering import find_column

#: 0001-01-01 and 9999-12-31; Java writes years outside this range with a sign
_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896
#: Java before 19 spells some floating-point numbers with more digits than needed (JDK-4511638):
#: floats from 1e7 on, large doubles, and numbers closer to zero than 0.001. There a key would
#: depend on the Java version, so those numbers (doubles: from 1e15 on) are refused. All versions
#: spell the others alike.
_MIN_FRACTION: Final = 1e-3
_LARGEST_PLAIN: Final = 1e7
_LARGEST: Final = 1e15
_SPECIAL: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def format_column(batch: Any, path: str, *, is_consistent: bool = False) -> Any:
    """Return the text of every row in a column, or in the field that a dotted path names.

    A string array, null for null. ``is_consistent``: the table's writers spell timestamps
    as logical timestamps. Raises RowsError for a missing column and for values without a unique
    spelling, UnsupportedError for types without one.
    """
    column = find_column(batch, path)
    if column is None:
        names = ", ".join(batch.schema.names)
        raise RowsError(f"the rows lack key column {path}; their columns are {names}")
    if pa.types.is_dictionary(column.type):
        codes, values = column.indices, column.dictionary
        return format_values(values, path, is_consistent=is_consistent).take(codes)
    return format_values(column, path, is_consistent=is_consistent)


def format_values(column: Any, path: str, *, is_consistent: bool = False) -> Any:
    """Return the text of every value of a column; results and errors as in ``format_column``.

    >>> format_values(pa.array([7, None]), "id").to_pylist()
    ['7', None]
    """
    type_, types = column.type, pa.types
    if types.is_string(type_) or types.is_large_string(type_):
        return _check_text(column.cast(pa.string()), path)
    if types.is_signed_integer(type_) or types.is_boolean(type_):
        return column.cast(pa.string())
    if types.is_decimal128(type_):
        return column.cast(pa.string())  # Arrow spells as BigDecimal does, 1E-7 too
    if types.is_float32(type_) or types.is_float64(type_):
        return format_java_floats(column, path)
    if types.is_date32(type_):
        return _format_days(column, path)
    if types.is_timestamp(type_) and type_.unit == "us":
        return _format_moments(column, path, is_consistent=is_consistent)
    raise UnsupportedError(
        f"column {path}: Hudi's writers spell keys and partitions of type {type_} "
        "differently; use a column of text, whole numbers, dates, decimals or booleans"
    )


def _check_text(column: Any, path: str) -> Any:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise RowsError(
            f"column {path}: a value is not UTF-8 and cannot be a key or name a folder; correct it "
            "in the source"
        ) from error
    return column


def _format_days(column: Any, path: str) -> Any:
    ends = pc.min_max(column.cast(pa.int32()))
    first, last = ends["min"].as_py(), ends["max"].as_py()
    if first is not None and (first < _FIRST_DAY or last > _LAST_DAY):
        raise RowsError(
            f"column {path}: a date outside the years 0001 to 9999 cannot be part of a key"
        )
    return column.cast(pa.string())


def _format_moments(column: Any, path: str, *, is_consistent: bool) -> Any:
    """Return microseconds as a number, in every zone."""
    if is_consistent and column.type.tz is not None:
        raise UnsupportedError(
            f"column {path}: with hoodie.datasource.write.keygenerator.consistent.logical."
            "timestamp.enabled Hudi spells moments in the zone of its JVM and drops microseconds; "
            "keys made of them cannot be made again"
        )
    return column.cast(pa.int64()).cast(pa.string())


def format_java_floats(column: Any, path: str) -> Any:
    """Return the text of every float32 or float64 value, null for null.

    Raises RowsError naming ``path`` and a value that Java versions spell differently.

    >>> format_java_floats(pa.array([0.0, -1.5, 12345678.0, None]), "x").to_pylist()
    ['0.0', '-1.5', '1.2345678E7', None]
    """
    magnitude = pc.abs(column.cast(pa.float64()))
    limit = _LARGEST_PLAIN if pa.types.is_float32(column.type) else _LARGEST
    small = pc.and_(pc.less(magnitude, _MIN_FRACTION), pc.not_equal(magnitude, 0.0))
    large = pc.and_(pc.greater_equal(magnitude, limit), pc.is_finite(magnitude))
    refused = pc.or_(small, large)
    if pc.any(refused).as_py():
        value = column.filter(refused)[0].as_py()
        raise RowsError(
            f"column {path}: {value!r} in row {pc.index(refused, True).as_py()} cannot be part of "
            "a key, because versions of Java spell it differently; use decimals or text"
        )
    plain = column.cast(pa.string())  # 1, 0.5, 12345678, 1.2e+15, nan
    result = pc.replace_substring_regex(plain, r"^(-?\d+)$", r"\1.0")
    if pc.any(pc.greater_equal(magnitude, _LARGEST_PLAIN)).as_py():
        result = pc.if_else(
            pc.greater_equal(magnitude, _LARGEST_PLAIN), _format_scientific(result), result
        )
    for text, java_text in _SPECIAL.items():
        result = pc.if_else(pc.equal(plain, text), java_text, result)
    return result


def _format_scientific(plain: Any) -> Any:
    """Return ``1234567890.5`` as ``1.2345678905E9``, with at least one digit after the point."""
    pattern = r"^(?P<sign>-?)(?P<first>\d)(?P<whole>\d*)\.(?P<part>\d*)$"
    result = pc.extract_regex(plain, pattern)
    whole = pc.struct_field(result, "whole")
    digits = pc.binary_join_element_wise(whole, pc.struct_field(result, "part"), "")
    digits = pc.utf8_rtrim(digits, "0")
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    head = pc.binary_join_element_wise(
        pc.struct_field(result, "sign"), pc.struct_field(result, "first"), ""
    )
    power = pc.utf8_length(whole).cast(pa.string())
    text = pc.binary_join_element_wise(pc.binary_join_element_wise(head, digits, "."), power, "E")
    exponential = pc.replace_substring_regex(plain, r"e\+0*", "E")
    exponential = pc.replace_substring_regex(exponential, r"^(-?\d)E", r"\1.0E")
    return pc.coalesce(text, exponential)
