"""Count the requests that this process makes to stores, by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, Literal

#: ``repeat``: a request that was sent again after it had failed
RequestKind = Literal["list", "read", "look", "write", "delete", "repeat"]

#: most entries of one page of a listing
_PAGE: Final = 1000
_PAGE_OF_AZURE: Final = 5000
_AZURE: Final = frozenset({"abfs", "abfss", "az", "adl"})
_S3: Final = frozenset({"s3", "s3a"})
_KINDS: Final[Mapping[str, RequestKind]] = {
    "cat_file": "read",
    "info": "look",
    "pipe_file": "write",
    "put_file": "write",
    "rm_file": "delete",
}
_S3_KINDS: Final[Mapping[str, RequestKind]] = {
    "delete_objects": "delete",
    "get_object": "read",
    "head_object": "look",
    "list_objects_v2": "list",
}
_S3_CALLS: Final = frozenset({"call_s3", "_call_s3"})
_LISTINGS: Final = frozenset({"find", "ls"})


class RequestCounts:
    """Counts requests of all threads."""

    def __init__(self) -> None:
        self._counts: Counter[RequestKind] = Counter()
        self._guard = Lock()

    def add(self, kind: RequestKind, number: int = 1) -> None:
        with self._guard:
            self._counts[kind] += number

    def add_all(self, counts: Mapping[RequestKind, int]) -> None:
        with self._guard:
            self._counts.update(counts)

    def copy(self) -> Counter[RequestKind]:
        """Return the counts so far."""
        with self._guard:
            return Counter(self._counts)


#: the requests of this process since it started
OF_THIS_PROCESS: Final = RequestCounts()


class CountedClient:
    """A client of fsspec whose requests are counted; everything else passes through.

    A listing counts as its pages. What is sent again after an error is counted by its budget.
    """

    def __init__(self, client: Any, scheme: str, counts: RequestCounts = OF_THIS_PROCESS) -> None:
        self._client, self._counts = client, counts
        self._page = _PAGE_OF_AZURE if scheme in _AZURE else _PAGE
        self._looks_twice = scheme in _S3

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if name in _LISTINGS:
            return self._count_pages(attribute)
        if name in _S3_CALLS:
            return self._count_call_by_name(attribute)
        kind = _KINDS.get(name)
        return attribute if kind is None else self._count_call(kind, attribute)

    def _count_pages(self, listing: Callable[..., Any]) -> Callable[..., Any]:
        def list_and_count(*args: Any, **kwargs: Any) -> Any:
            with self._count_second_look():
                pages = 1
                try:
                    found = listing(*args, **kwargs)
                    pages = max(1, -(-len(found) // self._page))
                finally:
                    self._counts.add("list", pages)
                return found

        return list_and_count

    def _count_call(self, kind: RequestKind, call: Callable[..., Any]) -> Callable[..., Any]:
        def call_and_count(*args: Any, **kwargs: Any) -> Any:
            self._counts.add(kind)
            if kind != "look":
                return call(*args, **kwargs)
            with self._count_second_look():
                return call(*args, **kwargs)

        return call_and_count

    def _count_call_by_name(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def call_and_count(method: str, *args: Any, **kwargs: Any) -> Any:
            self._counts.add(_S3_KINDS.get(method, "write"))
            return call(method, *args, **kwargs)

        return call_and_count

    @contextmanager
    def _count_second_look(self) -> Iterator[None]:
        """Count the listing with which the client of S3 looks for what is not there."""
        try:
            yield
        except FileNotFoundError:
            if self._looks_twice:
                self._counts.add("list")
            raise
