"""List and remove the data files that an attempt at a write left, by their markers."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.errors import FormatError, NotFoundError
from reconciler.hudi.codecs.log_blocks import BlockType, read_blocks
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import read_instant_file
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.commit import WriteFootprint
from reconciler.hudi.timeline.instant import Instant
from reconciler.hudi.timeline.markers import (
    APPEND,
    is_marker_list,
    marker_folder,
    parse_marker_kind,
)
from reconciler.storage.api import Storage
from reconciler.storage.paths import list_files_below, list_if_exists
from reconciler.transaction.paths import delete_paths, resolve_path


def list_marked_files(storage: Storage, instant: str) -> list[tuple[str, str]]:
    """Return partition and name of every data file that a marker of an instant names, sorted.

    Raises FormatError for markers that cannot be read.
    """
    return sorted({(partition, name) for partition, name, _kind in _list_markers(storage, instant)})


def _list_markers(storage: Storage, instant: str) -> set[tuple[str, str, str]]:
    """Return partition, name and kind of every marker of an instant; "" for a kind not said."""
    root = marker_folder(instant)
    marked: set[tuple[str, str, str]] = set()
    for folder, name in list_files_below(storage, root):
        if not folder and is_marker_list(name):
            for line in _read_lines(storage, f"{root}/{name}"):
                path, kind = parse_marker_kind(line) or (line, "")
                marked.add((*_split_path(path), kind))
        elif (data := parse_marker_kind(name)) is not None:
            marked.add((folder, *data))
    return marked


def list_written_files(
    storage: Storage, instant: str, *, excluding: Collection[tuple[str, str]] = ()
) -> list[tuple[str, str]]:
    """Return the marked data files that an instant wrote, there or not, sorted.

    Nothing else is ever removed by marker. A log file that other writes may share is one if it has
    no block of another instant; it is read, unless it is among ``excluding``. Raises FormatError,
    StorageError.
    """
    return sorted(
        {
            (partition, name)
            for partition, name, kind in _list_markers(storage, instant)
            if (partition, name) not in excluding
            and _is_marked_by(storage, (partition, name), kind, instant)
        }
    )


def find_shared_logs(storage: Storage, instant: str) -> list[str]:
    """Return the paths of log files that hold blocks of an instant and of another, sorted.

    Before version 8, and in stores that can append, a writer of Hudi goes on in the newest log file
    of a slice. Raises FormatError, StorageError.
    """
    shared = []
    for partition, name, kind in sorted(_list_markers(storage, instant)):
        if kind == APPEND and LogName.parse(name) is not None:
            path = resolve_path(partition, name)
            writers = _read_writers(storage, path)
            if writers is not None and instant in writers and len(writers) > 1:
                shared.append(path)
    return shared


def _is_marked_by(storage: Storage, file: tuple[str, str], kind: str, instant: str) -> bool:
    log = LogName.parse(file[1])
    if log is None:
        return is_written_by(file[1], instant)
    if kind == APPEND:
        return _has_only_blocks_of(storage, resolve_path(*file), instant)
    return log.instant == instant


def _has_only_blocks_of(storage: Storage, path: str, instant: str) -> bool:
    """Return True if a log file is there, and no block of it is of another instant."""
    writers = _read_writers(storage, path)
    return writers is not None and writers <= {instant}


def _read_writers(storage: Storage, path: str) -> set[str | None] | None:
    """Return the instants of the blocks of a log file; None if it is not there."""
    try:
        data = storage.read(path)
    except NotFoundError:
        return None
    blocks = read_blocks(data, path)
    return {block.instant for block in blocks if block.type is not BlockType.CORRUPT}


def remove_marked_files(
    storage: Storage, instant: str, keep: Collection[tuple[str, str]] = ()
) -> list[tuple[str, str]]:
    """Delete the marked data files of an instant, and return those that existed.

    ``keep``: files that stay.

    Raises StorageError when one stays.
    """
    return remove_files(storage, list_written_files(storage, instant, excluding=keep))


def list_present_marked_files(
    storage: Storage, instant: str, *, excluding: Collection[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the existing marked data files of an instant, sorted, without ``excluding``.

    Lists their partitions. Raises StorageError, FormatError.
    """
    asked: dict[str, list[str]] = {}
    for partition, name in list_written_files(storage, instant, excluding=excluding):
        asked.setdefault(partition, []).append(name)
    present = []
    for partition, names in asked.items():
        existing = {entry.name for entry in list_if_exists(storage, partition)}
        present += [(partition, name) for name in names if name in existing]
    return present


def remove_files(storage: Storage, files: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Delete files by partition and name, and return those that were there; raises StorageError."""
    listed = list(files)
    deleted = delete_paths(storage, [resolve_path(*file) for file in listed])
    return [file for file, done in zip(listed, deleted, strict=True) if done.existed]


def remove_markers(storage: Storage, instant: str) -> None:
    """Delete an instant's markers and their folders. Raises StorageError."""
    root = marker_folder(instant)
    below = list(list_files_below(storage, root))
    paths = [f"{root}/{folder}/{name}" if folder else f"{root}/{name}" for folder, name in below]
    for _done in delete_paths(storage, paths):
        pass
    for folder in sorted(_walk_folders(storage, root), reverse=True):
        storage.remove_folder(folder)


def read_committed_files(
    storage: Storage, properties: TableProperties, timeline: Timeline, done: Instant
) -> set[tuple[str, str]]:
    """Return the files that a completed write names, by partition and name."""
    return set(_read_touched(storage, properties, timeline, done).files)


def remove_uncommitted_files(
    storage: Storage, properties: TableProperties, timeline: Timeline, done: Instant
) -> None:
    """Delete the data files of a completed write that it does not name, marked or not.

    Lists the partitions that it names. Raises StorageError.
    """
    touched, instant = _read_touched(storage, properties, timeline, done), done.requested
    by_name = properties.table_version >= LOGS_BY_COMPLETION
    written = [
        (partition, entry.name)
        for partition in sorted(touched.groups)
        for entry in list_if_exists(storage, partition)
        if not entry.is_folder
        and (is_written_by(entry.name, instant) or (by_name and _is_log_of(entry.name, instant)))
    ]
    marked = list_written_files(storage, instant, excluding=touched.files)
    remove_files(storage, sorted({*written, *marked} - touched.files))


def _read_touched(
    storage: Storage, properties: TableProperties, timeline: Timeline, done: Instant
) -> WriteFootprint:
    file = next(f for f in timeline.files if f.instant == done)
    return WriteFootprint.parse(*read_instant_file(storage, properties, file))


def is_written_by(name: str, instant: str) -> bool:
    """Return True if an instant wrote a base file."""
    parsed = BaseName.parse(name)
    return parsed is not None and parsed.instant == instant


def _is_log_of(name: str, instant: str) -> bool:
    """Return True if the name of a log file has an instant: from version 8 on, its write's."""
    parsed = LogName.parse(name)
    return parsed is not None and parsed.instant == instant and not parsed.is_cdc


def parse_file_group(name: str) -> str | None:
    """Return the id of a data file's file group, None if the name is not that of a data file."""
    base, log = BaseName.parse(name), LogName.parse(name)
    return base.file_id if base else log.file_id if log else None


def _walk_folders(storage: Storage, root: str) -> Iterator[str]:
    """Yield the root and every folder below it."""
    try:
        entries = storage.list(root)
    except NotFoundError:
        return
    yield root
    for entry in entries:
        if entry.is_folder:
            yield from _walk_folders(storage, f"{root}/{entry.name}")


def _read_lines(storage: Storage, path: str) -> list[str]:
    try:
        return [line for line in storage.read(path).decode().splitlines() if line]
    except UnicodeDecodeError:
        raise FormatError(path, "is not a list of markers") from None


def _split_path(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name
