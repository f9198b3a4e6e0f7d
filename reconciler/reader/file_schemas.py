"""The columns that are asked for, and which base files hold them in other types; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from reconciler.errors import UsageError

#: a column's name -> its type, spelled so that the same types of several writers are equal
TypesByColumn = Mapping[str, str]


def select_columns(schema: pa.Schema, columns: Sequence[str] | None, table: str) -> pa.Schema:
    """The columns asked for, in order; None for all. Raises UsageError for one there is none of."""
    if columns is None:
        return schema
    for name in columns:
        if name not in schema.names:
            known = ", ".join(schema.names)
            raise UsageError(f"table {table} has no column {name!r}; its columns are {known}")
    return pa.schema([schema.field(name) for name in columns])


def spell_types(schema: pa.Schema) -> TypesByColumn:
    """What ``find_evolved_instants`` compares of a base file's schema."""
    return {field.name: _spell_type(field.type) for field in schema}


def find_evolved_instants(
    instants: Sequence[str], shape: Callable[[str], TypesByColumn], table: pa.Schema
) -> frozenset[str]:
    """The instants whose base files hold a column in another type than the table does.

    ``instants`` ascend; ``shape`` looks into a file of one. A schema only moves on, so what two
    instants share holds for those between them: as few files are looked into as it changed.
    """
    known: dict[str, TypesByColumn] = {}

    def at(place: int) -> TypesByColumn:
        instant = instants[place]
        if instant not in known:
            known[instant] = shape(instant)
        return known[instant]

    found: set[str] = set()
    wanted = spell_types(table)
    parts = [(0, len(instants) - 1)] if instants else []
    while parts:
        low, high = parts.pop()
        if at(low) == at(high):
            if has_other_types(at(low), wanted):
                found.update(instants[low : high + 1])
        elif high - low == 1:
            parts += [(low, low), (high, high)]
        else:
            middle = (low + high) // 2
            parts += [(low, middle), (middle, high)]
    return frozenset(found)


def has_other_types(have: TypesByColumn, wanted: TypesByColumn) -> bool:
    """Whether any column of the table has another type in the file."""
    return any(wanted.get(name, kind) != kind for name, kind in have.items())


def _spell_type(kind: pa.DataType) -> str:
    """A type without what readers do not care about: names of items, units they all know."""
    types = pa.types
    if types.is_struct(kind):
        return f"<{','.join(sorted(f'{field.name}:{_spell_type(field.type)}' for field in kind))}>"
    if types.is_list(kind):
        return f"[{_spell_type(kind.value_type)}]"
    if types.is_map(kind):
        return f"{{{_spell_type(kind.key_type)}:{_spell_type(kind.item_type)}}}"
    if types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return "timestamp" if kind.tz is None else "instant"
    return str(kind)
