"""Read the values that partition folder names give to the rows in them; pure.

Hudi takes them from the folder name, not from the file (SparkHoodieTableFileIndex,
HoodieSparkUtils.parsePartitionColumnValues). This module does so if the name gives the exact value.
Elsewhere (a slash in the value, a formatted date, a time) the file's own value counts; Hudi then
returns null, another text, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import encode_distinct, to_arrow
from reconciler.errors import UnsupportedError
from reconciler.hudi.files.names import ENCODED, unescape_folder
from reconciler.hudi.table.properties import TableProperties
from reconciler.lazy_dataclass import dataclass
from reconciler.state.schema import drops_partition_columns

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PathStyle:
    """The naming of partition folders."""

    fields: tuple[str, ...]
    hive: bool | None
    encoded: bool
    dropped: bool

    def is_hive(self, parts: Sequence[pa.Array]) -> bool:
        """Return whether names are ``field=value`` by the table's declaration or by its folders."""
        if self.hive is not None:
            return self.hive
        return all(
            pc.all(pc.starts_with(part, f"{field}=")).as_py() is not False
            for part, field in zip(parts, self.fields, strict=True)
        )


def read_partition_columns(
    paths: Sequence[str], schema: pa.Schema, properties: TableProperties
) -> tuple[pa.Schema, list[pa.Array]]:
    """Return the columns that folder names hold, in the table's order, and a value per folder.

    ``paths``: partitions with rows. Raises UnsupportedError naming the folder if files drop a
    partition column and the folder's name does not give its value.
    """
    style = _PathStyle(
        fields=properties.partition_fields,
        hive=_read_flag(properties.raw, "hoodie.datasource.write.hive_style_partitioning"),
        encoded=_read_flag(properties.raw, ENCODED) or False,
        dropped=drops_partition_columns(properties),
    )
    if not style.fields:
        return pa.schema([]), []
    parts = _split_paths(pa.array(paths, pa.string()), style)
    if parts is None:
        return _handle_unsplit_paths(paths, style)
    formatted = frozenset() if style.dropped else _find_formatted_fields(properties)
    columns: dict[str, pa.Array] = {}
    hive = style.is_hive(parts)
    for name, part in zip(style.fields, parts, strict=True):
        if name not in schema.names or name in formatted:
            continue
        column = _read_column(part, name, schema.field(name).type, hive=hive, encoded=style.encoded)
        if column is not None:
            columns[name] = column
        elif style.dropped:
            kind = schema.field(name).type
            raise UnsupportedError(
                f"the files of table {properties.table_name} do not hold partition column {name}, "
                f"and its folders do not say values of its type {kind}; rewrite it with Hudi"
            )
    names = [name for name in schema.names if name in columns]
    return pa.schema([schema.field(name) for name in names]), [columns[name] for name in names]


def _read_flag(raw: Mapping[str, str], key: str) -> bool | None:
    return raw[key].lower() == "true" if raw.get(key) else None


def _split_paths(paths: pa.Array, style: _PathStyle) -> list[pa.Array] | None:
    """Split paths into one component per field; None if a path has more or fewer."""
    components = pc.split_pattern(paths, "/")
    count = len(style.fields)
    if pc.all(pc.equal(pc.list_value_length(components), count)).as_py() is not False:
        return [pc.list_element(components, at) for at in range(count)] if len(paths) else None
    return [paths] if count == 1 and style.dropped else None


def _handle_unsplit_paths(
    paths: Sequence[str], style: _PathStyle
) -> tuple[pa.Schema, list[pa.Array]]:
    if style.dropped and paths:
        path = next(p for p in paths if p.count("/") + 1 != len(style.fields))
        raise UnsupportedError(
            f"{path}: the files of this partition do not hold the partition columns, and its name "
            f"does not split into values of {', '.join(style.fields)}; rewrite it with Hudi"
        )
    return pa.schema([]), []


def _find_formatted_fields(properties: TableProperties) -> frozenset[str]:
    """Return fields whose folders show a time in another form than their column."""
    named = properties.raw.get("hoodie.table.keygenerator.class", "").rpartition(".")[2]
    kind = (named or properties.raw.get("hoodie.table.keygenerator.type", "")).upper()
    if kind.startswith("TIMESTAMP"):
        return frozenset(properties.partition_fields)
    if not kind.startswith("CUSTOM"):
        return frozenset()
    fields = properties.raw.get("hoodie.table.partition.fields", "").split(",")
    pairs = [field.partition(":")[::2] for field in fields]
    simple = {name.strip() for name, form in pairs if form.strip().upper() == "SIMPLE"}
    return frozenset(properties.partition_fields) - simple


def _read_column(
    part: pa.Array, name: str, kind: pa.DataType, *, hive: bool, encoded: bool
) -> pa.Array | None:
    """Read the values of a path component; None if one is no value of the type."""
    parse = _find_parser(kind)
    if parse is None:
        return None
    codes, texts = encode_distinct(part)
    values: list[Any] = []
    for text in texts.to_pylist():
        if hive and not text.startswith(f"{name}="):
            return None
        value = text.removeprefix(f"{name}=") if hive else text
        if value == NULL_FOLDER:
            values.append(None)
            continue
        try:
            values.append(parse(unescape_folder(value) if encoded else value))
        except (ValueError, InvalidOperation):
            return None
    return pa.array(values, kind).take(to_arrow(codes))


def _find_parser(kind: pa.DataType) -> Callable[[str], Any] | None:
    """Return the parser of the text that Hudi's key generators write for a type."""
    types = pa.types
    if types.is_decimal(kind):
        return lambda text: _parse_decimal(text, kind)
    if types.is_floating(kind):
        return float
    return _PARSERS.get(kind)


def _parse_whole(text: str, bits: int) -> int:
    value = int(text) if _WHOLE.fullmatch(text) else None
    if value is None or not -(1 << bits) <= value < 1 << bits:
        raise ValueError(text)
    return value


def _parse_boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _parse_day(text: str) -> date:
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text)


def _parse_decimal(text: str, kind: Any) -> Decimal:
    value = Decimal(text)
    scaled = value.scaleb(kind.scale)
    if not value.is_finite() or scaled != scaled.to_integral_value():
        raise ValueError(text)
    if abs(scaled) >= Decimal(10) ** kind.precision:
        raise ValueError(text)
    return value.quantize(Decimal(1).scaleb(-kind.scale))


_PARSERS: Final[Mapping[pa.DataType, Callable[[str], Any]]] = {
    pa.string(): str,
    pa.int32(): lambda text: _parse_whole(text, 31),
    pa.int64(): lambda text: _parse_whole(text, 63),
    pa.bool_(): _parse_boolean,
    pa.date32(): _parse_day,
}
