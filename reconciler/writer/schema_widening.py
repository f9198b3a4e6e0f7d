"""Two Avro schemas as the one that holds the values of both; pure.

Works on Avro's JSON, so that names, documentation and whatever else a table's schema says stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.file_slices.merge.avro_schema import META_COLUMNS, PRIMITIVES

_SPELLED: Final = {
    "long": "bigint",
    "bytes": "binary",
    "timestamp-micros": "timestamp",
    "local-timestamp-micros": "timestamp_ntz",
}
#: what a value of the first may become
_WIDENED: Final = {
    "int": ("long", "float", "double", "string"),
    "long": ("float", "double", "string"),
    "float": ("double",),
    "bytes": ("string",),
    "string": ("bytes",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDifference:
    """A column in which rows do not fit a table: its path, both types in SQL's words, and why."""

    column: str
    table: str
    rows: str
    why: str


@dataclass(slots=True)
class SchemaWidening:
    """Walks two schemas and collects the ``differences`` that cannot be bridged.

    ``fills_missing``: what the rows have not becomes null instead of a difference. ``named``: the
    types of the table by their names (``list_named_types``). ``widens_decimals``: whether a table's
    decimal may get more digits.
    """

    fills_missing: bool = False
    widens_decimals: bool = True
    named: Mapping[str, Any] = field(default_factory=dict)
    differences: list[SchemaDifference] = field(default_factory=list)

    def merge_records(self, table: Any, rows: Any, where: str) -> Any:
        """The record of both: the table's fields in its order, then those that are new."""
        found = {one["name"]: one for one in rows["fields"]}
        fields = []
        for one in table["fields"]:
            brought = found.pop(one["name"], None)
            fields.append(self._merge_field(one, brought, _join_path(where, one["name"]), found))
        lowered = {one["name"].lower() for one in table["fields"]}
        for name, one in found.items():
            if name.lower() not in lowered and not _is_nullable(one["type"]):
                why = "a column is added only if it may be null, as it is in older rows"
                self._add_difference(_join_path(where, name), None, one["type"], why)
            elif name.lower() in lowered:
                why = "names that differ in letters' case alone cannot be told apart in SQL"
                self._add_difference(_join_path(where, name), None, one["type"], why)
            fields.append(one)
        return {**table, "fields": fields}

    def _merge_field(self, table: Any, brought: Any, where: str, others: Mapping[str, Any]) -> Any:
        if brought is None and where in META_COLUMNS:
            return table
        if brought is not None:
            kind = self._merge_nullable(table["type"], brought["type"], where)
        elif self.fills_missing and not _has_other_case(table["name"], others):
            kind = _make_nullable(table["type"])
        else:
            why = "the rows lack it; add it, or ask for null in its place (--fill-missing)"
            self._add_difference(where, table["type"], None, why)
            return table
        if kind == table["type"]:
            return table
        default = {"default": None} if isinstance(kind, list) and kind[0] == "null" else {}
        return {**table, "type": kind, **default}

    def _merge_nullable(self, table: Any, rows: Any, where: str) -> Any:
        """The table's own JSON where it holds the rows' values as it is."""
        kind = self._merge_named(_without_null(table), _without_null(rows), where)
        if kind == _without_null(table) and (_is_nullable(table) or not _is_nullable(rows)):
            return table
        return ["null", kind] if _is_nullable(table) or _is_nullable(rows) else kind

    def _merge_named(self, table: Any, rows: Any, where: str) -> Any:
        """Types without null; a name that the table's schema defined before stays one."""
        defined = self._resolve(table)
        found = self._merge_types(defined, rows, where)
        if found == defined:
            return table
        if isinstance(table, str) and defined is not table:
            why = "the table's schema uses the type a second time, so that it cannot change"
            self._add_difference(where, defined, rows, why)
        return found

    def _merge_types(self, table: Any, rows: Any, where: str) -> Any:  # noqa: PLR0911
        match _find_kind(table), _find_kind(rows):
            case ("record", "record"):
                return self.merge_records(table, rows, where)
            case ("array", "array"):
                items = self._merge_nullable(table["items"], rows["items"], f"{where}.element")
                return {**table, "items": items}
            case ("map", "map"):
                values = self._merge_nullable(table["values"], rows["values"], f"{where}.value")
                return {**table, "values": values}
            case ("decimal", "decimal"):
                return self._merge_decimals(table, rows, where)
            case (have, brings) if have == brings or have in _WIDENED.get(brings, ()):
                return table
            case (have, brings) if brings in _WIDENED.get(have, ()):
                return rows
            case _:
                self._add_difference(where, table, rows, "neither holds all values of the other")
                return table

    def _merge_decimals(self, table: Any, rows: Any, where: str) -> Any:
        have, brings = _count_digits(table), _count_digits(rows)
        if all(a >= b for a, b in zip(have, brings, strict=True)):
            return table
        if not all(b >= a for a, b in zip(have, brings, strict=True)):
            why = "digits before or after the point would be lost"
        elif self.widens_decimals:
            return rows
        else:
            why = "the Hudi of this table's version does not widen decimals"
        self._add_difference(where, table, rows, why)
        return table

    def _resolve(self, kind: Any) -> Any:
        """A type that is called by the name that it got before, as it was defined there."""
        if not isinstance(kind, str) or kind in PRIMITIVES:
            return kind
        found = [self.named[full] for full in self.named if f".{full}".endswith(f".{kind}")]
        return found[0] if len(found) == 1 else kind

    def _add_difference(self, where: str, table: Any, rows: Any, why: str) -> None:
        self.differences.append(
            SchemaDifference(
                column=where, table=_spell_type(table), rows=_spell_type(rows), why=why
            )
        )


def list_named_types(kind: Any, space: str = "") -> dict[str, Any]:
    """Every record, fixed and enum in a schema by its full name.

    >>> list(list_named_types({"type": "fixed", "name": "f", "namespace": "a", "size": 2}))
    ['a.f']
    """
    found: dict[str, Any] = {}
    if isinstance(kind, dict):
        if "name" in kind:
            space = kind.get("namespace", space)
            found[f"{space}.{kind['name']}" if space else kind["name"]] = kind
        inner = [one["type"] for one in kind.get("fields", ())]
        inner += [kind[key] for key in ("items", "values", "type") if key in kind]
    else:
        inner = kind if isinstance(kind, list) else []
    for one in inner:
        found |= list_named_types(one, space)
    return found


def _has_other_case(name: str, others: Mapping[str, Any]) -> bool:
    return any(name.lower() == other.lower() for other in others)


def _join_path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _is_nullable(kind: Any) -> bool:
    return isinstance(kind, list) and "null" in kind


def _make_nullable(kind: Any) -> Any:
    return kind if _is_nullable(kind) else ["null", kind]


def _without_null(kind: Any) -> Any:
    if isinstance(kind, list):
        (kind,) = [branch for branch in kind if branch != "null"]
    if isinstance(kind, dict) and set(kind) == {"type"}:
        return _without_null(kind["type"])
    return kind


def _find_kind(kind: Any) -> str:
    """A word for a type: two of one word hold the same values, but for what is inside of them."""
    if isinstance(kind, str):
        return kind
    logical = kind.get("logicalType")
    if logical == "decimal" or logical is None:
        return str(logical or kind["type"])
    return str(logical)


def _count_digits(kind: Any) -> tuple[int, int]:
    """Of a decimal, before the point and after it."""
    scale = int(kind.get("scale", 0))
    return int(kind["precision"]) - scale, scale


def _spell_type(kind: Any) -> str:
    """A type in SQL's words.

    >>> _spell_type(["null", {"type": "array", "items": "long"}])
    'array<bigint>'
    """
    if kind is None:
        return "nothing"
    bare = _without_null(kind)
    match bare:
        case {"type": "record", "fields": fields}:
            inner = ",".join(f"{one['name']}:{_spell_type(one['type'])}" for one in fields)
            return f"struct<{inner}>"
        case {"type": "array", "items": items}:
            return f"array<{_spell_type(items)}>"
        case {"type": "map", "values": values}:
            return f"map<string,{_spell_type(values)}>"
        case {"logicalType": "decimal", "precision": precision}:
            return f"decimal({precision},{bare.get('scale', 0)})"
        case _:
            word = _find_kind(bare)
            return _SPELLED.get(word, word)
