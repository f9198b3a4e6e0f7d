"""Find and open source files: with Python on a local disk, else with the client of their store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

Options = Mapping[str, Any]
#: prefixes of hidden names, which Spark skips too
HIDDEN: Final = ("_", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """What is at a path: a folder or not, and the files below it, or the file itself.

    On a local disk hidden folders are there instead of their files, with a slash at the end.
    ``path``: where names begin. ``make_url``: returns the URL of a name.
    """

    path: str
    is_folder: bool
    names: list[str]
    make_url: Callable[[str], str]

    def list_below(self) -> list[str]:
        """Return the names as they go on from ``path``."""
        return [name[len(self.path) :] for name in self.names]


def find_files(source: str, find_options: Callable[[str], Options]) -> Callable[[], FoundFiles]:
    """Return a function that looks at a path or URL.

    ``find_options`` returns the options of the client of a store. Raises ValueError and ImportError
    for a store that cannot be opened; the function raises what its client does.
    """
    if _is_local(source):
        # as the client of local disks does
        path = Path(os.path.abspath(os.path.expanduser(source))).as_posix()  # noqa: PTH100, PTH111
        return lambda: _look(path, str)
    import fsspec  # noqa: PLC0415 (slow)
    from fsspec.implementations.local import LocalFileSystem  # noqa: PLC0415

    store, path = fsspec.core.url_to_fs(source, **find_options(source))

    def make_url(name: str) -> str:
        return str(store.unstrip_protocol(name))

    def look() -> FoundFiles:
        if isinstance(store, LocalFileSystem):
            return _look(path, make_url)
        is_folder = store.isdir(path)
        names = store.find(path) if is_folder else [path] if store.exists(path) else []
        return FoundFiles(path=path, is_folder=is_folder, names=sorted(names), make_url=make_url)

    return look


def open_file(name: str, options: Options) -> AbstractContextManager[BinaryIO]:
    """Open a file for reading; raises OSError, or what the client of its store does."""
    if _is_local(name):
        return Path(name).open("rb")
    import fsspec  # noqa: PLC0415 (slow)

    opened: AbstractContextManager[BinaryIO] = fsspec.open(name, "rb", **options)
    return opened


def measure_file(name: str, options: Options) -> int:
    """Return the bytes of a file; raises OSError, or what the client of its store does."""
    if _is_local(name):
        return Path(name).stat().st_size
    import fsspec  # noqa: PLC0415 (slow)

    store, path = fsspec.core.url_to_fs(name, **options)
    return int(store.size(path) or 0)


def _is_local(source: str) -> bool:
    """Return whether a path needs no client: names with a colon may be URLs."""
    return ":" not in source


def _look(path: str, make_url: Callable[[str], str]) -> FoundFiles:
    """Look at a path of a local disk.

    The client of local disks leaves out folders that cannot be read, and their rows with them.
    """
    place = Path(path)
    is_folder = place.is_dir()
    names = sorted(_walk(path)) if is_folder else [path] if place.exists() else []
    return FoundFiles(path=path, is_folder=is_folder, names=names, make_url=make_url)


def _walk(folder: str) -> Iterator[str]:
    """Yield the files below a folder, and hidden folders, which are not looked into.

    Links are not followed.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path
            elif entry.name.startswith(HIDDEN):
                yield f"{entry.path}/"
            else:
                yield from _walk(entry.path)
