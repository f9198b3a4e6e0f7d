"""Make the Avro schema that Hudi's Spark writer declares for the columns of a batch; pure.

Nullable columns are a union with null and default to null, decimals are fixed, nested records are
named after their column, below the enclosing record. Source:
AvroConversionUtils.getAvroRecordNameAndNamespace, HoodieAvroUtils.sanitizeName, Spark's
SchemaConverters as in Hudi.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import RowsError, UnsupportedError
from reconciler.file_slices.merge.avro_schema import META_COLUMNS

#: tables before this version have no timestamps without a zone, like Hudi before 1.1
_LOCAL_TIMES: Final = 9
_PLAIN: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
}


def make_avro_schema(schema: pa.Schema, table_name: str, *, table_version: int) -> str:
    """Return the schema as a commit's ``schema`` holds it: compact JSON without meta columns.

    ``schema``: Arrow's, with Spark's types; its meta columns are skipped. Raises RowsError for
    column names that Avro does not allow, UnsupportedError naming the column for types that the
    Hudi of the table's version cannot declare.
    """
    name, namespace = make_record_name(table_name)
    fields = [field for field in schema if field.name not in META_COLUMNS]
    builder = _SchemaBuilder(table_version)
    record = builder.record(fields, name, namespace)
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def make_record_name(table_name: str) -> tuple[str, str]:
    """Return name and namespace of a table's records.

    >>> make_record_name("1st-orders")
    ('__st__orders_record', 'hoodie.__st__orders')
    """
    first, rest = table_name[:1], table_name[1:]
    safe_name = re.sub("[^A-Za-z_]", "__", first) + re.sub("[^A-Za-z0-9_]", "__", rest)
    return f"{safe_name}_record", f"hoodie.{safe_name}"


class _SchemaBuilder:
    """Converts Arrow's types to Avro's, for tables of one version."""

    def __init__(self, table_version: int) -> None:
        self.table_version = table_version

    def record(self, fields: Any, name: str, namespace: str) -> dict[str, Any]:
        inner = f"{namespace}.{name}"
        declared = [self.field(field, inner) for field in fields]
        return {"type": "record", "name": name, "namespace": namespace, "fields": declared}

    def field(self, field: pa.Field, namespace: str) -> dict[str, Any]:
        _check_name(field.name, namespace)
        kind = self.nullable(field, field.name, namespace)
        return {"name": field.name, "type": kind, **({"default": None} if field.nullable else {})}

    def nullable(self, field: pa.Field, name: str, namespace: str) -> Any:
        kind = self.type(field.type, name, namespace)
        return ["null", kind] if field.nullable else kind

    def type(self, kind: Any, name: str, namespace: str) -> Any:  # noqa: PLR0911
        types = pa.types
        if (plain := _PLAIN.get(kind)) is not None:
            return plain
        if types.is_dictionary(kind):
            return self.type(kind.value_type, name, namespace)
        if types.is_date32(kind):
            return {"type": "int", "logicalType": "date"}
        if types.is_timestamp(kind) and kind.unit == "us":
            return self.moment(kind, name, namespace)
        if types.is_decimal128(kind):
            return _declare_decimal(kind, name, namespace)
        if types.is_struct(kind) and kind.num_fields:
            return self.record(list(kind), name, namespace)
        if types.is_list(kind) or types.is_large_list(kind):
            return {"type": "array", "items": self.nullable(kind.value_field, name, namespace)}
        if types.is_map(kind) and types.is_string(kind.key_type):
            return {"type": "map", "values": self.nullable(kind.item_field, name, namespace)}
        raise UnsupportedError(
            f"column {_format_column(name, namespace)}: Hudi has no type for {kind}; cast it "
            "to a Spark type that Hudi supports (map keys must be text)"
        )

    def moment(self, kind: Any, name: str, namespace: str) -> Any:
        if kind.tz is not None:
            return {"type": "long", "logicalType": "timestamp-micros"}
        if self.table_version < _LOCAL_TIMES:
            raise UnsupportedError(
                f"column {_format_column(name, namespace)}: tables of version "
                f"{self.table_version} have no timestamps without a zone (timestamp_ntz); cast it "
                "to timestamp"
            )
        return {"type": "long", "logicalType": "local-timestamp-micros"}


def _declare_decimal(kind: Any, name: str, namespace: str) -> dict[str, Any]:
    if not 0 <= kind.scale <= kind.precision:
        raise UnsupportedError(f"column {_format_column(name, namespace)}: Spark has no {kind}")
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": f"{namespace}.{name}",
        "size": (10**kind.precision - 1).bit_length() // 8 + 1,
        "logicalType": "decimal",
        "precision": kind.precision,
        "scale": kind.scale,
    }


def _check_name(name: str, namespace: str) -> None:
    """As Avro's: a letter or underscore, then letters, digits and underscores, of any alphabet."""
    if not name or not all(c == "_" or c.isalpha() or (at and c.isdigit())
                           for at, c in enumerate(name)):  # fmt: skip
        raise RowsError(
            f"column {_format_column(name, namespace)!r}: names consist of letters, digits and "
            "underscores and do not begin with a digit; rename it"
        )


def _format_column(name: str, namespace: str) -> str:
    """Return the column's path without the table's own name."""
    return ".".join([*namespace.split(".")[3:], name])
