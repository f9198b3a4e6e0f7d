"""Find the keys that the log files of a write remove from their file slices, for the record index.

A deletion with an event time may lose against the row that it is for, so the slice is merged with
the new log file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from reconciler.arrays import to_arrow
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions
from reconciler.hudi.codecs.log_blocks import BlockType, read_blocks, read_delete_keys
from reconciler.hudi.files.names import make_file_path
from reconciler.storage.api import Storage
from reconciler.writer.facts import WriteFacts
from reconciler.writer.slice_keys import find_merged_keys, get_current_slice
from reconciler.writer.unpublished_write import UnpublishedWrite


def read_removed_keys(storage: Storage, done: UnpublishedWrite) -> Iterator[Any]:
    """Yield the keys that readers no longer see in the slices that a write appended to.

    Raises as ``read_slice``.
    """
    reading = replace(
        done.facts.settings.reading,
        committed=_include(done.facts.settings.reading.committed, done.instant),
    )
    groups = _number_groups(done)
    for log in done.logs:
        path = make_file_path(log.partition, log.file.name)
        if log.file.deletes:
            group = groups.get((log.partition, log.target.file_id))
            yield _find_removed_keys(storage, done.facts, group, path, reading)


def _find_removed_keys(
    storage: Storage, facts: WriteFacts, group: int | None, path: str, reading: SliceReadOptions
) -> Any:
    deleted = [
        key
        for block in read_blocks(storage.read(path), path)
        if block.type is BlockType.DELETE
        for key in read_delete_keys(block)
    ]
    keys = pa.array(deleted, pa.string())
    files = SliceFiles(logs=(path,))
    if group is not None:
        before = get_current_slice(facts.groups, group, facts.logs)
        files = replace(before, logs=(*before.logs, path))
    return keys.filter(to_arrow(~find_merged_keys(files, keys, reading, storage)))


def _number_groups(done: UnpublishedWrite) -> dict[tuple[str, str], int]:
    """Return the numbers of the file groups in the partitions with new log files."""
    groups = done.facts.groups
    found = {}
    for path in {log.partition for log in done.logs if log.file.deletes}:
        within = groups.partition_range(path)
        for group in range(within.start, within.stop):
            found[path, groups.get_file_id(group)] = group
    return found


def _include(committed: CommittedInstants, instant: str) -> CommittedInstants:
    """Return the instants that count, and one more."""
    if committed.completed is None:
        return committed
    return replace(committed, completed=committed.completed | {instant})
