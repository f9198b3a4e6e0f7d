"""Find and open source files: with Python on a local disk, else with the client of their store."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any, BinaryIO, Final

from reconciler.lazy_dataclass import dataclass

Options = Mapping[str, Any]
#: prefixes of hidden names, which Spark skips too
HIDDEN: Final = ("_", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """What is at a path: a folder or not, and the files below it, or the file itself.

    ``names``: sorted, and each begins with ``path``. On a local disk hidden folders are there
    instead of their files, with a slash at the end.
    """

    path: str
    is_folder: bool
    names: list[str]

    def list_below(self) -> list[str]:
        """Return the names as they go on from ``path``."""
        return [name[len(self.path) :] for name in self.names]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlace:
    """A path in a store. ``store``: fsspec's client, None for a local disk that needs none."""

    path: str
    store: Any = None

    def find_files(self) -> FoundFiles:
        """Return the files that are there; raises OSError, or what the store's client does."""
        if self.store is None or _is_local_client(self.store):
            return _find_local_files(self.path)
        is_folder = self.store.isdir(self.path)
        if is_folder:
            names = sorted(self.store.find(self.path))
        else:
            names = [self.path] if self.store.exists(self.path) else []
        return FoundFiles(path=self.path, is_folder=is_folder, names=names)

    def make_url(self, name: str) -> str:
        """Return the URL of a file, or its path as it is."""
        return name if self.store is None else str(self.store.unstrip_protocol(name))


def open_place(source: str, find_options: Callable[[str], Options]) -> SourcePlace:
    """Return the place of a path or URL.

    ``find_options`` returns the options of a store's client. Raises ValueError and ImportError for
    a store that cannot be opened, and OSError if the current folder is gone.
    """
    if _needs_no_client(source):
        return SourcePlace(path=_make_absolute(source))
    import fsspec  # noqa: PLC0415 (slow)

    store, path = fsspec.core.url_to_fs(source, **find_options(source))
    return SourcePlace(path=path, store=store)


def open_file(name: str, options: Options) -> AbstractContextManager[BinaryIO]:
    """Open a file for reading; raises OSError, or what the client of its store does."""
    if _needs_no_client(name):
        return open(name, "rb")  # noqa: PTH123
    import fsspec  # noqa: PLC0415 (slow)

    opened: AbstractContextManager[BinaryIO] = fsspec.open(name, "rb", **options)
    return opened


def measure_file(name: str, options: Options) -> int:
    """Return the bytes of a file; raises OSError, or what the client of its store does."""
    if _needs_no_client(name):
        return os.stat(name).st_size  # noqa: PTH116
    import fsspec  # noqa: PLC0415 (slow)

    store, path = fsspec.core.url_to_fs(name, **options)
    return int(store.size(path) or 0)


def _needs_no_client(source: str) -> bool:
    """Return whether a path is surely one of a local disk: names with a colon may be URLs."""
    return ":" not in source


def _make_absolute(source: str) -> str:
    """Return the full path of a source, without ``..`` where its folders are there.

    Behind a link, ``..`` is another folder than its text says, and Spark goes by the text.
    """
    named = os.path.expanduser(source)  # noqa: PTH111
    if not named.startswith("/"):
        below = named[1:].lstrip("/") if named.startswith("./") else named
        named = os.path.join(_get_current_folder(), below)  # noqa: PTH118
    folder, dots, rest = f"{named}/".rpartition("/../")
    if dots:
        with suppress(OSError):  # who looks at the path says what is wrong with it
            parent = os.path.realpath(f"{folder}/..", strict=True)
            named = os.path.join(parent, rest)  # noqa: PTH118
    return named.rstrip("/") or "/"


def _get_current_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError as error:
        raise FileNotFoundError("the current folder does not exist any more") from error


def _is_local_client(store: Any) -> bool:
    from fsspec.implementations.local import LocalFileSystem  # noqa: PLC0415 (slow)

    return isinstance(store, LocalFileSystem)


def _find_local_files(path: str) -> FoundFiles:
    """Find files without fsspec's client of local disks.

    That leaves out folders that it cannot read, and their rows with them.
    """
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return FoundFiles(path=path, is_folder=False, names=[])
    names = sorted(_list_folder(path)) if is_folder else [path]
    return FoundFiles(path=path, is_folder=is_folder, names=names)


def _list_folder(folder: str) -> Iterator[str]:
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
                yield from _list_folder(entry.path)
