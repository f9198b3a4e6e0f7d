"""Merge the records of a slice's log blocks with each other: one row per key.

Only these records are held in memory; ``slice_reader`` streams the base file past them.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.errors import FormatError
from reconciler.file_slices.merge.avro_decode import Offsets, decode_records
from reconciler.file_slices.merge.avro_schema import parse_avro_schema
from reconciler.file_slices.merge.delete_blocks import decode_deletions
from reconciler.file_slices.merge.merge_counts import MergeCounts
from reconciler.file_slices.merge.ordering import (
    compare_rows,
    find_column,
    find_type,
    pick_last,
    pick_newest,
    to_comparable_columns,
)
from reconciler.file_slices.merge.precombine import pick_precombined
from reconciler.file_slices.merge.record_keys import find_deletions, read_record_keys
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.schema_evolution import evolve_batch, evolve_column
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.log_blocks import CONTENT_VERSION, BlockType, LogBlock, get_block_schema
from reconciler.lazy_dataclass import dataclass

_REMEDY: Final = "the log file is damaged; restore it or roll back the write that made it"
_HEAD_BYTES: Final = 8  # version and count of an Avro block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WantedColumns:
    """``table``: every column of the table; ``columns``: those to return, in order.

    ``missing``: values of columns that files may lack, such as partition columns.
    """

    table: pa.Schema
    columns: pa.Schema
    missing: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogRecords:
    """The merged log records by key.

    ``keys`` are distinct. ``row``: per key its row in ``table``, -1 for a deletion. ``is_final``:
    the deletion wins over any event time of the base file. ``ordering``: comparable columns, one
    row per key.
    """

    keys: Any
    row: Integers
    is_final: Mask
    ordering: tuple[Any, ...]
    table: Any

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _BlockRecords:
    """Records or deletions of a block in written order; ``rows`` is None for a delete block."""

    keys: Any
    is_delete: Mask
    is_final: Mask
    ordering: tuple[Any, ...]
    rows: Any = None


def find_winners(
    records: LogRecords,
    matches: tuple[Integers, Integers],
    batch: Any,
    fields: Mapping[str, pa.DataType],
    path: str,
) -> Mask:
    """Return a mask of the matches whose record wins over the row: always, or by event time.

    ``matches``: rows of the batch and positions of records (``find_keys``). ``fields``: the
    ordering fields, none if records overwrite.
    """
    rows, positions = matches
    if not fields:
        return np.ones(len(rows), np.bool_)
    old = read_ordering_values(batch.take(to_arrow(rows)), fields, path)
    new = [column.take(to_arrow(positions)) for column in records.ordering]
    is_newer = compare_rows(new, to_comparable_columns(old, fields)) >= 0
    return is_newer | records.is_final[positions]


def find_ordering_fields(rules: MergeRules, table: pa.Schema) -> dict[str, pa.DataType]:
    """Return the ordering fields that the table has, with their types.

    A missing field is equal for all records.
    """
    types = ((name, find_type(table, name)) for name in rules.ordering)
    return {name: kind for name, kind in types if kind is not None}


def merge_log_blocks(
    blocks: list[LogBlock],
    rules: MergeRules,
    wanted: WantedColumns,
    counts: MergeCounts | None = None,
) -> LogRecords:
    """Merge the records of blocks in the order they apply; raises FormatError, UnsupportedError.

    The list is emptied, so that a block's bytes are freed once it is decoded. ``counts``: records
    and deletions are added to it.
    """
    fields = find_ordering_fields(rules, wanted.table)
    names = {*wanted.columns.names, *rules.columns}
    parts = []
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        if block.type is BlockType.DELETE:
            parts.append(_read_deletions(block, fields))
            continue
        parts += [
            _read_records(batch, rules, fields, wanted, block)
            for batch in read_data_batches(block, names)
        ]
    if counts is not None:
        counts.records = sum(len(part.keys) for part in parts if part.rows is not None)
        counts.deletions = sum(len(part.keys) for part in parts if part.rows is None)
    return _merge_parts(parts, len(fields), wanted, precombines=rules.precombines)


def read_ordering_values(
    batch: Any, fields: Mapping[str, pa.DataType], where: str
) -> tuple[Any, ...]:
    """Return the event times of a batch's rows with the types of the table."""
    columns = []
    for name, kind in fields.items():
        column = find_column(batch, name)
        column = (
            pa.nulls(len(batch), kind) if column is None else evolve_column(column, kind, where)
        )
        columns.append(column)
    return tuple(columns)


def _read_deletions(block: LogBlock, fields: Mapping[str, pa.DataType]) -> _BlockRecords:
    deletions = decode_deletions(block, tuple(fields.values()))
    return _BlockRecords(
        keys=deletions.keys,
        is_delete=np.ones(len(deletions.keys), np.bool_),
        is_final=deletions.is_final,
        ordering=to_comparable_columns(deletions.ordering, fields),
    )


def _read_records(
    batch: Any,
    rules: MergeRules,
    fields: Mapping[str, pa.DataType],
    wanted: WantedColumns,
    block: LogBlock,
) -> _BlockRecords:
    is_delete = find_deletions(batch, rules.delete_marker)
    ordering = read_ordering_values(batch, fields, block.path)
    is_final = is_delete.copy()
    if ordering:
        is_final &= is_default_ordering(ordering[0]) if len(ordering) == 1 else False
    return _BlockRecords(
        keys=read_record_keys(batch, rules, block.path),
        is_delete=is_delete,
        is_final=is_final,
        ordering=to_comparable_columns(ordering, fields),
        rows=evolve_batch(batch, wanted.columns, block.path, wanted.missing),
    )


def is_default_ordering(column: Any) -> Mask:
    """Return whether each event time means none: null, or 0 for an int."""
    if column.type == pa.int32():
        return to_numpy(pc.equal(column.fill_null(0), 0))
    return to_numpy(column.is_null())


def read_data_batches(block: LogBlock, names: Collection[str]) -> Iterator[Any]:
    """Yield the wanted columns of a data block, with the types they were written in."""
    if block.type is BlockType.PARQUET_DATA:
        yield from _read_parquet(block, names)
        return
    schema = parse_avro_schema(get_block_schema(block), block.path)
    with decoding(block.path, f"the Avro block at byte {block.start}"):
        starts, ends = _find_record_offsets(block.content)
        yield from decode_records(block.content, starts, ends, schema, names)


def _read_parquet(block: LogBlock, names: Collection[str]) -> Iterator[Any]:
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        file = pq.ParquetFile(io.BytesIO(block.content), coerce_int96_timestamp_unit="us")
        columns = [name for name in file.schema_arrow.names if name in names]
        yield from file.iter_batches(columns=columns)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        what = f"the parquet block at byte {block.start} cannot be decoded: {problem}"
        raise FormatError(block.path, what, _REMEDY) from None


def _find_record_offsets(content: bytes) -> tuple[Offsets, Offsets]:
    """Return where the records of an Avro block start and end."""
    version, count = struct.unpack_from(">ii", content)
    is_supported = version == CONTENT_VERSION and 0 <= count <= len(content) // 4
    require(is_supported, f"content version {version} with {count} records is not supported")
    at, end_offsets, read = _HEAD_BYTES, [], struct.Struct(">i").unpack_from
    for _ in range(count):  # the only loop over records: keep it minimal
        at += read(content, at)[0] + 4
        end_offsets.append(at)
    ends = np.array(end_offsets, np.int64)
    starts = np.empty(count, np.int64)
    starts[:1], starts[1:] = _HEAD_BYTES, ends[:-1]
    starts += 4
    require(bool((starts <= ends).all()), "a record has a negative length")
    require(at == len(content), f"its {count} records take {at} bytes of {len(content)}")
    return starts, ends


def _merge_parts(
    parts: list[_BlockRecords], field_count: int, wanted: WantedColumns, *, precombines: bool
) -> LogRecords:
    parts = [part for part in parts if len(part.keys)]
    if not parts:
        none = pa.array([], pa.string())
        row, is_final = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        table = wanted.columns.empty_table()
        return LogRecords(keys=none, row=row, is_final=is_final, ordering=(), table=table)
    encoded = pa.concat_arrays([part.keys for part in parts]).dictionary_encode()
    codes = to_numpy(encoded.indices).astype(np.int64)
    key_count = len(encoded.dictionary)
    is_final = np.concatenate([part.is_final for part in parts])
    ordering = tuple(pa.concat_arrays([p.ordering[at] for p in parts]) for at in range(field_count))
    if not field_count:
        winners, is_final = pick_last(codes, key_count), np.ones(len(codes), np.bool_)
    else:
        is_listed = np.concatenate([np.full(len(p.keys), p.rows is None) for p in parts])
        merge = pick_precombined if precombines else pick_newest
        winners = merge(codes, key_count, ordering, is_final=is_final, is_listed=is_listed)
        is_final = is_listed if precombines else is_final
    row, table = _select_rows(parts, winners, wanted)
    return LogRecords(
        keys=encoded.dictionary,
        row=row,
        is_final=is_final[winners],
        ordering=tuple(column.take(to_arrow(winners)) for column in ordering),
        table=table,
    )


def _select_rows(
    parts: list[_BlockRecords], winners: Integers, wanted: WantedColumns
) -> tuple[Integers, Any]:
    """Return for each key its row among the winning rows, and these rows."""
    total = sum(len(part.keys) for part in parts)
    is_kept = np.zeros(total, np.bool_)
    is_kept[winners] = True
    is_kept &= ~np.concatenate([part.is_delete for part in parts])
    row = np.where(is_kept, np.cumsum(is_kept) - 1, -1)[winners]
    batches, start = [], 0
    for part in parts:
        end = start + len(part.keys)
        chosen = np.flatnonzero(is_kept[start:end])
        if part.rows is not None and len(chosen):
            is_whole = len(chosen) == end - start
            batches.append(part.rows if is_whole else part.rows.take(to_arrow(chosen)))
        start = end
    return row, pa.Table.from_batches(batches, wanted.columns)
