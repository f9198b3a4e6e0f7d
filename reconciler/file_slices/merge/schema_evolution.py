"""Convert columns of an older schema to a newer one: fill, promote, reorder by name.

It allows what Hudi's readers allow between a file and the table (HoodieAvroUtils.rewriteRecord,
Avro's promotions): added columns and fields are null, numbers widen, numbers and bytes become text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Codes, to_arrow, to_numpy
from reconciler.errors import UnsupportedError

_NUMBERS: Final = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
_WHOLE: Final = (pa.int32(), pa.int64())
_PROMOTIONS: Final = frozenset(
    {(have, wanted) for at, have in enumerate(_NUMBERS) for wanted in _NUMBERS[at + 1 :]}
    | {(have, pa.string()) for have in (*_WHOLE, pa.binary())}
    | {(pa.string(), pa.binary())}
)


def evolve_batch(
    batch: Any, schema: pa.Schema, path: str, missing: Mapping[str, Any] | None = None
) -> Any:
    """Return the batch with the columns of ``schema``; missing ones are constant or null.

    Raises UnsupportedError naming ``path`` and the column when a type cannot be converted.
    """
    positions = {field.name: at for at, field in enumerate(batch.schema)}
    columns = []
    for field in schema:
        at = positions.get(field.name)
        if at is None:
            value = (missing or {}).get(field.name)
            columns.append(pa.repeat(pa.scalar(value, field.type), len(batch)))
        else:
            columns.append(
                evolve_column(batch.column(at), field.type, f"{path}, column {field.name}")
            )
    if not columns:
        return batch.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def evolve_column(column: Any, wanted: pa.DataType, where: str) -> Any:  # noqa: PLR0911
    """Convert a column to another type; raises UnsupportedError naming ``where``."""
    have, types = column.type, pa.types
    if have == wanted:
        return column
    if types.is_null(have):
        return pa.nulls(len(column), wanted)
    if types.is_dictionary(wanted):  # Arrow stored another type of text, such as large_string
        return evolve_column(column, wanted.value_type, where).dictionary_encode()
    if types.is_dictionary(have):
        return evolve_column(column.dictionary_decode(), wanted, where)
    if types.is_struct(have) and types.is_struct(wanted):
        return _evolve_struct(column, wanted, where)
    if _is_list(have) and types.is_list(wanted):
        items = evolve_column(column.flatten(), wanted.value_type, f"{where}.element")
        return pa.ListArray.from_arrays(_build_offsets(column), items, type=wanted)
    if types.is_map(have) and types.is_map(wanted):
        return _evolve_map(column, wanted, where)
    if (have, wanted) in _PROMOTIONS or _is_same_kind(have, wanted):
        try:
            # a long that does not fit a float is rounded, as in Java
            return pc.cast(column, wanted, safe=have not in _WHOLE)
        except pa.ArrowInvalid as problem:
            raise UnsupportedError(f"{where}: {problem}") from None
    raise UnsupportedError(f"{where}: {have} in the file cannot be read as the table's {wanted}")


def _evolve_struct(column: Any, wanted: pa.DataType, where: str) -> Any:
    positions = {field.name: at for at, field in enumerate(column.type)}
    children = column.flatten()  # a child is null where its struct is
    columns = [
        evolve_column(children[positions[field.name]], field.type, f"{where}.{field.name}")
        if field.name in positions
        else pa.nulls(len(column), field.type)
        for field in wanted
    ]
    return pa.StructArray.from_arrays(columns, fields=list(wanted), mask=column.is_null())


def _evolve_map(column: Any, wanted: pa.DataType, where: str) -> Any:
    whole = column.take(
        to_arrow(np.arange(len(column)))
    )  # a slice shares its key array with other slices
    ends = to_numpy(whole.offsets)
    first, last = int(ends[0]), int(ends[-1])
    keys = evolve_column(whole.keys[first:last], wanted.key_type, f"{where}.key")
    items = evolve_column(whole.items[first:last], wanted.item_type, f"{where}.value")
    offsets = _mask_offsets(ends - first, column)
    return pa.MapArray.from_arrays(offsets, keys, items, type=wanted)


def _build_offsets(column: Any) -> Any:
    """Return the offset of each list among all values, null if the list is null."""
    length = to_numpy(pc.list_value_length(column).fill_null(0).cast(pa.int32()))
    ends = np.zeros(len(length) + 1, np.int32)
    np.cumsum(length, out=ends[1:])
    return _mask_offsets(ends, column)


def _mask_offsets(offsets: Codes, column: Any) -> Any:
    if not column.null_count:
        return to_arrow(offsets)
    is_null = np.append(to_numpy(column.is_null()), False)
    return pc.if_else(to_arrow(is_null), None, to_arrow(offsets))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_same_kind(have: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether two types differ only in width or unit, so that a checked cast is exact."""
    types = pa.types
    if types.is_timestamp(have) and types.is_timestamp(wanted):
        # INT96 of older Spark holds points in time but has no zone
        return have.tz is None or wanted.tz is not None
    if types.is_decimal(have) and types.is_decimal(wanted):
        return bool(wanted.scale >= have.scale)
    if types.is_fixed_size_binary(have) or types.is_large_binary(have):
        return bool(wanted == pa.binary())
    if types.is_signed_integer(have) and types.is_signed_integer(wanted):
        return bool(have.bit_width <= wanted.bit_width)
    if types.is_time(have):
        return bool(wanted in _WHOLE and have.bit_width == wanted.bit_width)
    return bool(types.is_large_string(have) and wanted == pa.string())
