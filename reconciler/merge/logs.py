"""The records of a slice's log blocks, merged with each other: one row a key.

Only these are held in memory; the base file streams past them (``slice``).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.errors import FormatError
from reconciler.hudi.arrow import flags, integers, numbers
from reconciler.hudi.logfile import CONTENT_VERSION, Block, BlockType, schema_text
from reconciler.hudi.schemaless import decoding, require
from reconciler.merge.avro_decode import Places, decode_records
from reconciler.merge.avro_schema import read_schema
from reconciler.merge.deletes import deletions
from reconciler.merge.evolve import evolve, evolve_batch
from reconciler.merge.keys import keys_of
from reconciler.merge.marked import is_deletion
from reconciler.merge.ordering import (
    column_at,
    comparable,
    last_of_each,
    newest_of_each,
    type_at,
)
from reconciler.merge.precombine import precombined
from reconciler.merge.rules import MergeRules

_REMEDY: Final = "the log file is damaged; restore it or roll back the write that made it"
_HEAD: Final = 8  # version and count of an Avro block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """``table``: every column of the table, ``columns``: those to give, in order.

    ``missing``: values of columns that files may lack, such as partition columns.
    """

    table: pa.Schema
    columns: pa.Schema
    missing: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogRecords:
    """What the log blocks say of each key.

    ``keys`` are distinct. ``row``: per key its row in ``table``, -1 for a deletion; ``is_final``: a
    deletion whatever the base file's event time; ``ordering``: comparable columns, a row a key.
    """

    keys: Any
    row: NDArray[np.int64]
    is_final: NDArray[np.bool_]
    ordering: tuple[Any, ...]
    table: Any

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Records or deletions in the order they were written; ``rows`` None for a delete block."""

    keys: Any
    is_delete: NDArray[np.bool_]
    is_final: NDArray[np.bool_]
    ordering: tuple[Any, ...]
    rows: Any = None


def ordering_fields(rules: MergeRules, table: pa.Schema) -> dict[str, pa.DataType]:
    """The ordering fields that the table has, and their types: others are the same for all."""
    found = ((name, type_at(table, name)) for name in rules.ordering)
    return {name: kind for name, kind in found if kind is not None}


def merged_logs(blocks: list[Block], rules: MergeRules, wanted: Wanted) -> LogRecords:
    """The records of blocks in the order they apply; raises FormatError, UnsupportedError.

    The list is used up: the bytes of a block go once its columns are there.
    """
    fields = ordering_fields(rules, wanted.table)
    names = {*wanted.columns.names, *rules.columns}
    parts = []
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        if block.type is BlockType.DELETE:
            parts.append(_deleted(block, fields))
            continue
        parts += [_written(batch, rules, fields, wanted, block) for batch in _rows(block, names)]
    return _merged(parts, len(fields), wanted, precombines=rules.precombines)


def ordering_of(batch: Any, fields: Mapping[str, pa.DataType], where: str) -> tuple[Any, ...]:
    """The event times of a batch's rows, comparable."""
    found = []
    for name, kind in fields.items():
        column = column_at(batch, name)
        column = pa.nulls(len(batch), kind) if column is None else evolve(column, kind, where)
        found.append(column)
    return tuple(found)


def _deleted(block: Block, fields: Mapping[str, pa.DataType]) -> _Part:
    found = deletions(block, tuple(fields.values()))
    return _Part(
        keys=found.keys,
        is_delete=np.ones(len(found.keys), np.bool_),
        is_final=found.is_final,
        ordering=_comparable(found.ordering, fields),
    )


def _comparable(columns: Iterable[Any], fields: Mapping[str, pa.DataType]) -> tuple[Any, ...]:
    return tuple(comparable(c, name) for c, name in zip(columns, fields, strict=True))


def _written(
    batch: Any, rules: MergeRules, fields: Mapping[str, pa.DataType], wanted: Wanted, block: Block
) -> _Part:
    is_delete = is_deletion(batch, rules.delete_marker)
    ordering = ordering_of(batch, fields, block.path)
    is_final = is_delete.copy()
    if ordering:
        is_final &= is_default(ordering[0]) if len(ordering) == 1 else False
    return _Part(
        keys=keys_of(batch, rules, block.path),
        is_delete=is_delete,
        is_final=is_final,
        ordering=_comparable(ordering, fields),
        rows=evolve_batch(batch, wanted.columns, block.path, wanted.missing),
    )


def is_default(column: Any) -> NDArray[np.bool_]:
    """Whether each event time is the one that stands for none: null, or 0 of an int."""
    if column.type == pa.int32():
        return flags(pc.equal(column.fill_null(0), 0))
    return flags(column.is_null())


def _rows(block: Block, names: Collection[str]) -> Iterator[Any]:
    """The records of a data block, as far as the names go, with the types they were written in."""
    if block.type is BlockType.PARQUET_DATA:
        yield from _parquet_rows(block, names)
        return
    schema = read_schema(schema_text(block), block.path)
    with decoding(block.path, f"the Avro block at byte {block.start}"):
        starts, ends = _places(block.content)
        yield from decode_records(block.content, starts, ends, schema, names)


def _parquet_rows(block: Block, names: Collection[str]) -> Iterator[Any]:
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        file = pq.ParquetFile(io.BytesIO(block.content), coerce_int96_timestamp_unit="us")
        columns = [name for name in file.schema_arrow.names if name in names]
        yield from file.iter_batches(columns=columns)
    except (pa.ArrowException, OSError) as problem:
        what = f"the parquet block at byte {block.start} cannot be decoded: {problem}"
        raise FormatError(block.path, what, _REMEDY) from None


def _places(content: bytes) -> tuple[Places, Places]:
    """Where the records of an Avro block start and end."""
    version, count = struct.unpack_from(">ii", content)
    known = version == CONTENT_VERSION and 0 <= count <= len(content) // 4
    require(known, f"content version {version} with {count} records")
    at, found, read = _HEAD, [], struct.Struct(">i").unpack_from
    for _ in range(count):  # the one loop over records: as little as can be
        at += read(content, at)[0] + 4
        found.append(at)
    ends = np.array(found, np.int64)
    starts = np.empty(count, np.int64)
    starts[:1], starts[1:] = _HEAD, ends[:-1]
    starts += 4
    require(bool((starts <= ends).all()), "a record has a length below zero")
    require(at == len(content), f"its {count} records take {at} bytes of {len(content)}")
    return starts, ends


def _merged(parts: list[_Part], fields: int, wanted: Wanted, *, precombines: bool) -> LogRecords:
    parts = [part for part in parts if len(part.keys)]
    if not parts:
        none = pa.array([], pa.string())
        return LogRecords(
            keys=none,
            row=np.zeros(0, np.int64),
            is_final=np.zeros(0, np.bool_),
            ordering=(),
            table=wanted.columns.empty_table(),
        )
    encoded = pa.concat_arrays([part.keys for part in parts]).dictionary_encode()
    codes = numbers(encoded.indices).astype(np.int64)
    groups = len(encoded.dictionary)
    is_final = np.concatenate([part.is_final for part in parts])
    ordering = tuple(pa.concat_arrays([p.ordering[at] for p in parts]) for at in range(fields))
    if not fields:
        won, is_final = last_of_each(codes, groups), np.ones(len(codes), np.bool_)
    else:
        is_listed = np.concatenate([np.full(len(p.keys), p.rows is None) for p in parts])
        merge = precombined if precombines else newest_of_each
        won = merge(codes, groups, ordering, is_final=is_final, is_listed=is_listed)
        is_final = is_listed if precombines else is_final
    row, table = _kept(parts, won, wanted)
    return LogRecords(
        keys=encoded.dictionary,
        row=row,
        is_final=is_final[won],
        ordering=tuple(column.take(integers(won)) for column in ordering),
        table=table,
    )


def _kept(
    parts: list[_Part], won: NDArray[np.int64], wanted: Wanted
) -> tuple[NDArray[np.int64], Any]:
    """Per key its row among those that won, and these rows."""
    total = sum(len(part.keys) for part in parts)
    keeps = np.zeros(total, np.bool_)
    keeps[won] = True
    keeps &= ~np.concatenate([part.is_delete for part in parts])
    row = np.where(keeps, np.cumsum(keeps) - 1, -1)[won]
    batches, start = [], 0
    for part in parts:
        end = start + len(part.keys)
        chosen = np.flatnonzero(keeps[start:end])
        if part.rows is not None and len(chosen):
            whole = len(chosen) == end - start
            batches.append(part.rows if whole else part.rows.take(integers(chosen)))
        start = end
    return row, pa.Table.from_batches(batches, wanted.columns)
