"""List a store of flat objects, in parallel by prefixes where a table has many folders.

A client lists one page after the other. With several prefixes, several listings run at a time.
Pages are columns, and each is dropped when its names lie in their folders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, takewhile
from threading import Event
from typing import Final

from reconciler.storage.api import FolderListing
from reconciler.storage.paths import is_hidden

#: listings at a time
_AT_ONCE: Final = 4
#: fewer folders than this for each prefix are not worth a request
_FOLDERS_OF_A_PREFIX: Final = 250
#: so many prefixes are used at most, unless there are very many folders
_MOST_PREFIXES: Final = 16
#: from so many folders for each prefix on, a table gets more prefixes, because of their memory
_MANY_FOLDERS: Final = 1024

#: names below the root, and sizes, of some objects
Page = tuple[Sequence[str], Sequence[int]]
#: prefix -> pages of the objects whose names begin with it
ListObjects = Callable[[str], Iterable[Page]]
_Folders = dict[str, tuple[list[str], list[int]]]


def walk_listing(pages: Iterable[Page], descend: Callable[[str], bool]) -> Iterator[FolderListing]:
    """Yield the folders of one listing, each after those above it; none if it has no object."""
    folders = _group_by_folder(pages)
    if folders:
        yield from _select_folders(folders, descend, {"": True}, {"": ([], [])})


def walk_prefixes(
    list_objects: ListObjects,
    top: Page,
    prefixes: Sequence[str],
    descend: Callable[[str], bool],
) -> Iterator[FolderListing]:
    """Yield the folders of the listings of all prefixes; ``top``: the root's own files.

    The root comes first, and each folder after those above it.
    """
    names, sizes = _group_by_folder([top]).get("", ([], []))
    yield FolderListing("", names, sizes)
    entered = {"": True}
    for folders in _list_in_order(list_objects, prefixes):
        folders.pop("", None)  # files of the root whose names begin like folders
        yield from _select_folders(folders, descend, entered, {})


def choose_prefixes(names: Sequence[str]) -> list[str]:
    """Return prefixes that cover each name of a folder once; one of them is no reason to split.

    >>> choose_prefixes([f"dt={n:03d}" for n in range(999)])
    ['']
    >>> choose_prefixes([f"p{n % 2}{n}" for n in range(600)])
    ['p0', 'p1']
    """
    wanted = max(_MOST_PREFIXES, len(names) // _MANY_FOLDERS)
    wanted = min(wanted, len(names) // _FOLDERS_OF_A_PREFIX)
    groups = {"": [f"{name}/" for name in names]}
    while len(groups) < wanted:
        largest = max(groups, key=lambda prefix: len(groups[prefix]))
        parts = _split(groups[largest])
        if not 1 < len(parts) <= wanted - len(groups) + 1:
            break
        del groups[largest]
        groups |= parts
    return sorted(groups)


def _split(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names by their common prefix and one character more."""
    names = list(names)
    first, last = min(names), max(names)
    same = (mine == other for mine, other in zip(first, last, strict=False))
    end = sum(takewhile(bool, same)) + 1
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(name[:end], []).append(name)
    return parts


def _list_in_order(list_objects: ListObjects, prefixes: Sequence[str]) -> Iterator[_Folders]:
    """Yield the folders of each prefix; few listings are under way or wait to be taken.

    Where this ends early, by an error or an interruption, listings under way end at their page.
    """
    is_ended = Event()

    def work(prefix: str) -> _Folders:
        return _group_by_folder(takewhile(lambda _: not is_ended.is_set(), list_objects(prefix)))

    rest = iter(prefixes)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = deque(pool.submit(work, prefix) for prefix in islice(rest, _AT_ONCE))
        try:
            while waiting:
                folders = waiting.popleft().result()
                waiting.extend(pool.submit(work, prefix) for prefix in islice(rest, 1))
                yield folders
        finally:
            is_ended.set()
            for one in waiting:
                one.cancel()


def _group_by_folder(pages: Iterable[Page]) -> _Folders:
    """Return names and sizes by folder, without folder markers."""
    folders: _Folders = {}
    for paths, lengths in pages:
        for full, size in zip(paths, lengths, strict=True):
            path, _, name = full.rpartition("/")
            names, sizes = folders.get(path) or folders.setdefault(path, ([], []))
            if name and not is_hidden(name):
                names.append(name)
                sizes.append(size)
    return folders


def _select_folders(
    folders: _Folders,
    descend: Callable[[str], bool],
    entered: dict[str, bool],
    selected: _Folders,
) -> Iterator[FolderListing]:
    """Yield the folders that are entered, with those above them, which may hold no file."""
    for path, content in folders.items():
        if _is_entered(path, descend, entered, selected):
            selected[path] = content
    for path, (names, sizes) in selected.items():
        yield FolderListing(path, names, sizes)


def _is_entered(
    path: str, descend: Callable[[str], bool], entered: dict[str, bool], selected: _Folders
) -> bool:
    """Return whether a walk enters this folder; asks about each ancestor once, from the top."""
    is_entered = entered.get(path)
    if is_entered is None:
        above = path.rpartition("/")[0]
        is_entered = _is_entered(above, descend, entered, selected) and descend(path)
        entered[path] = is_entered
        if is_entered:
            selected[path] = ([], [])
    return is_entered
