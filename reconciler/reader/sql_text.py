"""Make Spark SQL expressions that turn rows into text, without loss where possible; pure.

Times are ISO 8601 with microseconds, timestamps with the session's offset; binary is Base64.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_WITH_ZONE: Final = "\"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\""
_WITHOUT_ZONE: Final = "\"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\""
_OPTIONS: Final = (
    f"map('ignoreNullFields', 'false', 'timestampFormat', {_WITH_ZONE}, "
    f"'timestampNTZFormat', {_WITHOUT_ZONE})"
)


def make_json_expression(schema: pa.Schema) -> str:
    """Return an expression for a row as one JSON object with every column, null ones too.

    >>> make_json_expression(pa.schema([pa.field("a.b", pa.int32())])).partition(", map(")[0]
    'to_json(struct(`a.b`)'
    """
    columns = ", ".join(map(quote_column, schema.names))
    return f"to_json(struct({columns}), {_OPTIONS})"


def make_text_expressions(schema: pa.Schema) -> list[str]:
    r"""Return an expression per column for its value as text; null stays null.

    >>> make_text_expressions(pa.schema([pa.field("n", pa.int32()), pa.field("b", pa.binary())]))
    ['cast(`n` as string)', "replace(base64(`b`), '\\r\\n')"]
    """
    return [_make_text_expression(quote_column(field.name), field.type) for field in schema]


def _make_text_expression(name: str, kind: pa.DataType) -> str:
    types = pa.types
    if types.is_binary(kind) or types.is_large_binary(kind):
        return f"replace(base64({name}), '\\r\\n')"  # some releases break long lines
    if types.is_timestamp(kind):
        return f"date_format({name}, {_WITHOUT_ZONE if kind.tz is None else _WITH_ZONE})"
    if types.is_nested(kind):
        return f"to_json({name}, {_OPTIONS})"
    if types.is_decimal(kind):  # a cast writes 0E-18, but 0.000000000000000000 in ANSI mode
        return f"if({name} is null, null, format_string('%s', {name}))"
    return f"cast({name} as string)"


def quote_column(name: str) -> str:
    """Quote a column name so that Spark SQL reads it as that name only.

    >>> quote_column("a.`b")
    '`a.``b`'
    """
    return "`" + name.replace("`", "``") + "`"
