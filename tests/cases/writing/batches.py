"""Batches with rows of one key that real Hudi was given: which row of each is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

_NAN, _INF = float("nan"), float("inf")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """``rows``: key, partition, then the ``more`` columns; the number of a row is its ``n``.

    ``mode``: event, commit, or empty for what Hudi does by itself.
    """

    more: pa.Schema
    rows: list[tuple[Any, ...]]
    ordering: tuple[str, ...] = ("ts",)
    mode: str = "event"
    is_global: bool = False
    operation: str = "upsert"
    options: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> pa.Table:
        kinds = pa.schema([("id", pa.string()), ("p", pa.string()), *self.more])
        columns = [
            pa.array([row[at] for row in self.rows], kind.type) for at, kind in enumerate(kinds)
        ]
        numbers = pa.array(range(len(self.rows)), pa.int64())
        return pa.table([*columns, numbers], names=[*kinds.names, "n"])


def _of(kind: pa.DataType, *values: Any, **more: Any) -> Batch:
    """Every two values meet under a key of their own, in both orders."""
    pairs = [(a, b) for a in range(len(values)) for b in range(len(values)) if a != b]
    rows = [(f"{a}-{b}", "x", values[end]) for a, b in pairs for end in (a, b)]
    return Batch(more=pa.schema([("ts", kind)]), rows=rows, **more)


_TS = pa.schema([("ts", pa.int64())])
_TIES = [("a", "x", 1), ("a", "x", 2), ("a", "x", 2), ("b", "x", 5), ("b", "x", 5), ("c", "x", 3),
         ("c", "x", 1), ("d", "x", 3), ("d", "x", 1), ("d", "x", 3), ("d", "x", 2)]  # fmt: skip
_PLACES = [("a", "x", 1), ("a", "y", 2), ("b", "y", 2), ("b", "x", 1), ("c", "x", 1),
           ("c", "y", 1), ("c", "x", 1), ("d", "x", 1)]  # fmt: skip
_DELETED = pa.schema([("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
_DELETES = [("a", "x", 1, False), ("a", "x", 2, True), ("b", "x", 2, True), ("b", "x", 1, False),
            ("c", "x", 1, True), ("c", "x", 1, False), ("d", "x", 1, False), ("d", "x", 1, True),
            ("e", "x", 1, None), ("f", "x", 1, True), ("g", "x", 1, False)]  # fmt: skip
_MARKED = pa.schema([("ts", pa.int64()), ("op", pa.string())])
_MARKS = [(*row[:3], {True: "D", False: "I", None: None}[row[3]]) for row in _DELETES]
_MARKER = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
_TWO = pa.schema([("ts", pa.int64()), ("u", pa.string())])

BATCHES: dict[str, Batch] = {
    "ties": Batch(more=_TS, rows=_TIES),
    "ties by commit time": Batch(more=_TS, rows=_TIES, mode="commit"),
    "ties without ordering": Batch(more=_TS, rows=_TIES, mode="commit", ordering=()),
    "ties by default": Batch(more=_TS, rows=_TIES, mode=""),
    "ties by default without ordering": Batch(more=_TS, rows=_TIES, mode="", ordering=()),
    "insert": Batch(more=_TS, rows=_TIES, operation="insert"),
    "insert that combines": Batch(
        more=_TS, rows=_TIES, operation="insert", options={"hoodie.combine.before.insert": "true"}
    ),
    "insert that combines by commit time": Batch(
        more=_TS, rows=_TIES, operation="insert", mode="commit", ordering=(),
        options={"hoodie.combine.before.insert": "true"},
    ),
    "partitions": Batch(more=_TS, rows=_PLACES),
    "partitions of a global index": Batch(more=_TS, rows=_PLACES, is_global=True),
    "longs": _of(pa.int64(), 1, -1, 0, 2**53 + 1, 2**53),
    "longs or null": _of(pa.int64(), 1, -1, 0, None),
    "ints or null": _of(pa.int32(), 1, -1, 0, None),
    "texts or null": _of(pa.string(), "", "a", None),
    "a null alone": Batch(more=_TS, rows=[("a", "x", None), ("b", "x", 1)]),
    "a null alone by commit time": Batch(
        more=_TS, rows=[("a", "x", None), ("b", "x", 1)], mode="commit"
    ),
    "nulls by commit time": _of(pa.int64(), 1, None, mode="commit"),
    "doubles": _of(pa.float64(), 0.0, -0.0, _NAN, _INF, -_INF, 1.5),
    "floats": _of(pa.float32(), 0.0, -0.0, _NAN, 1.5),
    "texts": _of(pa.string(), "a", "B", "", "é", "ｱ", "😀"),
    "decimals": _of(pa.decimal128(10, 2), *(Decimal(n) / 4 for n in (-2, -1, 0, 1, 5))),
    "dates": _of(pa.date32(), date(1969, 1, 1), date(1970, 1, 1), date(2024, 1, 1)),
    "moments": _of(pa.timestamp("us", "UTC"), -1, 0, 1, 1_700_000_000_000_001),
    "flags": _of(pa.bool_(), True, False),
    "two columns": Batch(
        more=_TWO, ordering=("ts", "u"),
        rows=[("a", "x", 1, "a"), ("a", "x", 1, "b"), ("b", "x", 1, "b"), ("b", "x", 1, "a"),
              ("c", "x", 2, "a"), ("c", "x", 1, "b"), ("d", "x", 1, "a"), ("d", "x", 1, "a")],
    ),
    "deletes": Batch(more=_DELETED, rows=_DELETES),
    "deletes by commit time": Batch(more=_DELETED, rows=_DELETES, mode="commit", ordering=()),
    "deletes with a marker": Batch(more=_MARKED, rows=_MARKS, options=_MARKER),
    "deletes with a marker by commit time": Batch(
        more=_MARKED, rows=_MARKS, mode="commit", ordering=(), options=_MARKER
    ),
}  # fmt: skip
