"""Parse an Avro schema into a tree that decoders walk, with the Arrow types of its values.

The types are those that Spark gives a Hudi table: both kinds of timestamp in microseconds, times of
day as stored integers, enums as strings, fixed as binary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs.avro_binary import decoding, parse_schema, require
from reconciler.lazy_dataclass import dataclass

_WIDEST: Final = 38  # digits of a decimal128, and of Spark's decimals
_TIMES: Final = (
    "timestamp-millis",
    "timestamp-micros",
    "local-timestamp-millis",
    "local-timestamp-micros",
    "time-micros",
)


class AvroKind(Enum):
    """The encoding of a value."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"
    FIXED = "fixed"
    ENUM = "enum"
    ARRAY = "array"
    MAP = "map"
    RECORD = "record"


#: the types that are given by name alone
PRIMITIVES: Final = frozenset(
    kind.value for kind in AvroKind if kind.value not in ("array", "map", "record", "enum", "fixed")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroNode:
    """One type. ``branches``: size of its union, if any; ``null``: index of the null branch.

    ``size``: bytes of a fixed. ``digits``: precision and scale of a decimal. ``symbols``: an enum's
    symbols. ``item``: type of an array's items or a map's values. ``fields``: a record's fields.
    """

    kind: AvroKind
    branches: int = 0
    null: int | None = None
    logical: str = ""
    size: int = 0
    digits: tuple[int, int] = (0, 0)
    symbols: tuple[str, ...] = ()
    item: AvroNode | None = None
    fields: tuple[tuple[str, AvroNode], ...] = ()

    @property
    def items(self) -> AvroNode:
        """The type of an array's items or a map's values."""
        assert self.item is not None, "arrays and maps have one"
        return self.item

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of its values."""
        match self.kind:
            case AvroKind.ARRAY:
                return pa.list_(pa.field("element", self.items.arrow))
            case AvroKind.MAP:
                return pa.map_(pa.string(), self.items.arrow)
            case AvroKind.RECORD:
                return pa.struct([pa.field(name, node.arrow) for name, node in self.fields])
            case _:
                return self._logical_arrow or _PLAIN[self.kind]

    @property
    def _logical_arrow(self) -> pa.DataType | None:
        match self.logical:
            case "date":
                return pa.date32()
            case "decimal":
                return pa.decimal128(*self.digits)
            case "timestamp-millis" | "timestamp-micros":
                return pa.timestamp("us", "UTC")
            case "local-timestamp-millis" | "local-timestamp-micros":
                return pa.timestamp("us")
            case _:
                return None


_PLAIN: Final = {
    AvroKind.NULL: pa.null(),
    AvroKind.BOOLEAN: pa.bool_(),
    AvroKind.INT: pa.int32(),
    AvroKind.LONG: pa.int64(),
    AvroKind.FLOAT: pa.float32(),
    AvroKind.DOUBLE: pa.float64(),
    AvroKind.BYTES: pa.binary(),
    AvroKind.FIXED: pa.binary(),
    AvroKind.STRING: pa.string(),
    AvroKind.ENUM: pa.string(),
}


def parse_avro_schema(text: str, path: str) -> AvroNode:
    """Parse a record schema's JSON text.

    Raises FormatError naming ``path`` for a text that is not a record schema, UnsupportedError for
    types that tables do not have: unions of several types, decimals of more than 38 digits.
    """
    parsed = parse_schema(text, path)  # refuses recursive types and types without size
    with decoding(path, "the Avro schema"):
        node = _build_node(parsed, {}, path)
        require(node.kind is AvroKind.RECORD and node.null is None, "it is not a record schema")
        return node


def to_arrow_schema(text: str, path: str) -> pa.Schema:
    """Return the columns of a record schema's JSON text, all nullable, as in Spark.

    ``text`` is the ``schema`` of a commit, which may lack the meta columns; see
    ``add_meta_columns``. Raises as ``parse_avro_schema`` does.
    """
    return pa.schema(
        [pa.field(name, node.arrow) for name, node in parse_avro_schema(text, path).fields]
    )


#: the columns that Hudi puts before the data, in order
META_COLUMNS: Final = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


def add_meta_columns(schema: pa.Schema) -> pa.Schema:
    """Return the schema with all of Hudi's meta columns in front."""
    rest = [field for field in schema if field.name not in META_COLUMNS]
    return pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *rest])


def _build_node(schema: Any, known: dict[str, AvroNode], where: str) -> AvroNode:
    """Build the type of a parsed schema; ``known``: named types so far, by their full names."""
    match schema:
        case str():
            return known[schema] if schema in known else AvroNode(kind=AvroKind(schema))
        case list():
            return _build_union(schema, known, where)
        case {"type": "array", "items": items}:
            return AvroNode(kind=AvroKind.ARRAY, item=_build_node(items, known, where))
        case {"type": "map", "values": values}:
            return AvroNode(kind=AvroKind.MAP, item=_build_node(values, known, where))
        case {"type": "record" | "error" | "enum" | "fixed", "name": name}:
            known[name] = _build_named_type(schema, known, where)
            return known[name]
        case {"type": inner}:
            return _add_logical_type(_build_node(inner, known, where), schema, where)
        case _:
            raise ValueError(f"{schema!r} is not a type")


def _build_union(branches: list[Any], known: dict[str, AvroNode], where: str) -> AvroNode:
    """Build a nullable type; a table's schema has no other unions."""
    null = branches.index("null") if "null" in branches else None
    rest = [branch for branch in branches if branch != "null"]
    if not rest:
        return AvroNode(kind=AvroKind.NULL, branches=len(branches))
    if len(rest) > 1:
        raise UnsupportedError(f"{where}: a union of {len(rest)} types cannot be read as a column")
    return replace(_build_node(rest[0], known, where), branches=len(branches), null=null)


def _build_named_type(
    schema: Mapping[str, Any], known: dict[str, AvroNode], where: str
) -> AvroNode:
    match schema["type"]:
        case "enum":
            return AvroNode(kind=AvroKind.ENUM, symbols=tuple(schema["symbols"]))
        case "fixed":
            fixed = AvroNode(kind=AvroKind.FIXED, size=schema["size"])
            return _add_logical_type(fixed, schema, where)
        case _:
            fields = (
                (name, _build_node(field["type"], known, f"{where}, column {name}"))
                for field in schema["fields"]
                if (name := field["name"])
            )
            return AvroNode(kind=AvroKind.RECORD, fields=tuple(fields))


def _add_logical_type(node: AvroNode, schema: Mapping[str, Any], where: str) -> AvroNode:
    """Return the type with its logical type, if that fits its kind."""
    logical = schema.get("logicalType", "")
    match node.kind, logical:
        case (AvroKind.INT, "date" | "time-millis"):
            return replace(node, logical=logical)
        case (AvroKind.LONG, _) if logical in _TIMES:
            return replace(node, logical=logical)
        case (AvroKind.BYTES | AvroKind.FIXED, "decimal"):
            digits = (int(schema["precision"]), int(schema.get("scale", 0)))
            if not 0 < digits[0] <= _WIDEST:
                raise UnsupportedError(f"{where}: decimals of {digits[0]} digits cannot be read")
            return replace(node, logical=logical, digits=digits)
        case _:
            return node
