"""Evolve a table's schema for rows with other columns; pure.

The table's columns keep their positions and new ones come last, in nested records too; a type
becomes the wider one of both. (Hudi 0.x takes the rows' column order.) Hudi allows more: fractions
as text in Java's spelling, text as decimals, integers as timestamps; those are refused here.
Source: HoodieSchemaUtils.deduceWriterSchema, AvroSchemaUtils of 1.x.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Self

import pyarrow as pa

from reconciler.errors import RowsError
from reconciler.file_slices.merge.avro_schema import META_COLUMNS, PRIMITIVES, to_arrow_schema
from reconciler.file_slices.merge.schema_evolution import evolve_batch
from reconciler.lazy_dataclass import dataclass
from reconciler.writer.declared_schema import make_avro_schema

#: tables from this version on may get wider decimals; Hudi 0.15 and 1.0 refuse them
_WIDER_DECIMALS: Final = 9
#: the spelling of a type that is not there
NO_TYPE: Final = "nothing"
_SPELLED: Final = {
    "long": "bigint",
    "bytes": "binary",
    "timestamp-micros": "timestamp",
    "local-timestamp-micros": "timestamp_ntz",
}
#: type -> wider types that can hold its values
_WIDENED: Final = {
    "int": ("long", "float", "double", "string"),
    "long": ("float", "double", "string"),
    "float": ("double",),
    "bytes": ("string",),
    "string": ("bytes",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEvolution:
    """``avro``: the table's schema after the write; the same text if nothing changes.

    ``columns``: what rows are converted to, in the types that Spark gives the table. ``incoming``:
    what the rows are before.
    """

    avro: str
    columns: pa.Schema
    incoming: pa.Schema

    @classmethod
    def from_schemas(
        cls,
        table: str,
        rows: pa.Schema,
        *,
        table_name: str,
        table_version: int,
        fills_missing: bool = False,
    ) -> Self:
        """Evolve a table's Avro schema, from its last commit, for the columns of new rows.

        ``fills_missing``: columns that the rows lack become null, as with Hudi's option
        ``hoodie.write.set.null.for.missing.columns``; otherwise they are refused, as by Hudi.
        Raises RowsError listing every column that does not fit, and as ``make_avro_schema`` does;
        FormatError and UnsupportedError for an unreadable schema of the table.
        """
        to_arrow_schema(table, f"the schema of table {table_name}")  # raises for an unreadable one
        declared = make_avro_schema(rows, table_name, table_version=table_version)
        current, incoming_schema = json.loads(table), json.loads(declared)
        widening = SchemaWidening(
            fills_missing=fills_missing,
            widens_decimals=table_version >= _WIDER_DECIMALS,
            named=list_named_types(current),
        )
        merged = widening.merge_records(current, incoming_schema, "")
        if widening.differences:
            raise RowsError(_describe_differences(table_name, widening.differences))
        avro = table if merged == current else _to_json(merged)
        return cls(
            avro=avro,
            columns=to_arrow_schema(avro, f"the schema of table {table_name}"),
            incoming=to_arrow_schema(declared, "the schema of the rows"),
        )

    def convert_batch(self, batch: Any) -> Any:
        """Convert rows to the table's columns and types, null if they lack one.

        Raises UnsupportedError naming the column if a value does not fit the table's type.
        """
        return evolve_batch(
            evolve_batch(batch, self.incoming, "the rows"), self.columns, "the rows"
        )


def _describe_types(difference: SchemaDifference) -> str:
    if difference.rows == NO_TYPE:
        return f"missing required column ({difference.table})"
    if difference.table == NO_TYPE:
        return f"new column ({difference.rows})"
    return f"the table has {difference.table}, the rows have {difference.rows}"


def _to_json(schema: Any) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def _describe_differences(table_name: str, differences: list[SchemaDifference]) -> str:
    lines = "\n".join(
        f"  {difference.column}: {_describe_types(difference)}: {difference.why}"
        for difference in differences
    )
    return f"the rows do not fit the schema of table {table_name}:\n{lines}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDifference:
    """A column whose rows do not fit the table: its path, both types in SQL, and why."""

    column: str
    table: str
    rows: str
    why: str


@dataclass(slots=True)
class SchemaWidening:
    """Walks two schemas and collects the ``differences`` that cannot be merged.

    ``fills_missing``: columns that the rows lack become null instead of a difference. ``named``:
    the table's types by name (``list_named_types``). ``widens_decimals``: whether decimals may get
    more digits.
    """

    fills_missing: bool = False
    widens_decimals: bool = True
    named: Mapping[str, Any] = field(default_factory=dict)
    differences: list[SchemaDifference] = field(default_factory=list)

    def merge_records(self, table: Any, rows: Any, where: str) -> Any:
        """Return the merged record: the table's fields in order, then new ones."""
        row_fields = {field_["name"]: field_ for field_ in rows["fields"]}
        fields = []
        for field_ in table["fields"]:
            row_field = row_fields.pop(field_["name"], None)
            fields.append(
                self._merge_field(field_, row_field, _join_path(where, field_["name"]), row_fields)
            )
        lower_names = {field_["name"].lower() for field_ in table["fields"]}
        for name, field_ in row_fields.items():
            if name.lower() not in lower_names and not _is_nullable(field_["type"]):
                why = "a new column must be nullable, because older rows lack it"
                self._add_difference(_join_path(where, name), None, field_["type"], why)
            elif name.lower() in lower_names:
                why = "SQL cannot distinguish names that differ only in case"
                self._add_difference(_join_path(where, name), None, field_["type"], why)
            fields.append(field_)
        return {**table, "fields": fields}

    def _merge_field(
        self, table: Any, row_field: Any, where: str, others: Mapping[str, Any]
    ) -> Any:
        if row_field is None and where in META_COLUMNS:
            return table
        if row_field is not None:
            kind = self._merge_nullable(table["type"], row_field["type"], where)
        elif self.fills_missing and not _has_other_case(table["name"], others):
            kind = _make_nullable(table["type"])
        else:
            why = "add it, or use --fill-missing for nulls"
            self._add_difference(where, table["type"], None, why)
            return table
        if kind == table["type"]:
            return table
        default = {"default": None} if isinstance(kind, list) and kind[0] == "null" else {}
        return {**table, "type": kind, **default}

    def _merge_nullable(self, table: Any, rows: Any, where: str) -> Any:
        """Return the merged type; the table's own JSON if it can hold the rows' values."""
        kind = self._merge_named(_without_null(table), _without_null(rows), where)
        if kind == _without_null(table) and (_is_nullable(table) or not _is_nullable(rows)):
            return table
        return ["null", kind] if _is_nullable(table) or _is_nullable(rows) else kind

    def _merge_named(self, table: Any, rows: Any, where: str) -> Any:
        """Merge types without null; a name that the table's schema defined stays a name."""
        resolved = self._resolve(table)
        merged = self._merge_types(resolved, rows, where)
        if merged == resolved:
            return table
        if isinstance(table, str) and resolved is not table:
            why = "the table's schema uses this named type elsewhere, so it cannot change"
            self._add_difference(where, resolved, rows, why)
        return merged

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
            case (table_kind, row_kind) if table_kind == row_kind or table_kind in _WIDENED.get(
                row_kind, ()
            ):
                return table
            case (table_kind, row_kind) if row_kind in _WIDENED.get(table_kind, ()):
                return rows
            case _:
                self._add_difference(
                    where, table, rows, "neither type can hold all values of the other"
                )
                return table

    def _merge_decimals(self, table: Any, rows: Any, where: str) -> Any:
        table_kind, row_kind = _count_digits(table), _count_digits(rows)
        if all(a >= b for a, b in zip(table_kind, row_kind, strict=True)):
            return table
        if not all(b >= a for a, b in zip(table_kind, row_kind, strict=True)):
            why = "digits before or after the decimal point would be lost"
        elif self.widens_decimals:
            return rows
        else:
            why = "Hudi does not widen decimals in tables of this version"
        self._add_difference(where, table, rows, why)
        return table

    def _resolve(self, kind: Any) -> Any:
        """Return the definition of a type that is given by name."""
        if not isinstance(kind, str) or kind in PRIMITIVES:
            return kind
        matches = [self.named[full] for full in self.named if f".{full}".endswith(f".{kind}")]
        return matches[0] if len(matches) == 1 else kind

    def _add_difference(self, where: str, table: Any, rows: Any, why: str) -> None:
        self.differences.append(
            SchemaDifference(
                column=where, table=_format_type(table), rows=_format_type(rows), why=why
            )
        )


def list_named_types(kind: Any, space: str = "") -> dict[str, Any]:
    """Return every record, fixed and enum of a schema by its full name.

    >>> list(list_named_types({"type": "fixed", "name": "f", "namespace": "a", "size": 2}))
    ['a.f']
    """
    types: dict[str, Any] = {}
    if isinstance(kind, dict):
        if "name" in kind:
            space = kind.get("namespace", space)
            types[f"{space}.{kind['name']}" if space else kind["name"]] = kind
        inner = [entry["type"] for entry in kind.get("fields", ())]
        inner += [kind[key] for key in ("items", "values", "type") if key in kind]
    else:
        inner = kind if isinstance(kind, list) else []
    for part in inner:
        types |= list_named_types(part, space)
    return types


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
    """Return a word for a type; except for nested values, equal words hold equal values."""
    if isinstance(kind, str):
        return kind
    logical = kind.get("logicalType")
    if logical == "decimal" or logical is None:
        return str(logical or kind["type"])
    return str(logical)


def _count_digits(kind: Any) -> tuple[int, int]:
    """Return a decimal's digits before and after the point."""
    scale = int(kind.get("scale", 0))
    return int(kind["precision"]) - scale, scale


def _format_type(kind: Any) -> str:
    """Spell a type in SQL.

    >>> _format_type(["null", {"type": "array", "items": "long"}])
    'array<bigint>'
    """
    if kind is None:
        return NO_TYPE
    type_ = _without_null(kind)
    match type_:
        case {"type": "record", "fields": fields}:
            inner = ",".join(f"{entry['name']}:{_format_type(entry['type'])}" for entry in fields)
            return f"struct<{inner}>"
        case {"type": "array", "items": items}:
            return f"array<{_format_type(items)}>"
        case {"type": "map", "values": values}:
            return f"map<string,{_format_type(values)}>"
        case {"logicalType": "decimal", "precision": precision}:
            return f"decimal({precision},{type_.get('scale', 0)})"
        case _:
            word = _find_kind(type_)
            return _SPELLED.get(word, word)
