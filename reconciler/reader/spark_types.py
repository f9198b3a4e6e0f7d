"""Map Arrow's types to the types that Spark gives the same columns; pure, needs no Spark.

Source: org.apache.spark.sql.util.ArrowUtils, and the JSON that DataType.json prints.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from reconciler.errors import UnsupportedError

_PLAIN: Final = {
    pa.null(): "void",
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
}

#: type names whose simpleString differs from their JSON
_SHORT: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def to_spark_schema(schema: pa.Schema) -> dict[str, Any]:
    """Return a schema as ``StructType.fromJson`` takes it; UnsupportedError for other types.

    >>> to_spark_schema(pa.schema([pa.field("id", pa.int64())]))["fields"]
    [{'name': 'id', 'type': 'long', 'nullable': True, 'metadata': {}}]
    """
    return {"type": "struct", "fields": [_to_field(field, field.name) for field in schema]}


def _to_field(field: pa.Field, where: str) -> dict[str, Any]:
    kind = _to_type(field.type, where)
    return {"name": field.name, "type": kind, "nullable": field.nullable, "metadata": {}}


def _to_type(kind: pa.DataType, where: str) -> str | dict[str, Any]:
    types = pa.types
    if (plain := _PLAIN.get(kind)) is not None:
        return plain
    if types.is_timestamp(kind) and kind.unit == "us":
        return "timestamp"  # with a zone
    if types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_struct(kind):
        return {"type": "struct", "fields": [_to_field(f, f"{where}.{f.name}") for f in kind]}
    if types.is_list(kind) or types.is_large_list(kind):
        return {
            "type": "array",
            "elementType": _to_type(kind.value_type, f"{where}.element"),
            "containsNull": kind.value_field.nullable,
        }
    if types.is_map(kind):
        return {
            "type": "map",
            "keyType": _to_type(kind.key_type, f"{where}.key"),
            "valueType": _to_type(kind.item_type, f"{where}.value"),
            "valueContainsNull": kind.item_field.nullable,
        }
    raise UnsupportedError(f"column {where}: Spark has no type for Arrow's {kind}")


def is_void(kind: pa.DataType) -> bool:
    """True if a type is null or contains one, which no parquet file can hold.

    >>> is_void(pa.list_(pa.null())), is_void(pa.list_(pa.int32()))
    (True, False)
    """
    if pa.types.is_null(kind):
        return True
    return any(is_void(kind.field(at).type) for at in range(kind.num_fields))


def format_spark_type(kind: pa.DataType) -> str:
    """Return a type as Spark's ``simpleString`` spells it.

    >>> format_spark_type(pa.list_(pa.struct([pa.field("a", pa.int32())])))
    'array<struct<a:int>>'
    """
    return _format(_to_type(kind, ""))


def _format(kind: str | dict[str, Any]) -> str:
    match kind:
        case str():
            return _SHORT.get(kind, kind)
        case {"type": "struct", "fields": fields}:
            inner = ",".join(f"{field['name']}:{_format(field['type'])}" for field in fields)
            return f"struct<{inner}>"
        case {"type": "array", "elementType": element}:
            return f"array<{_format(element)}>"
        case {"keyType": key, "valueType": value}:
            return f"map<{_format(key)},{_format(value)}>"
        case _:
            raise AssertionError(kind)
