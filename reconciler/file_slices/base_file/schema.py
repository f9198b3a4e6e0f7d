"""Derive the columns of a base file as Hudi's Avro writer lays them out in Parquet.

A column is required unless its type is a union with null, decimals have fixed length, times keep
their unit. Unlike the Avro writer, lists have three levels, as in files of Hudi's row writer: every
reader accepts them, and they can hold null. Source: HoodieAvroUtils.addMetadataFields and
parquet-avro's AvroSchemaConverter.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, Self

import pyarrow as pa

from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.avro_schema import (
    META_COLUMNS,
    AvroKind,
    AvroNode,
    parse_avro_schema,
)
from reconciler.lazy_dataclass import dataclass

#: the type of Hudi's own columns
_META: Final = {"type": ["null", "string"], "doc": "", "default": None}
_TIMES: Final = {
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSchema:
    """The columns of a base file with nullability and units, meta columns first.

    ``avro``: the same as Avro JSON text, for the footer.
    """

    columns: pa.Schema
    avro: str

    @classmethod
    def from_avro(cls, text: str, path: str, *, dropped: Collection[str] = ()) -> Self:
        """Derive the columns from a table's Avro schema, with or without meta columns.

        ``dropped``: columns that the table keeps only in folder names. Raises FormatError naming
        ``path`` for a text that is no such schema, UnsupportedError for types that files cannot
        hold.
        """
        parse_avro_schema(text, path)  # refuses a text that is not a record schema
        schema = json.loads(text)
        data_fields = [f for f in schema["fields"] if f["name"] not in {*META_COLUMNS, *dropped}]
        schema["fields"] = [*({"name": name, **_META} for name in META_COLUMNS), *data_fields]
        avro = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        fields = parse_avro_schema(avro, path).fields
        columns = [_build_field(name, node, f"{path}, column {name}") for name, node in fields]
        return cls(columns=pa.schema(columns), avro=avro)


def _build_field(name: str, node: AvroNode, where: str) -> pa.Field:
    nullable = node.null is not None or node.kind is AvroKind.NULL
    return pa.field(name, _build_type(node, where), nullable=nullable)


def _build_type(node: AvroNode, where: str) -> Any:
    match node.kind:
        case AvroKind.ARRAY:
            return pa.list_(_build_field("element", node.items, where))
        case AvroKind.MAP:
            return pa.map_(pa.string(), _build_field("value", node.items, where))
        case AvroKind.RECORD if node.fields:
            return pa.struct(
                [_build_field(name, kind, f"{where}.{name}") for name, kind in node.fields]
            )
        case AvroKind.FIXED if node.logical == "decimal":
            _check_size(node, where)
            return node.arrow
        case AvroKind.FIXED:
            return pa.binary(node.size)
        case AvroKind.RECORD | AvroKind.NULL:
            raise UnsupportedError(f"{where}: a type without values cannot be written to Parquet")
        case _:
            return _TIMES.get(node.logical, node.arrow)


def _check_size(node: AvroNode, where: str) -> None:
    """Raise UnsupportedError for a decimal wider than needed: it could not be read back."""
    needed = (10 ** node.digits[0] - 1).bit_length() // 8 + 1
    if node.size != needed:
        raise UnsupportedError(
            f"{where}: a decimal of {node.digits[0]} digits in {node.size} bytes, which needs "
            f"{needed}, cannot be written; rewrite this table with Hudi"
        )
