"""Find files that were lost or cut off after their commit, for clusterings, writes and reads.

Without its newest base file a file group shows an older one, whose rows are out of date. Without a
log file it shows rows as they were before a change. A reader with the metadata table fails on such
a group. A reader skips an incomplete log block, as Hudi does, because dying writers leave them. So
it does not read the rows of a committed log file that was cut off later. Once a slice is rewritten,
no program can find the loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import to_arrow, to_numpy
from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.table_files import FileKind, find_sizes
from reconciler.hudi.files.view import find_group_codes
from reconciler.hudi.load import read_instant_file
from reconciler.hudi.timeline.commit import TEXT, CommitProjection
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.groups import group_of_slices
from reconciler.state.log_sizes import read_log_sizes
from reconciler.storage.parallel import run_parallel

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.hudi.timeline.active import TimelineFile
    from reconciler.plans.rewrites import Rewrites
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

_WANTED: Final = CommitProjection(stat_fields=(("path", TEXT),))
#: files that are read at a time, since reading waits for the store
_AT_ONCE: Final = 8

#: what a person can do about a lost file
REMEDY: Final = "restore it from a copy, or roll that write back with Hudi"

#: partition and file id
FileGroup = tuple[str, str]
#: partition and name
FileName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DamagedFiles:
    """The reasons why slices cannot be rewritten, because files of completed writes are damaged.

    ``cut``: log files that were cut off, by partition and name. ``lost``: file groups that have
    lost a file, by partition and file id.
    """

    cut: Mapping[FileName, str] = field(default_factory=dict)
    lost: Mapping[FileGroup, str] = field(default_factory=dict)


def find_damaged_files(
    storage: Storage, properties: TableProperties, state: TableState, groups: Rewrites
) -> DamagedFiles:
    """Return the damaged files of groups; raises as the functions that it calls."""
    cut = find_cut_logs(storage, properties, state, groups)
    return DamagedFiles(cut, explain_lost_files(storage, properties, state, groups))


def find_lost_files(
    storage: Storage, properties: TableProperties, state: TableState, groups: Iterable[FileGroup]
) -> dict[FileGroup, str]:
    """Return a lost file's name for every group that lacks a file of its newest slice.

    Reads the completed writes of the active timeline after the oldest of the slices. Files of
    archived writes are not checked. Raises FormatError, StorageError, and NotFoundError
    if the timeline has changed.
    """
    slices = _find_newest_slices(groups, state)
    first = min(slices.values(), default="")

    def list_written(entry: TimelineFile) -> list[FileName]:
        return _list_written(storage, properties, entry)

    writes = state.timeline.completed_files(COMMITS, first)
    written = chain.from_iterable(run_parallel(list_written, writes, parallelism=_AT_ONCE))
    return _select_lost(state, written, slices)


def find_files_lost_of(
    storage: Storage, properties: TableProperties, state: TableState, write: TimelineFile
) -> dict[FileGroup, str]:
    """Return the name of a file for every live group that lacks one that this write made.

    Files before a newer base file of their group may be gone. Raises as ``find_lost_files``.
    """
    written = _list_written(storage, properties, write)
    parsed = ((folder, BaseName.parse(name) or LogName.parse(name)) for folder, name in written)
    groups = {(folder, name.file_id) for folder, name in parsed if name}
    live = groups - state.replaced.keys()
    return _select_lost(state, written, _find_newest_slices(live, state))


def _list_written(
    storage: Storage, properties: TableProperties, write: TimelineFile
) -> list[FileName]:
    data, path = read_instant_file(storage, properties, write)
    with decoding(path, "the write statistics"):
        record = _WANTED.read(data, path)
        return [
            (folder, str(stat.get("path") or "").rpartition("/")[2])
            for folder, stats in (record.get("partitionToWriteStats") or {}).items()
            for stat in stats or ()
        ]


def _select_lost(
    state: TableState, written: Iterable[FileName], slices: Mapping[FileGroup, str]
) -> dict[FileGroup, str]:
    """Return the written files of these or newer slices that the listing lacks, by group."""
    matched = [
        (group, name)
        for folder, name in written
        if (group := _match_file_group(folder, name, slices))
    ]
    listed = _find_listed(state, {f"{folder}/{name}" for (folder, _), name in matched})
    return {group: name for group, name in matched if f"{group[0]}/{name}" not in listed}


def explain_lost_files(
    storage: Storage, properties: TableProperties, state: TableState, groups: Rewrites
) -> dict[FileGroup, str]:
    """Return a sentence for every file group of some rewrites that has lost a file.

    Raises as ``find_lost_files``.
    """
    folders = groups.partition.to_pylist()
    names = zip(group_of_slices(groups).tolist(), groups.file_id.to_pylist(), strict=True)
    pairs = [(folders[at], name) for at, name in names]
    lost = find_lost_files(storage, properties, state, pairs)
    return {
        group: f"its file {name} is gone, which a completed write made: {REMEDY}"
        for group, name in lost.items()
    }


def find_cut_logs(
    storage: Storage, properties: TableProperties, state: TableState, groups: Rewrites
) -> dict[FileName, str]:
    """Return a sentence for every log file of the groups that was cut off, by partition and name.

    Reads the completed writes of the active timeline that may have written one of them. Log files
    of archived writes are not checked. Raises FormatError, and NotFoundError if the timeline has
    changed.
    """
    sizes = _get_log_sizes(groups, state)
    if not sizes:
        return {}
    return {
        key: f"its log file {key[1]} has {sizes[key]} bytes, and its writer says {least}: it is "
        "damaged, restore it from a copy"
        for key, least in read_log_sizes(storage, properties, state.timeline, sizes).items()
        if sizes[key] < least
    }


def _find_newest_slices(groups: Iterable[FileGroup], state: TableState) -> dict[FileGroup, str]:
    """Return the instant of each file group's newest existing base file, "" if it has none.

    Files of pending writes do not count.
    """
    newest = dict.fromkeys(groups, "")
    files = state.files
    pending = {write.requested for write in state.timeline.writes if not write.is_completed}
    keys = list(newest)
    key_of = dict(zip(find_group_codes(files, keys).tolist(), keys, strict=True))
    rows = np.flatnonzero(np.isin(files.group, list(key_of)) & (files.kind == FileKind.BASE))
    for group, code in zip(files.group[rows].tolist(), files.instant[rows].tolist(), strict=True):
        key, instant = key_of[group], files.instants[code]
        if instant not in pending:
            newest[key] = max(newest[key], instant)
    return newest


def _match_file_group(folder: str, name: str, slices: Mapping[FileGroup, str]) -> FileGroup | None:
    """Return the file group of a file that is of the newest existing slice or newer."""
    parsed = BaseName.parse(name) or LogName.parse(name)
    if parsed is None:
        return None
    group = (folder, parsed.file_id)
    began = slices.get(group)
    return group if began is not None and parsed.instant >= began else None


def _find_listed(state: TableState, paths: set[str]) -> set[str]:
    """Return the paths that the state's listing contains."""
    files = state.files
    names = to_arrow([path.rpartition("/")[2] for path in paths])
    rows = np.flatnonzero(to_numpy(pc.is_in(files.name, value_set=names)))
    folders = [files.partitions[code] for code in files.partition[rows].tolist()]
    kept = files.name.take(rows).to_pylist()
    return {f"{folder}/{name}" for folder, name in zip(folders, kept, strict=True)}


def _get_log_sizes(groups: Rewrites, state: TableState) -> dict[FileName, int]:
    """Return the bytes of the existing log files, by partition and name."""
    counts = to_numpy(pc.list_value_length(groups.logs)).astype(np.int64)
    names = groups.logs.flatten()
    if not len(names):
        return {}
    folders = groups.partition.take(
        to_arrow(np.repeat(group_of_slices(groups), counts))
    ).to_pylist()
    keys = list(zip(folders, names.to_pylist(), strict=True))
    sizes = find_sizes(state.files, to_arrow([f"{folder}/{name}" for folder, name in keys]))
    return {key: size for key, size in zip(keys, sizes.tolist(), strict=True) if size >= 0}
