"""Encode the deletions of a delete block, with the event times that decide whether they win.

A deletion that wins over any event time has the int 0, as Hudi's delete operation writes it. An
event time is wrapped in a record that names its type. The inverse of ``merge.delete_blocks``.
Source: HoodieDeleteBlock, HoodieAvroUtils.wrapValueIntoAvro, and blocks that Hudi 0.15 to 1.2
wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Mask, to_arrow
from reconciler.errors import UnsupportedError
from reconciler.file_slices.log_file.avro_encode import (
    Pieces,
    encode_longs,
    encode_values,
    join_pieces,
)
from reconciler.file_slices.merge.avro_schema import AvroKind, AvroNode
from reconciler.hudi.codecs.log_blocks import CONTENT_VERSION

#: the first table version whose writers keep dates as another class, which no block can hold
_NO_DATES_FROM: Final = 8
#: the first table version whose event times may have several columns
_ARRAYS_FROM: Final = 9
#: branches of the union of wrappers
_INT, _LONG, _DATE, _ARRAY = 2, 3, 8, 12
_SCALE: Final = 15
_DECIMAL: Final = AvroNode(kind=AvroKind.BYTES, logical="decimal", digits=(38, _SCALE))
_BRANCHES: Final[dict[Any, tuple[int, AvroNode]]] = {
    pa.bool_(): (1, AvroNode(kind=AvroKind.BOOLEAN)),
    pa.int32(): (_INT, AvroNode(kind=AvroKind.INT)),
    pa.int64(): (_LONG, AvroNode(kind=AvroKind.LONG)),
    pa.float32(): (4, AvroNode(kind=AvroKind.FLOAT)),
    pa.float64(): (5, AvroNode(kind=AvroKind.DOUBLE)),
    pa.string(): (7, AvroNode(kind=AvroKind.STRING)),
    pa.date32(): (_DATE, AvroNode(kind=AvroKind.INT)),
}
#: values in place of nulls
_FILLERS: Final[dict[AvroKind, Any]] = {
    AvroKind.BOOLEAN: pa.scalar(False),
    AvroKind.INT: pa.scalar(0, pa.int32()),
    AvroKind.LONG: pa.scalar(0),
    AvroKind.FLOAT: pa.scalar(0.0),
    AvroKind.DOUBLE: pa.scalar(0.0),
    AvroKind.STRING: pa.scalar(""),
    AvroKind.BYTES: pa.scalar(0),
}


def encode_deletions(
    keys: Any,
    partition: str,
    *,
    is_final: Mask,
    event_times: Sequence[Any],
    table_version: int,
) -> bytes:
    """Return the content of a DELETE block.

    ``keys``: a string array. ``is_final``: which deletions win over any event time.
    ``event_times``: an array for each ordering column, most significant first; null where a
    deletion is final. Raises UnsupportedError for event times that blocks of this table version
    cannot hold.
    """
    count = len(keys)
    if not count:
        return struct.pack(">ii", CONTENT_VERSION, 1) + b"\0"
    text = AvroNode(kind=AvroKind.STRING)
    path = join_pieces(encode_values(text, pa.array([partition]), "partition"), 1)[0].as_py()
    order = _encode_order(is_final, event_times, table_version)
    pieces = [
        _scalar(b"\x02"),
        *encode_values(text, keys, "record keys"),
        _scalar(b"\x02" + path),
        *order,
    ]
    records = join_pieces(pieces, count)
    listed: list[bytes] = [*encode_longs(np.array([count])).to_pylist(), *records.to_pylist()]
    data = b"".join(listed) + b"\0"
    return struct.pack(">ii", CONTENT_VERSION, len(data)) + data


def _encode_order(is_final: Mask, event_times: Sequence[Any], table_version: int) -> Pieces:
    """Return the pieces of the wrapped event times."""
    always = _scalar(bytes([2 * _INT, 0]))
    if not event_times or is_final.all():
        return [always]
    if len(event_times) > 1 and table_version < _ARRAYS_FROM:
        raise UnsupportedError(
            f"deletions with event times in {len(event_times)} columns cannot be written to the "
            f"log files of table version {table_version}"
        )
    wrapped = [_wrap(column, table_version) for column in event_times]
    pieces = [piece for column in wrapped for piece in column]
    if len(event_times) > 1:
        size = encode_longs(np.array([len(event_times)]))[0].as_py()
        pieces = [_scalar(bytes([2 * _ARRAY, 2]) + size), *pieces, _scalar(b"\0")]
    if not is_final.any():
        return pieces
    return [pc.if_else(to_arrow(is_final), always, join_pieces(pieces, len(is_final)))]


def _wrap(column: Any, table_version: int) -> Pieces:
    """Return the branch and the value of event times."""
    kind, types = column.type, pa.types
    if types.is_timestamp(kind):
        column, kind = column.view(pa.int64()), pa.int64()
    is_unknown = kind not in _BRANCHES or (
        types.is_date32(kind) and table_version >= _NO_DATES_FROM
    )
    if types.is_decimal(kind):
        branch, node, column = 9, _DECIMAL, _rescale(column)
    elif is_unknown:
        raise UnsupportedError(
            f"deletions with event times of type {kind} cannot be written to log files of table "
            f"version {table_version}, as in Hudi; delete these rows with the delete operation"
        )
    else:
        branch, node = _BRANCHES[kind]
    if column.null_count:  # of final deletions, whose values are not used
        column = column.fill_null(_FILLERS[node.kind].cast(column.type))
    return [_scalar(bytes([2 * branch])), *encode_values(node, column, "event times")]


def _rescale(column: Any) -> Any:
    """Return decimals with the digits after the point that blocks keep."""
    try:
        return column.cast(pa.decimal128(38, _SCALE))
    except pa.ArrowInvalid as problem:
        raise UnsupportedError(
            f"deletions with these event times cannot be written to log files: {problem}"
        ) from None


def _scalar(data: bytes) -> Any:
    return pa.scalar(data, pa.large_binary())
