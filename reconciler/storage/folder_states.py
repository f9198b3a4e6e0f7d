"""Tell whether a folder on a local disk has the entries that an earlier run saw in it.

Creating, deleting and renaming an entry sets the folder's change time, which no program can set to
a time of its choice. Two things could hide a change, and both are ruled out here: a change in the
same tick of the file system's clock as the one before, and a clock that was set back.
"""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from reconciler.errors import NotFoundError
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import FolderListing
from reconciler.storage.file_systems import find_file_systems
from reconciler.storage.local import LocalStorage

#: device, inode, times of modification and change in ns, links, bytes
FolderState = tuple[int, ...]

_SECOND: Final = 1_000_000_000
#: a folder must have been unchanged for so long when it is listed; coarse clocks have 1 s
_SETTLED: Final = 2 * _SECOND
#: file systems of this machine's kernel alone, which set times of folders with nanoseconds
_RELIABLE: Final = frozenset({"ext4", "xfs", "tmpfs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """What the clock shows, and how it relates to the time since boot.

    ``boot``: the run of the kernel. ``offset_ns``: the clock less the time since boot, which
    differs only if the clock was set. ``mounts``: the text of ``/proc/self/mountinfo``.
    """

    boot: str
    now_ns: int
    offset_ns: int
    mounts: str = ""

    def has_run_on(self, boot: str, offset_ns: int) -> bool:
        """Return whether the clock has run on since another reading, without being set.

        A step of less than a second cannot hide a change, because folders are settled for longer.
        """
        return self.boot == boot and abs(self.offset_ns - offset_ns) < _SECOND

    def is_settled(self, state: FolderState) -> bool:
        """Return whether a later change would certainly show in the state of a folder."""
        _device, _inode, modified, changed, *_rest = state
        is_fine = bool(changed % _SECOND)  # else the file system may keep whole seconds only
        return is_fine and self.now_ns - max(modified, changed) >= _SETTLED


def is_reliable(location: str, mounts: str) -> bool:
    """Return whether the file system of a folder keeps times that show every change.

    Mounted object stores and network file systems may not, and are not trusted.
    """
    try:
        device = os.stat(location).st_dev  # noqa: PTH116
    except OSError:
        return False
    found = find_file_systems(device, mounts)
    return bool(found) and found <= _RELIABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitedFolder:
    """A folder of a walk. ``listing``: None if the folder is as it was.

    ``state``: from before it was listed, so that a change meanwhile shows in the next walk.
    ``below``: paths of the folders in it.
    """

    path: str
    state: FolderState
    below: Sequence[str]
    listing: FolderListing | None


#: state and paths of the folders in it, by path
KnownFolders = Mapping[str, tuple[FolderState, Sequence[str]]]


def walk_changed(
    storage: LocalStorage, known: KnownFolders, descend: Callable[[str], bool]
) -> Iterator[VisitedFolder]:
    """Walk as ``Storage.walk`` does, and list only folders that have changed."""
    waiting = [""]
    while waiting:
        path = waiting.pop()
        try:
            visited = _visit(storage, path, known.get(path))
        except NotFoundError:
            if not path:
                raise
            continue  # removed during the walk
        yield visited
        waiting += (child for child in visited.below if descend(child))


def _visit(
    storage: LocalStorage, path: str, known: tuple[FolderState, Sequence[str]] | None
) -> VisitedFolder:
    state = _read_state(storage, path)
    if known is not None and known[0] == state:
        return VisitedFolder(path=path, state=state, below=known[1], listing=None)
    listing, below = storage.scan_folder(path)
    return VisitedFolder(path=path, state=state, below=below, listing=listing)


def _read_state(storage: LocalStorage, path: str) -> FolderState:
    status = storage.stat_folder(path)
    if not modes.S_ISDIR(status.st_mode):
        return ()
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_dev, status.st_ino, *times, status.st_nlink, status.st_size)
