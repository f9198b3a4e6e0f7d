"""Decode the deletions of a delete block: keys, some with an event time.

An event time is wrapped in a record that names its type. A deletion without event time always
deletes. So does the int 0, which the delete operation writes for any column type.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Mask, to_arrow
from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs.avro_binary import decoding, load_schema_text, parse_schema, require
from reconciler.hudi.codecs.log_blocks import CONTENT_VERSION, LogBlock
from reconciler.lazy_dataclass import dataclass

_SCHEMA: Final = "HoodieDeleteRecordList.avsc"
_ARRAY: Final = "ArrayWrapper"

#: the short name of a wrapper -> what it holds
_Wrapped = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockDeletions:
    """Deletions; ``ordering``: a column per ordering field; ``is_final``: has no event time."""

    keys: Any
    ordering: tuple[Any, ...]
    is_final: Mask


def decode_deletions(block: LogBlock, types: Sequence[pa.DataType]) -> BlockDeletions:
    """Return the deletions of a DELETE block; ``types``: those of the ordering fields.

    Raises FormatError, and UnsupportedError for event times that do not match the fields.
    """
    records = _read_records(block)
    values = [_unwrap(wrapped, len(types), block.path) for _, wrapped in records]
    with decoding(block.path, f"the delete block at byte {block.start}"):
        keys = to_arrow([key for key, _ in records])
        columns = tuple(
            _to_column([None if row is None else row[at] for row in values], kind)
            for at, kind in enumerate(types)
        )
    is_final = np.array([row is None for row in values], np.bool_)
    return BlockDeletions(keys=keys, ordering=columns, is_final=is_final)


def _read_records(block: LogBlock) -> list[tuple[str, _Wrapped | None]]:
    import fastavro  # noqa: PLC0415

    content = block.content
    with decoding(block.path, f"the delete block at byte {block.start}"):
        version, length = struct.unpack_from(">ii", content)
        require(
            version == CONTENT_VERSION, f"content version is {version}, expected {CONTENT_VERSION}"
        )
        require(length == len(content) - 8, f"the length field says {length} bytes")
        stream = io.BytesIO(content[8:])
        listed: Any = fastavro.schemaless_reader(stream, _load_schema(), None)
        require(stream.tell() == length, f"{length - stream.tell()} extra bytes follow")
        records = []
        for record in listed["deleteRecordList"]:
            key = record["recordKey"]
            require(isinstance(key, str), "a deletion has no key")
            records.append((key, record["orderingVal"]))
        return records


@cache
def _load_schema() -> Any:
    """Return the delete schema with each wrapper's value named after the wrapper.

    So a decoded value shows its type; fastavro's own way to do so takes three times as long.
    """
    schema = json.loads(load_schema_text(_SCHEMA))
    (records,) = schema["fields"]
    event_time = records["type"]["items"]["fields"][2]
    for wrapper in event_time["type"]:
        if wrapper != "null":
            _rename_wrapper_value(wrapper)
    return parse_schema(json.dumps(schema), "")


def _rename_wrapper_value(wrapper: dict[str, Any]) -> None:
    (field,) = wrapper["fields"]
    if wrapper["name"] == _ARRAY:
        for inner in field["type"][1]["items"]:
            if isinstance(inner, dict):
                _rename_wrapper_value(inner)
    field["name"] = wrapper["name"]


def _unwrap(wrapped: _Wrapped | None, fields: int, path: str) -> tuple[Any, ...] | None:
    """Return the event time of a deletion, one value per field; None if it has none."""
    if wrapped is None or not fields or wrapped.get("IntWrapper") == 0:
        return None
    ((name, value),) = wrapped.items()
    if name != _ARRAY and fields == 1:
        return (value,)
    if name != _ARRAY or value is None or len(value) != fields:
        raise UnsupportedError(
            f"{path}: a deletion's event time does not match the table's {fields} ordering fields; "
            "compact the table with Hudi to read it"
        )
    return tuple(None if inner is None else next(iter(inner.values())) for inner in value)


def _to_column(values: list[Any], kind: pa.DataType) -> Any:
    types = pa.types
    if types.is_date32(kind):
        return pa.array(values, pa.int32()).view(kind)
    if types.is_timestamp(kind):
        return pa.array(values, pa.int64()).view(kind)
    if types.is_decimal(kind):
        return pa.array(values).cast(kind)
    return pa.array(values, kind)
