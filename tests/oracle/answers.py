"""What a query of a table answers, and in what two answers differ; exact, whatever the types.

Rows are a multiset. Values are equal when they are the same value of the same type: NaN is NaN,
-0.0 is not 0.0, a decimal has its scale, a time its microseconds in UTC, bytes are bytes. Types are
Spark's, without metadata and without nullability: Hudi says what its writer's schema said of both,
and says it otherwise from version to version. The order of a map's entries is no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_SHOWN = 3
_SPARK = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.null(): "void",
}
_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """``types``: (column, Spark's type as its JSON has it); ``refusal``: the error's words."""

    types: tuple[tuple[str, Any], ...] = ()
    rows: pa.Table | None = None
    refusal: tuple[str, ...] = ()

    @classmethod
    def from_rows(cls, rows: pa.Table) -> Answer:
        """Make an answer of Arrow rows, with the types that Spark gives Arrow's."""
        return cls(types=tuple((f.name, spark_type(f.type)) for f in rows.schema), rows=rows)

    @classmethod
    def from_record(cls, said: dict[str, Any]) -> Answer:
        """Make an answer of what `Worker.read_all` returns."""
        if "error" in said:
            return cls(refusal=tuple(said["error"]))
        with Path(said["file"]).open("rb") as file, pa.ipc.open_file(file) as rows:
            return cls(types=list_types(said["schema"]), rows=rows.read_all())

    def rows_as_text(self) -> list[str]:
        """A sorted list with a text per row; equal rows have equal texts."""
        return sorted(self.texts())

    def texts(self) -> list[str]:
        """The same in the order of the rows."""
        assert self.rows is not None
        columns = [_texts(self.rows.column(n)) for n in range(self.rows.num_columns)]
        return [str(row) for row in zip(*columns, strict=True)]


def spark_type(kind: Any) -> Any:
    """Return Spark's type for an Arrow type, as `list_types` spells it."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return {"struct": tuple((field.name, spark_type(field.type)) for field in kind)}
    if pa.types.is_map(kind):
        key, value = spark_type(kind.key_type), spark_type(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": value}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": spark_type(kind.value_type)}
    return _SPARK[kind]


def list_types(schema: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return (column, type) of a schema in Spark's JSON."""
    return tuple((field["name"], _drop_nullability(field["type"])) for field in schema["fields"])


def _drop_nullability(kind: Any) -> Any:
    """Return a type without nullability and metadata, nested types too."""
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "struct":
        return {"struct": list_types(kind)}
    dropped = ("containsNull", "valueContainsNull")
    return {key: _drop_nullability(value) for key, value in kind.items() if key not in dropped}


def find_differences(expected: Answer, actual: Answer) -> list[str]:
    """Return the differences, a line each; nothing for equal answers."""
    if expected.refusal or actual.refusal:
        if bool(expected.refusal) == bool(actual.refusal):
            return []
        side = "expected" if expected.refusal else "actual"
        return [f"only the {side} answer is a refusal: {expected.refusal or actual.refusal}"]
    if expected.types != actual.types:
        return list(_type_differences(expected.types, actual.types))
    if _same_bits(expected.rows, actual.rows):
        return []
    theirs, ours = Counter(expected.rows_as_text()), Counter(actual.rows_as_text())
    return [
        *_show_some("missing", (theirs - ours).elements()),
        *_show_some("not expected", (ours - theirs).elements()),
    ]


def _type_differences(
    expected: Sequence[tuple[str, Any]], actual: Sequence[tuple[str, Any]]
) -> Iterable[str]:
    names, ours = [name for name, _ in expected], [name for name, _ in actual]
    if names != ours:
        yield f"columns {names} expected, {ours} found"
    found = dict(actual)
    for name, kind in expected:
        if name in found and found[name] != kind:
            yield f"column {name}: type {kind} expected, {found[name]} found"


def _show_some(what: str, rows: Iterable[str]) -> Iterable[str]:
    found = list(rows)
    if found:
        yield f"{len(found)} rows {what}:"
        yield from (f"  {row[:600]}" for row in found[:_SHOWN])


def _same_bits(expected: Any, actual: Any) -> bool:
    """Whether tables are equal when sorted by their texts; fast, but no proof of a difference."""
    if len(expected) != len(actual):
        return False
    order = [(n, "ascending") for n in expected.schema.names if _is_text(expected.schema, n)]
    theirs, ours = (
        [_bits(column) for column in (table.sort_by(order) if order else table).columns]
        for table in (expected, actual)
    )
    return all(
        their is not None and our is not None and their.equals(our)
        for their, our in zip(theirs, ours, strict=True)
    )


def _is_text(schema: Any, name: str) -> bool:
    return bool(pa.types.is_string(schema.field(name).type))


def _bits(column: Any) -> Any:
    """Return a column that equals another only where all values do; None where impossible."""
    kind = column.type
    if kind in _BITS:
        return pa.chunked_array([chunk.view(_BITS[kind]) for chunk in column.chunks], _BITS[kind])
    return None if pa.types.is_nested(kind) else column


def _texts(column: Any) -> list[str]:
    kind = column.type
    if pa.types.is_timestamp(kind):  # years that Python's datetime doesn't have are values too
        micros = pc.cast(pc.cast(column, pa.timestamp("us", kind.tz)), pa.int64())
        return [f"{value} us" for value in micros.to_pylist()]
    return [repr(_plain(value, kind)) for value in column.to_pylist()]


def _plain(value: Any, kind: Any) -> Any:
    """Return a value with a unique ``repr``: maps sorted by key, structs without names."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return sorted(((key, _plain(item, kind.item_type)) for key, item in value), key=repr)
    if pa.types.is_struct(kind):
        return [_plain(value[field.name], field.type) for field in kind]
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    return value
