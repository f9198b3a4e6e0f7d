"""Find keys in file slices with log files: those that readers see, or that log files hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_numpy
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.committed_blocks import read_committed_blocks
from reconciler.file_slices.merge.log_records import read_data_batches
from reconciler.file_slices.merge.slice_reader import (
    SliceFiles,
    SliceReadOptions,
    SliceSource,
    read_slice,
)
from reconciler.hudi.codecs.log_blocks import BlockType
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.files.view import find_group_codes
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.reader.slice_selection import pick_slices
from reconciler.state.model import TableState


def list_slice_logs(state: TableState, groups: FileGroupSizes) -> Mapping[int, tuple[str, ...]]:
    """Return the paths of the log files of each group that has some, in merge order.

    The log files are those of the slice that readers see. ``groups``: those of the state.
    """
    picked = pick_slices(state)
    paths = [groups.get_partition(group) for group in range(len(groups))]
    codes = find_group_codes(
        picked.files, zip(paths, groups.file_id.to_pylist(), strict=True)
    ).tolist()
    number_of = {code: number for number, code in enumerate(codes)}
    logs: dict[int, tuple[str, ...]] = {}
    for at in np.flatnonzero(picked.has_logs).tolist():
        rows = picked.logs[picked.ends[at] : picked.ends[at + 1]].tolist()
        group = number_of[int(picked.group[at])]
        names = [str(picked.files.name[row]) for row in rows]
        logs[group] = tuple(make_file_path(paths[group], name) for name in names)
    return logs


def find_merged_keys(
    files: SliceFiles, keys: Any, reading: SliceReadOptions, source: SliceSource
) -> Mask:
    """Return which of the keys readers see in a slice; raises as ``read_slice``."""
    is_seen = np.zeros(len(keys), np.bool_)
    options = replace(reading, columns=(RECORD_KEY,))
    for batch in read_slice(files, options, source):
        found = pc.index_in(batch.column(0).cast(pa.string()), value_set=keys).drop_null()
        is_seen[to_numpy(found)] = True
    return is_seen


def find_logged_keys(
    logs: Sequence[str], keys: Any, reading: SliceReadOptions, source: SliceSource
) -> Integers:
    """Return the ascending indices of the keys that rows of log files have.

    Rows that were deleted since count too. Raises FormatError, UnsupportedError.
    """
    is_logged = np.zeros(len(keys), np.bool_)
    for block in read_committed_blocks(logs, source.read, reading.committed):
        if block.type is BlockType.DELETE:
            continue
        for batch in read_data_batches(block, {RECORD_KEY}):
            found = pc.index_in(batch.column(0).cast(pa.string()), value_set=keys).drop_null()
            is_logged[to_numpy(found)] = True
    logged: Integers = np.flatnonzero(is_logged)
    return logged
