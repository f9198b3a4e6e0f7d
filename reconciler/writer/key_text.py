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
from reconciler.writer.java_floats import spell_java_floats

#: 0001-01-01 and 9999-12-31; Java writes years outside this range with a sign
_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896


def spell_column(batch: Any, path: str, *, is_consistent: bool = False) -> Any:
    """Return the text of every row in a column, or in the field that a dotted path names.

    A string array, null for null. ``has_logical_timestamps``: the table's writers spell timestamps
    as logical timestamps. Raises RowsError for a missing column and for values without a unique
    spelling, UnsupportedError for types without one.
    """
    column = find_column(batch, path)
    if column is None:
        names = ", ".join(batch.schema.names)
        raise RowsError(f"the rows lack key column {path}; their columns are {names}")
    if pa.types.is_dictionary(column.type):
        codes, values = column.indices, column.dictionary
        return spell_values(values, path, is_consistent=is_consistent).take(codes)
    return spell_values(column, path, is_consistent=is_consistent)


def spell_values(column: Any, path: str, *, is_consistent: bool = False) -> Any:  # noqa: PLR0911
    """Return the text of every value of a column; results and errors as in ``spell_column``.

    >>> spell_values(pa.array([7, None]), "id").to_pylist()
    ['7', None]
    """
    type_, types = column.type, pa.types
    if types.is_string(type_):
        return column
    if types.is_large_string(type_):
        return column.cast(pa.string())
    if types.is_signed_integer(type_) or types.is_boolean(type_):
        return column.cast(pa.string())
    if types.is_decimal128(type_):
        return column.cast(pa.string())  # Arrow spells as BigDecimal does, 1E-7 too
    if types.is_float32(type_) or types.is_float64(type_):
        return spell_java_floats(column, path)
    if types.is_date32(type_):
        return _spell_days(column, path)
    if types.is_timestamp(type_) and type_.unit == "us":
        return _spell_moments(column, path, is_consistent=is_consistent)
    raise UnsupportedError(
        f"column {path}: Hudi's writers spell keys and partitions of type {type_} "
        "differently; use a column of text, whole numbers, dates, decimals or booleans"
    )


def _spell_days(column: Any, path: str) -> Any:
    ends = pc.min_max(column.cast(pa.int32()))
    first, last = ends["min"].as_py(), ends["max"].as_py()
    if first is not None and (first < _FIRST_DAY or last > _LAST_DAY):
        raise RowsError(
            f"column {path}: a date outside the years 0001 to 9999 cannot be part of a key"
        )
    return column.cast(pa.string())


def _spell_moments(column: Any, path: str, *, is_consistent: bool) -> Any:
    """Return microseconds as a number, in every zone."""
    if is_consistent and column.type.tz is not None:
        raise UnsupportedError(
            f"column {path}: with hoodie.datasource.write.keygenerator.consistent.logical."
            "timestamp.enabled Hudi spells moments in the zone of its JVM and drops microseconds; "
            "keys made of them cannot be made again"
        )
    return column.cast(pa.int64()).cast(pa.string())
