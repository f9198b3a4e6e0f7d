"""Find keys in file slices with log files: those that readers see, or that log files hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.errors import NotFoundError
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.committed_blocks import read_committed_blocks
from reconciler.file_slices.merge.log_records import read_data_batches
from reconciler.file_slices.merge.slice_reader import (
    SliceFiles,
    SliceReadOptions,
    SliceSource,
    read_slice,
)
from reconciler.hudi.codecs.log_blocks import (
    BlockType,
    LogBlock,
    find_blocks,
    read_blocks,
    read_delete_keys,
)
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceLogs:
    """The log files of a slice that readers see, in merge order; ``sizes``: their bytes."""

    paths: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()


def get_current_slice(
    groups: FileGroupSizes, group: int, logs: Mapping[int, SliceLogs]
) -> SliceFiles:
    """Return the files of a group's current slice; ``logs``: of each group that has some."""
    size = int(groups.base[group])
    return SliceFiles(
        base=groups.get_base_path(group) if size >= 0 else None,
        base_size=max(size, 0),
        logs=logs.get(group, SliceLogs()).paths,
    )


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


def find_dead_keys(
    files: SliceFiles, logs: SliceLogs, keys: Any, reading: SliceReadOptions, source: SliceSource
) -> Mask:
    """Return which keys of a slice's base file its log files have deleted.

    Only delete blocks are read; for the keys in them, which may have come back, the slice is
    merged. ``files``: the slice with these log files. Raises as ``read_slice``.
    """
    deleted = pa.array(_read_deleted_keys(logs, source), pa.string())
    suspected = to_numpy(pc.is_in(keys, value_set=deleted))
    if not suspected.any():
        return suspected
    is_dead = suspected.copy()
    is_dead[suspected] = ~find_merged_keys(files, keys.filter(to_arrow(suspected)), reading, source)
    return is_dead


def _read_deleted_keys(logs: SliceLogs, source: SliceSource) -> list[str]:
    """Return the keys in delete blocks, whether they count or not."""
    files = zip(logs.paths, logs.sizes, strict=True)
    return [
        key
        for path, size in files
        for block in _read_delete_blocks(path, size, source)
        for key in read_delete_keys(block)
    ]


def _read_delete_blocks(path: str, size: int, source: SliceSource) -> list[LogBlock]:
    """Return the delete blocks of a log file; a damaged one is read as by readers of the table."""
    spans = [*find_blocks(source.read_range, path, size)]
    blocks: list[LogBlock] = []
    if size == sum(span.length for span in spans):
        for span in spans:
            if span.type is BlockType.DELETE:
                data = source.read_range(path, span.start, span.length)
                blocks += read_blocks(data, path)
    else:
        with suppress(NotFoundError):  # listed by a rollback of Hudi, although it was never written
            blocks += read_blocks(source.read(path), path)
    return [block for block in blocks if block.type is BlockType.DELETE]


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
