"""The deletions of a delete block: keys, and the event times that some of them have.

An event time is wrapped in a record that names its type. No event time, and the int 0 that the
delete operation writes whatever the column's type, delete in any case.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import to_string_array
from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs.avro_binary import decoding, load_schema_text, parse_schema, require
from reconciler.hudi.codecs.log_blocks import CONTENT_VERSION, LogBlock

_SCHEMA: Final = "HoodieDeleteRecordList.avsc"
_ARRAY: Final = "ArrayWrapper"

#: the short name of a wrapper -> what it holds
_Wrapped = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockDeletions:
    """``ordering``: a column an ordering field; ``is_final``: without one, it deletes anything."""

    keys: Any
    ordering: tuple[Any, ...]
    is_final: NDArray[np.bool_]


def decode_deletions(block: LogBlock, types: Sequence[pa.DataType]) -> BlockDeletions:
    """What a DELETE block deletes; ``types`` are those of the ordering fields.

    Raises FormatError, and UnsupportedError for event times of another shape than the fields.
    """
    records = _read_records(block)
    values = [_unwrap(wrapped, len(types), block.path) for _, wrapped in records]
    with decoding(block.path, f"the delete block at byte {block.start}"):
        keys = to_string_array([key for key, _ in records])
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
        require(version == CONTENT_VERSION, f"content version {version}, not {CONTENT_VERSION}")
        require(length == len(content) - 8, f"{length} bytes promised")
        stream = io.BytesIO(content[8:])
        listed: Any = fastavro.schemaless_reader(stream, _load_schema(), None)
        require(stream.tell() == length, f"{length - stream.tell()} bytes are left over")
        found = []
        for record in listed["deleteRecordList"]:
            key = record["recordKey"]
            require(isinstance(key, str), "a deletion has no key")
            found.append((key, record["orderingVal"]))
        return found


@cache
def _load_schema() -> Any:
    """The schema with the value of each wrapper called as the wrapper.

    So a value says its type; having fastavro say it takes three times as long.
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
    """The event time of a deletion, a value a field; None without one."""
    if wrapped is None or not fields or wrapped.get("IntWrapper") == 0:
        return None
    ((name, value),) = wrapped.items()
    if name != _ARRAY and fields == 1:
        return (value,)
    if name != _ARRAY or value is None or len(value) != fields:
        raise UnsupportedError(
            f"{path}: a deletion has an event time of another shape than the table's {fields} "
            "ordering fields; compact the table with Hudi to read it"
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
