"""Convert columns of rows to the types that a base file stores.

Nested columns keep their buffers; only the nullability of their children changes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.schema_evolution import evolve_column


def convert_column(column: Any, wanted: pa.DataType, where: str) -> Any:
    """Convert a column to the wanted type; raises UnsupportedError naming ``where``.

    Nulls that the wanted type forbids are not checked here; the file's writer finds them.
    """
    have, types = column.type, pa.types
    if have.equals(wanted):
        return column
    if types.is_dictionary(wanted):
        return convert_column(column, wanted.value_type, where).dictionary_encode()
    if types.is_struct(have) and types.is_struct(wanted) and _names(have) == _names(wanted):
        return _convert_struct(column, wanted, where)
    if types.is_list(have) and types.is_list(wanted):
        items = convert_column(column.values, wanted.value_type, f"{where}.element")
        return _replace_children(column, wanted, [items])
    if types.is_map(have) and types.is_map(wanted):
        return _convert_map(column, wanted, where)
    return _convert_leaf(column, wanted, where)


def _names(kind: pa.DataType) -> list[str]:
    return [field.name for field in kind]


def _convert_struct(column: Any, wanted: pa.DataType, where: str) -> Any:
    """Convert children; they follow the struct's own buffers, also in a slice."""
    whole = column.slice(0) if not column.offset else _copy_to_start(column)
    children = [
        convert_column(_fill_null_child(whole, at, field.type), field.type, f"{where}.{field.name}")
        for at, field in enumerate(wanted)
    ]
    return _replace_children(whole, wanted, children)


def _fill_null_child(column: Any, at: int, wanted: pa.DataType) -> Any:
    """Return a child with a filler if the struct is null, since any bytes may be there."""
    child = column.field(at)
    if column.null_count and pa.types.is_fixed_size_binary(wanted):
        filler = pa.scalar(bytes(wanted.byte_width), child.type)
        return pc.if_else(column.is_valid(), child, filler)
    return child


def _copy_to_start(column: Any) -> Any:
    """Copy the values into new buffers, because those of a slice have an offset."""
    return pa.concat_arrays([column, column.slice(0, 0)])


def _convert_map(column: Any, wanted: pa.DataType, where: str) -> Any:
    whole = column if not column.offset else _copy_to_start(column)
    keys = convert_column(whole.keys, wanted.key_type, f"{where}.key")
    items = convert_column(whole.items, wanted.item_type, f"{where}.value")
    entry = pa.struct([wanted.key_field, wanted.item_field])
    entries = pa.Array.from_buffers(entry, len(keys), [None], children=[keys, items])
    return _replace_children(whole, wanted, [entries])


def _replace_children(column: Any, wanted: pa.DataType, children: list[Any]) -> Any:
    """Return the column's own buffers (validity, offsets) with other children."""
    buffers = column.buffers()[: 1 if pa.types.is_struct(wanted) else 2]
    return pa.Array.from_buffers(
        wanted, len(column), buffers, offset=column.offset, children=children
    )


def _convert_leaf(column: Any, wanted: pa.DataType, where: str) -> Any:
    have, types = column.type, pa.types
    if types.is_timestamp(have) and wanted.equals(pa.timestamp("ms", have.tz)):
        # rounds down as Java does, before 1970 too
        return pc.floor_temporal(column, unit="millisecond").cast(wanted)
    if types.is_fixed_size_binary(wanted) and types.is_binary(have):
        return _convert_fixed(column, wanted, where)
    if types.is_time(wanted) and types.is_integer(have) and have.bit_width == wanted.bit_width:
        return column.view(wanted)
    return evolve_column(column, wanted, where)


def _convert_fixed(column: Any, wanted: pa.DataType, where: str) -> Any:
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as problem:
        raise UnsupportedError(f"{where}: {problem}") from None
