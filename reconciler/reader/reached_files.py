"""Find the base files that queries may read, to measure a clustering by its new files' statistics.

Statistics come from an index, from footers read here, and from folder names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.index.build import IndexRequest, files_to_batch, read_share
from reconciler.index.file_keys import find_rows, join_indexes, take_files
from reconciler.index.footers import find_index_types
from reconciler.index.model import PARTITION, FileIndex, FileKeys
from reconciler.index.predicate_columns import find_query_columns
from reconciler.planners.prediction.file_reads import find_reads
from reconciler.reader.model import PATH, Scan
from reconciler.reader.skipping import add_partition_columns
from reconciler.storage.api import Storage


def find_reached_files(
    storage: Storage,
    scan: Scan,
    files: FileKeys,
    wheres: Sequence[str],
    *,
    zone: str,
    known: FileIndex | None = None,
) -> Mask:
    """Return a mask, predicates by base files: whether a row of the file may match.

    ``files``: distinct files of the scan's partitions. ``known``: statistics of some of them, used
    if they cover all columns of the predicates; footers of the others are read. ``zone``: the
    session's. Every predicate reaches a file whose footer cannot be read.
    """
    if not len(files) or not wheres:
        return np.ones((len(wheres), len(files)), np.bool_)
    index = read_statistics(storage, scan, files, wheres, known)
    reads = find_reads(wheres, index, index.size, schema=scan.table_schema, zone=zone)
    reached: Mask = reads.kept[:, find_rows(index, files)]
    return reached


def read_statistics(
    storage: Storage,
    scan: Scan,
    files: FileKeys,
    wheres: Sequence[str],
    known: FileIndex | None = None,
) -> FileIndex:
    """Return statistics of base files in the columns of predicates.

    Arguments as in ``find_reached_files``.
    """
    folder_columns = set(scan.partition_schema.names)
    named = find_query_columns(wheres, scan.table_schema)
    columns = tuple(name for name in named if name not in folder_columns)
    known_rows = np.full(len(files), -1, np.int64)
    known = _select_columns(known, find_index_types(columns, scan.table_schema))
    if known is not None:
        known_rows = find_rows(known, files)
    request = IndexRequest(columns=columns, schema=scan.table_schema)
    unread = files_to_batch(files).take(to_arrow(np.flatnonzero(known_rows < 0)))
    read = read_share(storage, request, unread, progress=lambda _: None).index
    parts = (
        [read]
        if known is None or (known_rows < 0).all()
        else [take_files(known, known_rows[known_rows >= 0]), read]
    )
    index = join_indexes(parts)
    paths = scan.partitions.column(PATH).combine_chunks()
    row = to_numpy(pc.index_in(index.partition.dictionary, value_set=paths)).astype(np.int32)
    return add_partition_columns(index, scan, row[to_numpy(index.partition.indices)])


def _select_columns(known: FileIndex | None, types: Mapping[str, Any]) -> FileIndex | None:
    """Restrict an index to columns; None if one is missing or has another type."""
    if known is None or not types.keys() <= known.columns.keys():
        return None
    if any(known.columns[name].type != kind for name, kind in types.items()):
        return None
    return replace(known, columns={name: known.columns[name] for name in types})


def make_keys(partition: Sequence[str], name: Sequence[str], size: Integers) -> FileKeys:
    """Return files as keys of an index."""
    paths = pa.array(partition, pa.string()).dictionary_encode().cast(PARTITION)
    return FileKeys(partition=paths, name=pa.array(name, pa.string()), size=size)
