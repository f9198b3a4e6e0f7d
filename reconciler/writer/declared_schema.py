"""The Avro schema that Hudi's Spark writer declares for the columns of a batch; pure.

Source: AvroConversionUtils.getAvroRecordNameAndNamespace, HoodieAvroUtils.sanitizeName, Spark's
SchemaConverters as Hudi has it: whatever may be null is a union with null that defaults to null,
decimals are fixed, nested records carry the name of their column below the record around it.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import RowsError, UnsupportedError
from reconciler.file_slices.merge.avro_schema import META_COLUMNS

#: Hudi before 1.1, which writes older tables, has no times without a zone
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
    """The schema as a commit's ``schema`` holds it: compact JSON, without meta columns.

    ``schema``: of Arrow, with the types that Spark hands over; meta columns in it are left out.
    Raises RowsError for column names that Avro has not, UnsupportedError naming the column for
    types that the Hudi of the table's version can't declare.
    """
    name, space = make_record_name(table_name)
    own = [field for field in schema if field.name not in META_COLUMNS]
    declare = _SchemaBuilder(table_version)
    record = declare.record(own, name, space)
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def make_record_name(table_name: str) -> tuple[str, str]:
    """Name and namespace of a table's records.

    >>> make_record_name("1st-orders")
    ('__st__orders_record', 'hoodie.__st__orders')
    """
    first, rest = table_name[:1], table_name[1:]
    clean = re.sub("[^A-Za-z_]", "__", first) + re.sub("[^A-Za-z0-9_]", "__", rest)
    return f"{clean}_record", f"hoodie.{clean}"


class _SchemaBuilder:
    """Arrow's types as Avro's, of a table of one version."""

    def __init__(self, table_version: int) -> None:
        self.table_version = table_version

    def record(self, fields: Any, name: str, space: str) -> dict[str, Any]:
        inner = f"{space}.{name}"
        declared = [self.field(field, inner) for field in fields]
        return {"type": "record", "name": name, "namespace": space, "fields": declared}

    def field(self, field: pa.Field, space: str) -> dict[str, Any]:
        _check_name(field.name, space)
        kind = self.nullable(field, field.name, space)
        return {"name": field.name, "type": kind, **({"default": None} if field.nullable else {})}

    def nullable(self, field: pa.Field, name: str, space: str) -> Any:
        kind = self.type(field.type, name, space)
        return ["null", kind] if field.nullable else kind

    def type(self, kind: Any, name: str, space: str) -> Any:  # noqa: PLR0911
        types = pa.types
        if (plain := _PLAIN.get(kind)) is not None:
            return plain
        if types.is_dictionary(kind):
            return self.type(kind.value_type, name, space)
        if types.is_date32(kind):
            return {"type": "int", "logicalType": "date"}
        if types.is_timestamp(kind) and kind.unit == "us":
            return self.moment(kind, name, space)
        if types.is_decimal128(kind):
            return _declare_decimal(kind, name, space)
        if types.is_struct(kind) and kind.num_fields:
            return self.record(list(kind), name, space)
        if types.is_list(kind) or types.is_large_list(kind):
            return {"type": "array", "items": self.nullable(kind.value_field, name, space)}
        if types.is_map(kind) and types.is_string(kind.key_type):
            return {"type": "map", "values": self.nullable(kind.item_field, name, space)}
        raise UnsupportedError(
            f"column {_spell_column(name, space)}: Hudi's tables have no type for {kind}; cast it to one "
            "of Spark's that Hudi knows (maps have keys of text)"
        )

    def moment(self, kind: Any, name: str, space: str) -> Any:
        if kind.tz is not None:
            return {"type": "long", "logicalType": "timestamp-micros"}
        if self.table_version < _LOCAL_TIMES:
            raise UnsupportedError(
                f"column {_spell_column(name, space)}: tables of version {self.table_version} have no "
                "timestamps without a zone (timestamp_ntz); cast it to timestamp"
            )
        return {"type": "long", "logicalType": "local-timestamp-micros"}


def _declare_decimal(kind: Any, name: str, space: str) -> dict[str, Any]:
    if not 0 <= kind.scale <= kind.precision:
        raise UnsupportedError(f"column {_spell_column(name, space)}: Spark has no {kind}")
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": f"{space}.{name}",
        "size": (10**kind.precision - 1).bit_length() // 8 + 1,
        "logicalType": "decimal",
        "precision": kind.precision,
        "scale": kind.scale,
    }


def _check_name(name: str, space: str) -> None:
    """As Avro's: a letter or underscore, then letters, digits and underscores, of any alphabet."""
    if not name or not all(c == "_" or c.isalpha() or (at and c.isdigit())
                           for at, c in enumerate(name)):  # fmt: skip
        raise RowsError(
            f"column {_spell_column(name, space)!r}: names are of letters, digits and underscores and "
            "do not begin with a digit; rename it"
        )


def _spell_column(name: str, space: str) -> str:
    """The column without the table's own name in front."""
    return ".".join([*space.split(".")[3:], name])
