"""Compare the file listing of the metadata table with the folders.

Files of unfinished and failed writes are rightly in folders only, and files that a pending clean
removes may be listed only. Source: HoodieTableMetadataUtil.convertMetadataToFilesPartitionRecords.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from reconciler.arrays import Integers, Mask
from reconciler.errors import FormatError
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.hudi.codecs.log_blocks import BlockType, read_blocks
from reconciler.hudi.files.table_files import (
    FileKind,
    TableFiles,
    build_files,
    find_rows,
    make_present_keys,
)
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import (
    load_archived_instants,
    load_metadata_listing,
    read_instant_file,
)
from reconciler.hudi.metadata.table import FILES
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.commit import WriteFootprint
from reconciler.hudi.timeline.instant import COMMITS, WRITES
from reconciler.state.metadata_differences import LOST_FILE, CheckBuilder
from reconciler.verification.checked_table import CheckedTable
from reconciler.verification.lost_files import find_lost_files

_GHOST: Final = "readers that list files by the metadata table open a file that is not there"
_LOST: Final = "readers that list files by the metadata table lose its rows"
_OLD: Final = "no newest read needs it, but time travel does, and no clean removes it"
_SHORT: Final = "readers that list files by the metadata table read it with the wrong length"


def check_listing(table: CheckedTable) -> CheckBuilder:
    """Compare every listed file with the folders. Raises FormatError, UnsupportedError."""
    check = CheckBuilder(metadata_partition=FILES, unit="file")
    state = table.state
    listing = load_metadata_listing(table.storage, table.properties, state.timeline)
    assert listing is not None, "only a table with a file listing is checked"
    listed = build_files(listing.read_folders(), table.properties.base_extension)
    check.compared = len(state.files)
    present = find_rows(state.files, make_present_keys(listed))
    _add_ghosts(check, table, listed, np.flatnonzero(present < 0))
    both = np.flatnonzero(present >= 0)
    is_other = listed.size[both] != state.files.size[present[both]]
    _add_sizes(check, table, listed, (both[is_other], present[both[is_other]]))
    is_listed = np.zeros(len(state.files), np.bool_)
    is_listed[present[both]] = True
    _add_unlisted(check, table, np.flatnonzero(~is_listed))
    return check


def _add_ghosts(
    check: CheckBuilder, table: CheckedTable, listed: TableFiles, rows: Integers
) -> None:
    """Add listed files that are not in their folder, unless a pending clean removes them."""
    removed = {
        (partition, name)
        for clean in table.state.pending_cleans
        for partition, names in clean.files.items()
        for name in names
    }
    is_lost = find_lost_files(table.state, table.properties, listed, rows)
    is_lost[is_lost] = find_committed_files(table, listed, rows[is_lost])
    is_lost[is_lost] = _find_named_files(table, listed, rows[is_lost])
    for row, lost in zip(rows.tolist(), is_lost.tolist(), strict=True):
        partition, name = listed.partitions[listed.partition[row]], listed.name[row].as_py()
        if (partition, name) not in removed:
            check.add(
                "extra",
                partition,
                name,
                recorded=f"a file of {listed.size[row]} bytes",
                actual="no such file",
                effect=LOST_FILE if lost else _GHOST,
            )


def _add_sizes(
    check: CheckBuilder,
    table: CheckedTable,
    listed: TableFiles,
    rows: tuple[Integers, Integers],
) -> None:
    """Add files that are listed with another size; ``rows``: in the listing and in the folders."""
    for listed_row, row in zip(*(part.tolist() for part in rows), strict=True):
        partition, name = table.name_file(row)
        size, actual = int(listed.size[listed_row]), int(table.state.files.size[row])
        if size < actual and _is_uncommitted_log(table, row, size):
            continue
        check.add(
            "wrong",
            partition,
            name,
            recorded=f"{size} bytes",
            actual=f"{actual} bytes",
            effect=_SHORT,
        )


def _add_unlisted(check: CheckBuilder, table: CheckedTable, rows: Integers) -> None:
    """Add files of completed writes that are not listed."""
    files, view = table.state.files, table.state.view
    is_current = view.is_current[view.row_slice] & (files.kind != FileKind.CDC)
    is_committed = find_committed_files(table, files, rows)
    skipped = 0
    for row, is_done in zip(rows.tolist(), is_committed.tolist(), strict=True):
        if not is_done or _is_uncommitted_log(table, row, 0):
            skipped += 1
            continue
        partition, name = table.name_file(row)
        check.add(
            "missing",
            partition,
            name,
            recorded="no such file",
            actual=f"a file of {files.size[row]} bytes",
            effect=_LOST if is_current[row] else _OLD,
        )
    if skipped:
        what = "1 file is" if skipped == 1 else f"{skipped} files are"
        check.not_compared.append(
            f"{what} in folders only, of writes that are unfinished, were undone or are unknown"
        )


def find_committed_files(table: CheckedTable, files: TableFiles, rows: Integers) -> Mask:
    """Return a mask of files whose name has the instant of a completed write.

    Archived writes count; the archive is read only if a file needs it.
    """
    timeline = table.state.timeline
    done = {instant.requested for instant in timeline.commits}
    codes = np.unique(files.instant[rows]).tolist() if len(rows) else []
    start = timeline.start or ""
    older = {files.instants[code] for code in codes if files.instants[code] < start} - done
    older -= {instant.requested for instant in timeline.pending(WRITES)}
    if older:
        archived = load_archived_instants(table.storage, table.properties)
        done |= older & {instant.requested for instant in archived}
    is_done = np.array([instant in done for instant in files.instants], np.bool_)
    mask: Mask = is_done[files.instant[rows]] if len(rows) else np.zeros(0, np.bool_)
    return mask


def _find_named_files(table: CheckedTable, files: TableFiles, rows: Integers) -> Mask:
    """Return a mask of files; False for base files that their completed write does not name.

    A writer that comes back when another has completed its write lists files in the metadata table
    that were never committed. Of log files that is not asked, because a commit may name only one of
    several, and not of archived writes.
    """
    done = table.state.timeline.completed_files(COMMITS)
    completed = {file.instant.requested: file for file in done}
    named: dict[str, frozenset[tuple[str, str]]] = {}
    mask = np.ones(len(rows), np.bool_)
    for nth, row in enumerate(rows.tolist()):
        instant = files.instants[files.instant[row]]
        if files.kind[row] != FileKind.BASE or instant not in completed:
            continue
        if instant not in named:
            content = read_instant_file(table.storage, table.properties, completed[instant])
            named[instant] = WriteFootprint.parse(*content).files
        file = (files.partitions[files.partition[row]], files.name[row].as_py())
        mask[nth] = file in named[instant]
    return mask


def _is_uncommitted_log(table: CheckedTable, row: int, start: int) -> bool:
    """Return whether all blocks of a log file from a byte on are of writes that do not count.

    Log files of version 6 are named after their slice, so only their blocks name the write.
    """
    state = table.state
    if state.table_version >= LOGS_BY_COMPLETION or state.files.kind[row] != FileKind.LOG:
        return False
    path, size = state.files.locate_file(row)
    data = table.storage.read_range(path, start, size - start)
    try:
        instants = list(_list_block_instants(data, path))
    except FormatError:
        return False
    timeline = state.timeline
    committed = CommittedInstants.from_timeline(timeline, table_version=state.table_version)
    return not any(instant in committed for instant in instants)


def _list_block_instants(data: bytes, path: str) -> Iterator[str]:
    """Yield the instants of the data and delete blocks that no later rollback removes."""
    instants: list[str] = []
    for block in read_blocks(data, path):
        if block.type is BlockType.COMMAND:
            instants = []
        elif block.type is not BlockType.CORRUPT:
            instants.append(block.require_instant())
    yield from instants


def has_moved(before: Timeline, after: Timeline) -> bool:
    """Return whether a timeline has changed."""
    return {file.name for file in before.files} != {file.name for file in after.files}
