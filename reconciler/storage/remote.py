"""A table in any store that fsspec reaches: s3, gs, abfs, hdfs, memory.

Object stores are listed flat, in one pass, without a cache, because a stale listing loses data.
Requests to S3, GCS and Azure are repeated below the client, by one policy (`request_budget`).
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import cache
from typing import Any, Final, Literal

from reconciler.errors import (
    NotFoundError,
    PermissionDeniedError,
    StorageError,
    UnsupportedError,
)
from reconciler.storage.api import (
    DeletionResult,
    FolderListing,
    Storage,
    StorageEntry,
    StorageRef,
)
from reconciler.storage.conditional_replace import VersionedObjects
from reconciler.storage.exclusive_creation import ExclusiveObjects
from reconciler.storage.flat_listing import Page, choose_prefixes, walk_listing, walk_prefixes
from reconciler.storage.paths import (
    check_path,
    is_hidden,
    join_path,
    walk_folders,
)
from reconciler.storage.redaction import redact_secrets
from reconciler.storage.remote_entries import build_entries, build_entry
from reconciler.storage.remote_errors import names_no_bucket, translate_errors
from reconciler.storage.request_budget import share_budget, split_policy
from reconciler.storage.s3_deletion import KeysRefusedError, NoBulkDeleteError, delete_keys
from reconciler.storage.s3_listing import list_pages
from reconciler.storage.s3_requests import repeat_broken_reads
from reconciler.storage.silent_endpoints import Answers, note_answers

Family = Literal["s3", "gs", "azure", "memory", "other"]

FAMILIES: Final[Mapping[str, Family]] = {
    "s3": "s3", "gs": "gs", "gcs": "gs", "memory": "memory",
    "abfs": "azure", "abfss": "azure", "az": "azure", "adl": "azure",
}  # fmt: skip
CLIENTS: Final[Mapping[Family, str]] = {"s3": "s3fs", "gs": "gcsfs", "azure": "adlfs"}
#: most files that one request deletes
BULK_SIZES: Final[Mapping[Family, int]] = {"s3": 1000, "gs": 100}
#: families whose clients list objects by a prefix that is no folder
_LISTED_BY_PREFIX: Final[frozenset[Family]] = frozenset({"s3"})
_THREADS: Final = 16
#: s3fs takes what follows for the version of an object, and the object for another
_VERSION: Final = "?versionId="


class RemoteStorage(ExclusiveObjects, VersionedObjects):
    """The objects below a URL, through one fsspec filesystem."""

    def __init__(
        self,
        ref: StorageRef,
        filesystem: Any,
        root: str,
        reopen: Callable[[StorageRef], Storage],
        on_denial: Callable[[], None] = lambda: None,
    ) -> None:
        """Wrap a filesystem; ``root``: the location in its spelling, without trailing slash.

        ``reopen`` opens the same storage in another process. ``on_denial`` is called when the store
        does not let the caller in.
        """
        self._ref, self._fs, self._root, self._reopen = ref, filesystem, root, reopen
        self._family: Family = FAMILIES.get(ref.location.partition("://")[0], "other")
        self._client_package = CLIENTS.get(self._family, "the client")
        self._creates_exclusively = self._family == "memory" or ref.creates_exclusively
        self._policy, _ = split_policy(dict(ref.options))
        self._answers, self._on_denial = Answers(), on_denial

    def __reduce__(self) -> tuple[Callable[[StorageRef], Storage], tuple[StorageRef]]:
        return self._reopen, (self.ref,)

    def __repr__(self) -> str:
        return f"RemoteStorage({self.location!r})"

    @property
    def location(self) -> str:
        return self._ref.location

    @property
    def ref(self) -> StorageRef:
        return replace(self._ref, creates_exclusively=self._creates_exclusively)

    def list(self, folder: str) -> builtins.list[StorageEntry]:
        full = self._resolve(folder)
        with self._translate_errors(folder):
            children = self._list_children(full)
        entries = build_entries(children, full)
        if not children and not folder:
            raise NotFoundError(self.location, "does not exist")
        return sorted((e for e in entries if not is_hidden(e.name)), key=lambda entry: entry.name)

    def walk(self, descend: Callable[[str], bool]) -> Iterator[FolderListing]:
        if self._family == "other":
            return walk_folders(self._scan_folder, descend)
        return self._walk_flat(descend)

    def _walk_flat(self, descend: Callable[[str], bool]) -> Iterator[FolderListing]:
        if self._family in _LISTED_BY_PREFIX:
            descend = cache(descend)  # a folder of the root is asked about here and by the walk
            with self._translate_errors(""):
                top = self._list_children(self._root)
            entries = build_entries(top, self._root)
            folders = [entry.name for entry in entries if entry.is_folder]
            prefixes = choose_prefixes([name for name in folders if descend(name)])
            if len(prefixes) > 1:
                files = [entry for entry in entries if not entry.is_folder]
                page = [entry.name for entry in files], [entry.size for entry in files]
                yield from walk_prefixes(self._list_pages, page, prefixes, descend)
                return
        is_missing = True
        for folder in walk_listing(self._list_pages(), descend):
            is_missing = False
            yield folder
        if is_missing:
            raise NotFoundError(self.location, "does not exist (no object has this prefix)")

    def _list_pages(self, prefix: str = "") -> Iterator[Page]:
        """Yield names below the root, and sizes, of objects whose names begin with a prefix."""
        self._fs.invalidate_cache()
        if self._family in _LISTED_BY_PREFIX:
            bucket, key = self._fs.split_path(self._root)[:2]
            pages = list_pages(self._fs, bucket, f"{key}/" if key else "", prefix)
            while (page := self._take_page(pages)) is not None:
                yield page
            return
        with self._translate_errors(""):
            found: dict[str, dict[str, Any]] = self._fs.find(self._root, detail=True)
        start = len(self._root) + 1
        yield (
            [name[start:] for name in found],
            [int(info.get("size") or 0) for info in found.values()],
        )

    def _take_page(self, pages: Iterator[Page]) -> Page | None:
        """Return the next page, None at the end; pages may be taken in different threads."""
        with self._translate_errors(""):
            return next(pages, None)

    def _scan_folder(self, path: str) -> tuple[FolderListing, Sequence[str]]:
        entries = self.list(path)
        files = [entry for entry in entries if not entry.is_folder]
        below = [f"{path}/{e.name}" if path else e.name for e in entries if e.is_folder]
        return FolderListing(path, [e.name for e in files], [e.size for e in files]), below

    def read(self, path: str) -> bytes:
        full = self._resolve(path)
        # s3fs asks for the size before it reads an object, unless it reads it in one request
        options = {"max_concurrency": 1} if self._family == "s3" else {}
        with self._translate_errors(path):
            return repeat_broken_reads(
                lambda: bytes(self._fs.cat_file(full, **options)), self._policy, path
            )

    def read_range(self, path: str, start: int, length: int) -> bytes:
        full = self._resolve(path)
        with self._translate_errors(path):
            if start < 0:
                self._fs.invalidate_cache()
                start = max(0, int(self._fs.info(full)["size"]) + start)
            end = start + length
            return repeat_broken_reads(
                lambda: bytes(self._fs.cat_file(full, start=start, end=end)), self._policy, path
            )

    def stat(self, path: str) -> StorageEntry | None:
        full = self._resolve(path)
        try:
            with self._translate_errors(path):
                self._fs.invalidate_cache()
                return build_entry(self._fs.info(full) | {"name": path})
        except NotFoundError:
            return None

    def replace(self, path: str, data: bytes) -> None:
        self._require_writes(path)
        with self._translate_errors(path):
            self._fs.pipe_file(self._resolve(path), data)

    def delete(self, path: str) -> bool:
        entry = self.stat(path)
        if entry is None:
            return False
        if entry.is_folder:
            raise StorageError(join_path(self.location, path), "is a folder")
        try:
            with self._translate_errors(path):
                self._fs.rm_file(self._resolve(path))
        except NotFoundError:
            return False
        return True

    def delete_many(self, paths: Sequence[str]) -> builtins.list[DeletionResult]:
        if self._family == "s3":
            return self._delete_in_bulk(paths)
        problems: dict[str, str] = {}
        present = self._find_existing(paths, problems)
        targets = [path for path in dict.fromkeys(paths) if path in present]
        if self._family == "gs":
            problems |= self._delete_on_google(targets)
        else:
            problems |= self._delete_singly(targets)
        return [
            DeletionResult(
                path, existed=path in present and path not in problems, error=problems.get(path)
            )
            for path in paths
        ]

    def remove_folder(self, path: str) -> bool:
        full = self._resolve(path)
        if not path:
            raise StorageError(self.location, "is the table's own folder, which is never removed")
        with self._translate_errors(path):
            if any(info["name"].rstrip("/") != full for info in self._list_children(full)):
                return False
            with contextlib.suppress(FileNotFoundError):
                if self._family == "memory":
                    self._fs.rmdir(full)
                elif self._family == "azure":
                    self._fs.rm_file(full)  # the service refuses a non-empty folder
        return self._family != "other" or self.stat(path) is None

    def _resolve(self, path: str) -> str:
        full = join_path(self._root, check_path(path))
        if self._family == "s3" and _VERSION in full:
            message = f"contains {_VERSION}, where S3's client ends the name; rename it"
            raise StorageError(join_path(self.location, path), message)
        return full

    def _list_children(self, full: str) -> builtins.list[dict[str, Any]]:
        """Return a folder's direct children, uncached; empty if the store has none."""
        self._fs.invalidate_cache()
        try:
            children: builtins.list[dict[str, Any]] = self._fs.ls(full, detail=True)
        except FileNotFoundError as error:
            if names_no_bucket(error):
                raise
            return []
        return children

    def _require_writes(self, path: str) -> None:
        if self._family == "other":
            raise UnsupportedError(
                f"{join_path(self.location, path)}: cannot create files atomically in this kind of "
                "store, which is supported for reading only"
            )

    def _find_existing(self, paths: Sequence[str], problems: dict[str, str]) -> set[str]:
        """Return which of the paths exist, with one listing per folder."""
        folders: dict[str, builtins.list[str]] = {}
        for path in paths:
            folders.setdefault(path.rpartition("/")[0], []).append(path)
        present: set[str] = set()
        for folder, wanted in folders.items():
            try:
                names = {entry.name for entry in self._list_entries(folder) if not entry.is_folder}
                present |= {p for p in wanted if check_path(p).rpartition("/")[2] in names}
            except StorageError as error:
                problems |= dict.fromkeys(wanted, str(error))
        return present

    def _list_entries(self, folder: str) -> builtins.list[StorageEntry]:
        full = self._resolve(folder)
        with self._translate_errors(folder):
            children = self._list_children(full)
        return build_entries(children, full)

    def _delete_in_bulk(self, paths: Sequence[str]) -> builtins.list[DeletionResult]:
        """Delete without a look at what is there: a bulk delete of an absent object succeeds."""
        problems: dict[str, str] = {}
        targets: builtins.list[str] = []
        for path in dict.fromkeys(paths):
            try:
                targets.append(check_path(path))
            except StorageError as error:
                problems[path] = str(error)
        for start in range(0, len(targets), BULK_SIZES["s3"]):
            problems |= self._delete_batch(targets[start : start + BULK_SIZES["s3"]])
        return [
            DeletionResult(path, existed=path not in problems, error=problems.get(path))
            for path in paths
        ]

    def _delete_batch(self, paths: Sequence[str]) -> dict[str, str]:
        """Send one DeleteObjects request; return the problem of each path that the store refuses.

        Raises StorageError, with the first path, if the store did not answer or refused paths
        until the budget was spent: more requests would not mend it.
        """
        keys = {self._fs.split_path(self._resolve(path))[1]: path for path in paths}
        bucket = self._fs.split_path(self._root)[0]
        try:
            with self._translate_errors(paths[0]):
                refused = delete_keys(self._fs, bucket, builtins.list(keys), self._policy)
        except NoBulkDeleteError:
            return self._delete_singly(paths)
        except KeysRefusedError as error:
            left = [keys[key] for key in error.keys]
            problem = self._redact_error(error) + _describe_rest(left)
            raise StorageError(join_path(self.location, left[0]), problem) from None
        except StorageError as error:
            raise type(error)(error.path, error.problem + _describe_rest(paths)) from None
        return {keys[key]: self._redact_error(problem) for key, problem in refused.items()}

    def _delete_on_google(self, paths: Sequence[str]) -> dict[str, str]:
        """Send batch requests if the client has them; delete the rest one by one."""
        from fsspec.asyn import sync  # noqa: PLC0415 (heavy)

        delete = getattr(self._fs, "_delete_files", None)
        if delete is not None and paths:
            with contextlib.suppress(Exception):
                full = [self._resolve(path) for path in paths]
                sync(self._fs.loop, delete, full, BULK_SIZES["gs"])
            unknown: dict[str, str] = {}
            remaining = self._find_existing(paths, unknown) | unknown.keys()
            paths = [path for path in paths if path in remaining]
        return self._delete_singly(paths)

    def _delete_singly(self, paths: Sequence[str]) -> dict[str, str]:
        def remove(path: str) -> str | None:
            try:
                with self._translate_errors(path):
                    self._fs.rm_file(self._resolve(path))
            except NotFoundError:
                return None
            except StorageError as error:
                return str(error)
            return None

        if not paths:
            return {}
        with share_budget(self._policy), ThreadPoolExecutor(_THREADS) as pool:
            contexts = [copy_context() for _ in paths]  # threads do not inherit the budget
            outcomes = pool.map(lambda context, path: context.run(remove, path), contexts, paths)
            return {path: problem for path, problem in zip(paths, outcomes, strict=True) if problem}

    @contextlib.contextmanager
    def _translate_errors(self, path: str) -> Iterator[None]:
        full = join_path(self.location, path)
        try:
            with note_answers(self._answers), translate_errors(full, self._ref.secrets):
                yield
        except PermissionDeniedError:
            self._on_denial()
            raise

    def _redact_error(self, error: object) -> str:
        return redact_secrets(str(error), self._ref.secrets)


def _describe_rest(paths: Sequence[str]) -> str:
    """Return the end of an error that names the first of some files which were not deleted."""
    more = len(paths) - 1
    if not more:
        return ""
    return f"; {more} more {'file' if more == 1 else 'files'} of the request stayed too"
