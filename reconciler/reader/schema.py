"""The columns that are asked for, and which base files hold them in other types; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from reconciler.errors import UsageError

#: a column's name -> its type, spelled so that the same types of several writers are equal
Shape = Mapping[str, str]


def wanted_schema(schema: pa.Schema, columns: Sequence[str] | None, table: str) -> pa.Schema:
    """The columns asked for, in order; None for all. Raises UsageError for one there is none of."""
    if columns is None:
        return schema
    for name in columns:
        if name not in schema.names:
            known = ", ".join(schema.names)
            raise UsageError(f"table {table} has no column {name!r}; its columns are {known}")
    return pa.schema([schema.field(name) for name in columns])


def shape_of(schema: pa.Schema) -> Shape:
    """What ``evolved_instants`` compares of a base file's schema."""
    return {field.name: _spelled(field.type) for field in schema}


def evolved_instants(
    instants: Sequence[str], shape: Callable[[str], Shape], table: pa.Schema
) -> frozenset[str]:
    """The instants whose base files hold a column in another type than the table does.

    ``instants`` ascend; ``shape`` looks into a file of one. A schema only moves on, so what two
    instants share holds for those between them: as few files are looked into as it changed.
    """
    known: dict[str, Shape] = {}

    def at(place: int) -> Shape:
        instant = instants[place]
        if instant not in known:
            known[instant] = shape(instant)
        return known[instant]

    found: set[str] = set()
    wanted = shape_of(table)
    parts = [(0, len(instants) - 1)] if instants else []
    while parts:
        low, high = parts.pop()
        if at(low) == at(high):
            if differs(at(low), wanted):
                found.update(instants[low : high + 1])
        elif high - low == 1:
            parts += [(low, low), (high, high)]
        else:
            middle = (low + high) // 2
            parts += [(low, middle), (middle, high)]
    return frozenset(found)


def differs(have: Shape, wanted: Shape) -> bool:
    """Whether any column of the table has another type in the file."""
    return any(wanted.get(name, kind) != kind for name, kind in have.items())


def _spelled(kind: pa.DataType) -> str:
    """A type without what readers do not care about: names of items, units they all know."""
    types = pa.types
    if types.is_struct(kind):
        return f"<{','.join(sorted(f'{field.name}:{_spelled(field.type)}' for field in kind))}>"
    if types.is_list(kind):
        return f"[{_spelled(kind.value_type)}]"
    if types.is_map(kind):
        return f"{{{_spelled(kind.key_type)}:{_spelled(kind.item_type)}}}"
    if types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return "timestamp" if kind.tz is None else "instant"
    return str(kind)
