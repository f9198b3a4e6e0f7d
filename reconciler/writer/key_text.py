"""The values of key and partition columns as Hudi spells them; pure, by column.

Source: HoodieAvroUtils.convertValueForAvroLogicalTypes and Java's toString of what it makes: the
way of upserts and inserts. Hudi's bulk insert by rows spells moments in another way, in the zone of
its JVM, so that its own upserts do not find them; a table is written here as upserts write it.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import RowsError, UnsupportedError
from reconciler.file_slices.merge.ordering import find_column
from reconciler.writer.java_floats import spell_java_floats

#: 0001-01-01 and 9999-12-31: Java gives years outside of them a sign
_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896


def spell_column(batch: Any, path: str, *, is_consistent: bool = False) -> Any:
    """The text of every row in the column of a name, or the field that dots lead to.

    A string array, null where the value is. ``has_logical_timestamps``: the table's writers are told to
    spell moments as logical timestamps. Raises RowsError where the rows lack the column or hold a
    value that has no one spelling, UnsupportedError for types that have none.
    """
    column = find_column(batch, path)
    if column is None:
        names = ", ".join(batch.schema.names)
        raise RowsError(
            f"the rows have no column {path}, which the table is keyed by; has: {names}"
        )
    if pa.types.is_dictionary(column.type):
        codes, values = column.indices, column.dictionary
        return spell_values(values, path, is_consistent=is_consistent).take(codes)
    return spell_values(column, path, is_consistent=is_consistent)


def spell_values(column: Any, path: str, *, is_consistent: bool = False) -> Any:  # noqa: PLR0911
    """The text of every value of a column; shapes and errors as of ``spell_column``.

    >>> spell_values(pa.array([7, None]), "id").to_pylist()
    ['7', None]
    """
    kind, types = column.type, pa.types
    if types.is_string(kind):
        return column
    if types.is_large_string(kind):
        return column.cast(pa.string())
    if types.is_signed_integer(kind) or types.is_boolean(kind):
        return column.cast(pa.string())
    if types.is_decimal128(kind):
        return column.cast(pa.string())  # Arrow spells as BigDecimal does, 1E-7 too
    if types.is_float32(kind) or types.is_float64(kind):
        return spell_java_floats(column, path)
    if types.is_date32(kind):
        return _spell_days(column, path)
    if types.is_timestamp(kind) and kind.unit == "us":
        return _spell_moments(column, path, is_consistent=is_consistent)
    raise UnsupportedError(
        f"column {path}: keys and partitions of {kind} are spelled by Hudi in ways that differ "
        "from writer to writer; use a column of text, whole numbers, dates, decimals or booleans"
    )


def _spell_days(column: Any, path: str) -> Any:
    ends = pc.min_max(column.cast(pa.int32()))
    least, greatest = ends["min"].as_py(), ends["max"].as_py()
    if least is not None and (least < _FIRST_DAY or greatest > _LAST_DAY):
        raise RowsError(
            f"column {path}: a date outside the years 0001 to 9999 cannot be part of a key"
        )
    return column.cast(pa.string())


def _spell_moments(column: Any, path: str, *, is_consistent: bool) -> Any:
    """Microseconds as a number, in every zone."""
    if is_consistent and column.type.tz is not None:
        raise UnsupportedError(
            f"column {path}: with hoodie.datasource.write.keygenerator.consistent.logical."
            "timestamp.enabled Hudi spells moments in the zone of its JVM and drops microseconds; "
            "keys made of them cannot be made again"
        )
    return column.cast(pa.int64()).cast(pa.string())
