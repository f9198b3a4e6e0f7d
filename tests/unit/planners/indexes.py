"""What is known of the index of a table in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow
from reconciler.index.codec import Provenance
from reconciler.index.file_keys import find_rows, sort_index
from reconciler.index.merge import find_missing
from reconciler.index.model import ColumnStats, FileIndex
from reconciler.index.versions import read_versions
from reconciler.state.current_files import find_newest_bases
from reconciler.state.index_state import IndexState
from reconciler.state.index_state_reader import build_file_keys

TYPES = {"a": pa.int64(), "b": pa.string(), "c": pa.float64()}


def stats(kind, files, *, known=True):
    found = ColumnStats.unknown(kind, files)
    return replace(found, values=np.full(files, 1 if known else -1, np.int64))


def index_of_names(names, columns, unread=()):
    """An index of files of partition ``a`` with 10 bytes each; ``unread`` have no footer."""
    count = len(names)
    index = FileIndex(
        partition=to_arrow(["a"] * count).dictionary_encode(),
        name=to_arrow(names),
        size=np.full(count, 10, np.int64),
        rows=np.array([-1 if name in unread else 5 for name in names], np.int64),
        columns={name: stats(kind, count) for name, kind in columns.items()},
    )
    return sort_index(index)


def known(state, *, wanted=("a", "b"), index=None, damaged=(), problems=(), **more):
    """The state with what is known of its index, as ``read_index_state`` would say."""
    types = {column: TYPES[column] for column in wanted}
    files = find_newest_bases(state.view)
    keys = build_file_keys(state, files)
    row = np.full(len(files), -1) if index is None else find_rows(index, keys)
    lacking = find_missing(index, keys, types) if types else np.zeros(0, np.int64)
    unread = row[lacking] >= 0
    if index is not None:
        unread &= index.rows[row[lacking]] < 0
        unread &= all(column in index.columns for column in types)
    versions = read_versions(
        [] if index is None else [("20240101000000000_0", [("index-9.parquet", 9)])]
    )
    said = None
    if index is not None:
        said = Provenance(
            table="t",
            instant="20240101000000000",
            tool="x",
            columns={name: str(one.type) for name, one in index.columns.items()},
        )
    found = IndexState(
        versions=versions,
        version=versions.last,
        index=index,
        provenance=said,
        damaged=damaged,
        schema=pa.schema(list(TYPES.items())),
        wanted=types,
        problems=dict(problems),
        supplied=frozenset(),
        files=files,
        missing=files[lacking],
        unindexed=files[lacking[row[lacking] < 0]],
        unreadable=files[lacking[unread]],
        hudi_columns=None,
    )
    return replace(state, index_state=replace(found, **more))
