"""Schemas that real Hudi was given: to declare a table, and to write to one that is declared."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_TEXT, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
_FLOAT, _DOUBLE = pa.float32(), pa.float64()


def _struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


def _keyed(**fields: pa.DataType) -> pa.Schema:
    return pa.schema([("id", _TEXT), ("p", _TEXT), *fields.items()])


#: table name, schema
TABLES: dict[str, tuple[str, pa.Schema]] = {
    "scalars": (
        "t",
        _keyed(
            byte=pa.int8(), short=pa.int16(), int=_INT, long=_LONG, float=_FLOAT, double=_DOUBLE,
            flag=pa.bool_(), data=pa.binary(), day=pa.date32(), at=pa.timestamp("us", "UTC"),
        ),
    ),
    "decimals": (
        "t",
        _keyed(**{f"d{n}": pa.decimal128(n, min(n, 2)) for n in (1, 2, 3, 9, 10, 18, 19, 20, 38)}),
    ),
    "local times": ("t", _keyed(at=pa.timestamp("us"))),
    "nested": (
        "t",
        _keyed(
            s=_struct(a=_INT, s=_struct(b=_TEXT, d=pa.decimal128(10, 2)), again=pa.decimal128(5)),
            d=pa.decimal128(10, 2),
            list=pa.list_(_LONG),
            structs=pa.list_(_struct(x=_TEXT, y=_struct(z=_INT))),
            decimals=pa.list_(pa.decimal128(12, 3)),
            lists=pa.list_(pa.list_(_struct(q=_INT))),
            map=pa.map_(_TEXT, _INT),
            maps=pa.map_(_TEXT, _struct(v=pa.map_(_TEXT, _struct(w=pa.decimal128(4, 1))))),
            times=pa.list_(pa.timestamp("us", "UTC")),
        ),
    ),
    "required": (
        "t",
        pa.schema(
            [
                pa.field("id", _TEXT, nullable=False),
                pa.field("p", _TEXT),
                pa.field("n", _LONG, nullable=False),
                pa.field("d", pa.decimal128(10, 2), nullable=False),
                pa.field("s", pa.struct([pa.field("a", _INT, nullable=False)]), nullable=False),
                pa.field("l", pa.list_(pa.field("element", _INT, nullable=False))),
                pa.field("m", pa.map_(_TEXT, pa.field("value", _INT, nullable=False))),
            ]
        ),
    ),
    "dashed name": ("my-table", _keyed(s=_struct(a=_INT))),
    "name with a digit first": ("1st.orders", _keyed(s=_struct(a=_INT))),
    "name with a dot": ("sales.orders", _keyed(d=pa.decimal128(10, 2))),
    "accented name": ("café", _keyed(n=_INT)),
    "odd columns": ("t", _keyed(**{"with space": _INT})),
    "dashed column": ("t", _keyed(**{"a-b": _INT})),
    "accented column": ("t", _keyed(é=_INT)),
    "digit column": ("t", _keyed(**{"1a": _INT})),
    "words": ("t", _keyed(int=_INT, record=_struct(fixed=pa.decimal128(3)), T=_INT)),
}  # fmt: skip

#: what the values of ``v`` were declared as, and what a later batch brings
_PAIRS: dict[str, tuple[pa.DataType, pa.DataType]] = {
    "byte to int": (pa.int8(), _INT),
    "int to byte": (_INT, pa.int8()),
    "int to long": (_INT, _LONG),
    "int to float": (_INT, _FLOAT),
    "int to double": (_INT, _DOUBLE),
    "int to string": (_INT, _TEXT),
    "int to decimal": (_INT, pa.decimal128(12, 0)),
    "long to float": (_LONG, _FLOAT),
    "long to double": (_LONG, _DOUBLE),
    "long to string": (_LONG, _TEXT),
    "float to double": (_FLOAT, _DOUBLE),
    "float to string": (_FLOAT, _TEXT),
    "double to string": (_DOUBLE, _TEXT),
    "boolean to string": (pa.bool_(), _TEXT),
    "date to string": (pa.date32(), _TEXT),
    "decimal to string": (pa.decimal128(10, 2), _TEXT),
    "string to binary": (_TEXT, pa.binary()),
    "binary to string": (pa.binary(), _TEXT),
    "long to int": (_LONG, _INT),
    "double to float": (_DOUBLE, _FLOAT),
    "double to long": (_DOUBLE, _LONG),
    "float to long": (_FLOAT, _LONG),
    "float to int": (_FLOAT, _INT),
    "double to int": (_DOUBLE, _INT),
    "string to int": (_TEXT, _INT),
    "string to double": (_TEXT, _DOUBLE),
    "string to boolean": (_TEXT, pa.bool_()),
    "boolean to int": (pa.bool_(), _INT),
    "decimal of more digits": (pa.decimal128(10, 2), pa.decimal128(12, 2)),
    "decimal of more bytes": (pa.decimal128(10, 2), pa.decimal128(20, 2)),
    "decimal of more scale": (pa.decimal128(10, 2), pa.decimal128(12, 4)),
    "decimal of fewer digits": (pa.decimal128(12, 2), pa.decimal128(10, 2)),
    "long to timestamp": (_LONG, pa.timestamp("us", "UTC")),
    "timestamp to long": (pa.timestamp("us", "UTC"), _LONG),
    "date to timestamp": (pa.date32(), pa.timestamp("us", "UTC")),
    "int to date": (_INT, pa.date32()),
    "date to int": (pa.date32(), _INT),
    "field added": (_struct(a=_INT), _struct(a=_INT, b=_TEXT)),
    "field added first": (_struct(a=_INT), _struct(b=_TEXT, a=_INT)),
    "field missing": (_struct(a=_INT, b=_TEXT), _struct(a=_INT)),
    "fields reordered": (_struct(a=_INT, b=_TEXT), _struct(b=_TEXT, a=_INT)),
    "field promoted": (_struct(a=_INT), _struct(a=_LONG)),
    "field narrowed": (_struct(a=_LONG), _struct(a=_INT)),
    "items promoted": (pa.list_(_INT), pa.list_(_LONG)),
    "items narrowed": (pa.list_(_LONG), pa.list_(_INT)),
    "values promoted": (pa.map_(_TEXT, _INT), pa.map_(_TEXT, _LONG)),
    "items with a field more": (pa.list_(_struct(a=_INT)), pa.list_(_struct(a=_INT, b=_INT))),
    "struct to string": (_struct(a=_INT), _TEXT),
    "list to string": (pa.list_(_INT), _TEXT),
}


def _required(nullable: bool) -> pa.Schema:
    return pa.schema([("id", _TEXT), ("p", _TEXT), pa.field("v", _INT, nullable=nullable)])


#: the table's schema, a batch's
CHANGES: dict[str, tuple[pa.Schema, pa.Schema]] = {
    **{name: (_keyed(v=have), _keyed(v=brings)) for name, (have, brings) in _PAIRS.items()},
    "same": (_keyed(v=_INT), _keyed(v=_INT)),
    "column added last": (_keyed(v=_INT), _keyed(v=_INT, w=_TEXT)),
    "column added between": (
        _keyed(v=_INT),
        pa.schema([("id", _TEXT), ("w", _TEXT), ("p", _TEXT), ("v", _INT)]),
    ),
    "required column added": (
        _keyed(v=_INT),
        _keyed(v=_INT).append(pa.field("w", _INT, nullable=False)),
    ),
    "column missing": (_keyed(v=_INT, w=_TEXT), _keyed(w=_TEXT)),
    "last column missing": (_keyed(v=_INT, w=_TEXT), _keyed(v=_INT)),
    "column missing and one added": (_keyed(v=_INT, w=_TEXT), _keyed(v=_INT, x=_TEXT)),
    "columns reordered": (_keyed(v=_INT, w=_TEXT), _keyed(w=_TEXT, v=_INT)),
    "reordered and added": (_keyed(v=_INT, w=_TEXT), _keyed(x=_INT, w=_TEXT, v=_INT)),
    "other letters": (_keyed(v=_INT), _keyed(V=_INT)),
    "required becomes nullable": (_required(nullable=False), _required(nullable=True)),
    "nullable becomes required": (_required(nullable=True), _required(nullable=False)),
    "required missing": (_required(nullable=False), _keyed()),
    "promoted and added": (_keyed(v=_INT), _keyed(v=_LONG, w=_TEXT)),
}


def example(schema: pa.Schema, key: str) -> dict[str, Any]:
    """A row of a schema, with a value everywhere."""
    return {f.name: key if f.name == "id" else _value(f.type) for f in schema}


def _value(kind: pa.DataType) -> Any:
    types = pa.types
    if types.is_struct(kind):
        return {field.name: _value(field.type) for field in kind}
    if types.is_list(kind):
        return [_value(kind.value_type)]
    if types.is_map(kind):
        return {"k": _value(kind.item_type)}
    return pa.scalar("1").cast(kind).as_py() if _is_spelled(kind) else _other(kind)


def _is_spelled(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind)


def _other(kind: pa.DataType) -> Any:
    types = pa.types
    if types.is_decimal(kind):
        return pa.scalar(0, pa.int64()).cast(pa.decimal128(38, kind.scale)).as_py()
    if types.is_binary(kind):
        return b"1"
    return pa.scalar(1, pa.int32() if types.is_date(kind) else pa.int64()).cast(kind).as_py()
