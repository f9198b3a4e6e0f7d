"""Remove the folder of a partition that a clean has emptied, never recursively.

A folder is removed only when nothing but its metafile is left in it, under the table's lock and
while no write is pending. A writer that begins meanwhile may count on the metafile that it saw. So
the timeline is read again afterwards, and the metafiles are put back when a write has begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from reconciler.errors import NotFoundError
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import WRITES
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note
from reconciler.storage.api import Storage
from reconciler.transaction.paths import resolve_folder

METAFILE: Final = ".hoodie_partition_metadata"
_METAFILES: Final = frozenset({METAFILE, f"{METAFILE}.parquet", f"{METAFILE}.orc"})
_LEFTOVER: Final = "it holds something that no listing shows, or that came at the last moment"
#: path and content of each metafile of a folder
Metafiles = tuple[tuple[str, bytes], ...]
_PENDING_WRITE: Final = "a write is pending on the timeline and may be about to use the folder"


@dataclass(frozen=True, slots=True)
class FolderRemovals:
    """The folders that were removed, and a note for each that stays; its rule is the path."""

    gone: tuple[str, ...] = ()
    left: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class _RemovedFolder:
    path: str
    metafiles: Metafiles


def remove_partition_folders(
    storage: Storage,
    paths: Iterable[str],
    reread: Callable[[], Timeline],
    earlier: dict[str, Metafiles],
) -> FolderRemovals:
    """Remove the folders that can be removed; the table's lock is held.

    ``earlier``: the metafiles of folders that an earlier call removed, whose lock vanished after
    it; they are added to. A folder that stays after all gets them back: a writer that held the lock
    meanwhile may have seen them before.
    """
    paths = tuple(sorted(paths))
    if not paths:
        return FolderRemovals()
    removals = _remove_folders(storage, paths, reread, earlier)
    for note in removals.left:
        _put_back(storage, earlier.pop(note.rule, ()))
    return removals


def _remove_folders(
    storage: Storage,
    paths: Iterable[str],
    reread: Callable[[], Timeline],
    earlier: dict[str, Metafiles],
) -> FolderRemovals:
    if reread().pending(WRITES):
        return FolderRemovals(left=tuple(Note(path, _PENDING_WRITE) for path in paths))
    removed: list[_RemovedFolder] = []
    left: list[Note] = []
    for path in paths:
        outcome = _remove_folder(storage, path)
        if isinstance(outcome, Note):
            left.append(outcome)
        else:
            removed.append(outcome)
            if outcome.metafiles:
                earlier[path] = outcome.metafiles
    if earlier and reread().pending(WRITES):
        left += (Note(folder.path, _PENDING_WRITE) for folder in removed)
        removed = []
    return FolderRemovals(tuple(folder.path for folder in removed), tuple(sorted(left)))


def _remove_folder(storage: Storage, path: str) -> _RemovedFolder | Note:
    if not path:
        return Note(path, "the table is not partitioned: its only partition is its own folder")
    folder = resolve_folder(path)
    try:
        entries = storage.list(folder)
    except NotFoundError:
        return _RemovedFolder(path, ())
    others = [entry.name for entry in entries if entry.is_folder or entry.name not in _METAFILES]
    if others:
        return Note(path, f"it still holds {len(others)} others, for example {others[0]}")
    metafiles = _read_metafiles(storage, [f"{folder}/{entry.name}" for entry in entries])
    for metafile, _content in metafiles:
        storage.delete(metafile)
    if not storage.remove_folder(folder):
        _put_back(storage, metafiles)
        return Note(path, _LEFTOVER)
    return _RemovedFolder(path, metafiles)


def _read_metafiles(storage: Storage, paths: Iterable[str]) -> Metafiles:
    """Return the metafiles that exist; Hudi, which may execute our clean too, removes them."""
    found = []
    for path in paths:
        with suppress(NotFoundError):
            found.append((path, storage.read(path)))
    return tuple(found)


def _put_back(storage: Storage, metafiles: Iterable[tuple[str, bytes]]) -> None:
    for path, content in metafiles:
        storage.replace(path, content)
