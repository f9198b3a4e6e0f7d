"""Select columns, and find base files that hold them in other types; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from reconciler.errors import UsageError

#: column -> its type, spelled so that equal types of different writers are equal
TypesByColumn = Mapping[str, str]


def select_columns(schema: pa.Schema, columns: Sequence[str] | None, table: str) -> pa.Schema:
    """Return the wanted columns in order, None for all; raises UsageError for an unknown one."""
    if columns is None:
        return schema
    for name in columns:
        if name not in schema.names:
            known = ", ".join(schema.names)
            raise UsageError(f"table {table} has no column {name!r}; its columns are {known}")
    return pa.schema([schema.field(name) for name in columns])


def format_types(schema: pa.Schema) -> TypesByColumn:
    """Return the types of a file's columns, for ``find_evolved_instants``."""
    return {field.name: _format_type(field.type) for field in schema}


def find_evolved_instants(
    instants: Sequence[str], shape: Callable[[str], TypesByColumn], table: pa.Schema
) -> frozenset[str]:
    """Return the instants whose base files have another type in a column than the table.

    ``instants`` ascend; ``shape`` reads a file of one. A schema only moves forward, so what two
    instants share holds for those between them. So few files are read.
    """
    known: dict[str, TypesByColumn] = {}

    def types_at(position: int) -> TypesByColumn:
        instant = instants[position]
        if instant not in known:
            known[instant] = shape(instant)
        return known[instant]

    evolved: set[str] = set()
    expected = format_types(table)
    ranges = [(0, len(instants) - 1)] if instants else []
    while ranges:
        low, high = ranges.pop()
        if types_at(low) == types_at(high):
            if any(expected.get(name, kind) != kind for name, kind in types_at(low).items()):
                evolved.update(instants[low : high + 1])
        elif high - low == 1:
            ranges += [(low, low), (high, high)]
        else:
            middle = (low + high) // 2
            ranges += [(low, middle), (middle, high)]
    return frozenset(evolved)


def _format_type(type_: pa.DataType) -> str:
    """Spell a type without item names and other details that do not matter to readers."""
    types = pa.types
    if types.is_struct(type_):
        return (
            f"<{','.join(sorted(f'{field.name}:{_format_type(field.type)}' for field in type_))}>"
        )
    if types.is_list(type_):
        return f"[{_format_type(type_.value_type)}]"
    if types.is_map(type_):
        return f"{{{_format_type(type_.key_type)}:{_format_type(type_.item_type)}}}"
    if types.is_timestamp(type_) and type_.unit in ("ms", "us"):
        return "timestamp" if type_.tz is None else "instant"
    return str(type_)
