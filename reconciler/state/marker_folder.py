"""Read the markers of an instant: which data files it announced.

Source: MarkerUtils.readTimelineServerBasedMarkersFromFileSystem.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.errors import NotFoundError
from reconciler.hudi.timeline.markers import is_marker_list, marker_folder, parse_marker_kind
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage, StorageEntry
from reconciler.storage.paths import list_if_exists


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerFolder:
    """The markers of one instant.

    ``modified_ms``: when the newest file was written, 0 without any. ``markers``: partition, data
    file and kind of each, sorted. ``damage``: what is wrong with lists that cannot be read whole.
    """

    modified_ms: int = 0
    markers: tuple[tuple[str, str, str], ...] = ()
    damage: tuple[str, ...] = ()


def read_markers(storage: Storage, instant: str) -> MarkerFolder:
    """Read an instant's markers, one per file or in lists of a timeline server.

    A line that is no marker does not hide the others. Raises StorageError.
    """
    newest, markers, damage = 0, set(), []
    root = marker_folder(instant)
    for folder, entry in _walk_files(storage, root):
        newest = max(newest, entry.modified_ms)
        if folder or not is_marker_list(entry.name):
            parsed = parse_marker_kind(entry.name)
            markers |= {(folder, *parsed)} if parsed else set()
            continue
        path = f"{root}/{entry.name}"
        found, problem = _parse_list(storage, path)
        markers |= found
        damage += [problem] if problem else []
    return MarkerFolder(modified_ms=newest, markers=tuple(sorted(markers)), damage=tuple(damage))


def _parse_list(storage: Storage, path: str) -> tuple[set[tuple[str, str, str]], str | None]:
    """Return the markers of a timeline server's list, and what is wrong with it."""
    try:
        text = storage.read(path).decode()
    except NotFoundError:
        return set(), None
    except UnicodeDecodeError:
        return set(), f"{path} is not a list of markers"
    found = set()
    problem = None
    for number, line in enumerate(text.splitlines(), 1):
        parsed = parse_marker_kind(line)
        if parsed is None:
            problem = f"line {number} of {path} is not a marker"
            continue
        folder, _, name = parsed[0].rpartition("/")
        found.add((folder, name, parsed[1]))
    return found, problem


def _walk_files(
    storage: Storage, root: str, folder: str = ""
) -> Iterator[tuple[str, StorageEntry]]:
    """Yield the folder, relative to the root, and the entry of every file below a root."""
    for entry in list_if_exists(storage, f"{root}/{folder}" if folder else root):
        if entry.is_folder:
            yield from _walk_files(
                storage, root, f"{folder}/{entry.name}" if folder else entry.name
            )
        else:
            yield folder, entry
