"""Locations of tables: what is the same place, whatever client or spelling a location is for.

This is the only module that knows it. Policies, duplicates and reviewed plans compare locations by
their identity, and stores are opened at the normalised location. Both come from ``split_url``, and
a location that a client would take for another place is refused.
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import Final, Generic, TypeVar
from urllib.parse import unquote

from reconciler.errors import StorageError
from reconciler.lazy_dataclass import dataclass

LOCAL_SCHEMES: Final = ("file", "local")

_LOCAL: Final = re.compile(
    r"(?:file:|local:(?=/))(?P<slashes>//(?:localhost)?(?=/))?", re.IGNORECASE
)
_STORES: Final = {
    "s3a": "s3", "s3n": "s3",
    "gcs": "gs",
    "abfss": "abfs", "az": "abfs", "wasb": "abfs", "wasbs": "abfs",
    "webhdfs": "hdfs", "swebhdfs": "hdfs",
    "ssh": "sftp",
}  # fmt: skip
_CLIENT_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_BUCKETS: Final = {
    "s3": ("bucket", "s3://bucket/folder"),
    "gs": ("bucket", "gs://bucket/folder"),
    "abfs": ("container", "abfs://container@account.dfs.core.windows.net/folder"),
}
_ONE_PLACE: Final = (*_BUCKETS, "hdfs", "memory")  # stores whose client reads the location alone
_Value = TypeVar("_Value")


def find_local_path(location: str) -> str | None:
    """Return the path of a location on a local disk, as written; None for another store.

    Only URLs have escapes such as ``%20``.

    >>> find_local_path("../a"), find_local_path("file:/a%20b"), find_local_path("LOCAL:///a")
    ('../a', '/a b', '/a')
    >>> find_local_path("s3://lake/a")
    """
    if is_local := _LOCAL.match(location):
        return unquote(location[is_local.end() :])
    return None if "://" in location else location


def escape_hadoop_path(location: str) -> str:
    """Return a location that Hadoop wrote, such as a catalog's, as one that is read here.

    Hadoop writes local URLs without escapes, so that ``%20`` is a part of a name.

    >>> escape_hadoop_path("file:/lake/a%20b"), find_local_path("file:/lake/a%2520b")
    ('file:/lake/a%2520b', '/lake/a%20b')
    >>> escape_hadoop_path("s3a://lake/a%20b")
    's3a://lake/a%20b'
    """
    return location.replace("%", "%25") if _LOCAL.match(location) else location


def names_local_host(location: str) -> bool:
    """Return whether a local location names another host than this one.

    >>> names_local_host("file://nas/a"), names_local_host("file:////a"), names_local_host("//a")
    (True, False, False)
    """
    is_local = _LOCAL.match(location)
    if is_local is None or is_local["slashes"]:
        return False
    return location.startswith("//", is_local.end())


def make_absolute(path: str, folder: str = "") -> str:
    """Return a local path as an absolute one that starts with one slash; links stay as written."""
    return f"/{os.path.abspath(os.path.join(folder, path)).lstrip('/')}"  # noqa: PTH100, PTH118


@dataclass(frozen=True, slots=True)
class PlaceIdentity:
    """A place, by what all spellings of its location have in common.

    ``place``: an absolute path, or a URL. ``details``: what a spelling may leave out, because the
    client's configuration has it, and is "" then: host and port of hdfs, the account of Azure.
    """

    place: str
    details: tuple[str, ...] = ()

    def may_be(self, other: PlaceIdentity) -> bool:
        """Return whether both may be one place: no detail that both have differs.

        >>> one, same, other = map(identify_text, ("hdfs://nn:8020/a", "hdfs:///a", "hdfs://b/a"))
        >>> one.may_be(same), same.may_be(other), one.may_be(other)
        (True, True, False)
        """
        if self.place != other.place:
            return False
        pairs = zip(self.details, other.details, strict=True)
        return all(mine == others or not mine or not others for mine, others in pairs)


def names_account(location: str) -> bool:
    """Return whether a URL is one that Hadoop can read: those of Azure name their account.

    >>> names_account("abfs://lake/t"), names_account("abfss://lake@a.dfs.core.windows.net/t")
    (False, True)
    >>> names_account("s3://lake/t")
    True
    """
    scheme, _, rest = location.partition("://")
    return scheme.lower() not in ("abfs", "abfss") or "@" in rest.partition("/")[0]


def split_url(url: str) -> tuple[str, str]:
    """Return the scheme of a URL, and what follows ``://`` without slashes at its ends.

    The path of hdfs keeps its first slash: no host stands before it.

    >>> split_url("S3A:////Lake//t/"), split_url("hdfs:////t/")
    (('s3a', 'Lake//t'), ('hdfs', '/t'))
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    is_path = _STORES.get(scheme, scheme) == "hdfs" and rest.startswith("/")
    return scheme, ("/" if is_path else "") + rest.strip("/")


def find_url_problem(url: str) -> str | None:
    """Return what is wrong with a URL of a store, as the end of a sentence; None if nothing is.

    >>> find_url_problem("s3:///lake/t")
    'names no bucket; write s3://bucket/folder'
    >>> find_url_problem("abfs://acct.dfs.core.windows.net/c/t")
    'names no container; write abfs://container@account.dfs.core.windows.net/folder'
    >>> find_url_problem("s3:/lake/t")
    'has one slash after the scheme; write s3://bucket/folder'
    >>> find_url_problem("s3a://lake/t")
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme = url.partition(":")[0]
        return f"has one slash after the scheme; write {scheme}://bucket/folder"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return "has no scheme before ://; write s3://bucket/folder or a path"
    store = _STORES.get(scheme.lower(), scheme.lower())
    host = rest.partition("/")[0]
    if store in _BUCKETS and not _find_bucket(store, host):
        bucket, example = _BUCKETS[store]
        return f"names no {bucket}; write {example}"
    return None if rest.strip("/") else "names no bucket or folder"


def _find_bucket(store: str, host: str) -> str:
    if store != "abfs":
        return host
    container, separator, _ = host.partition("@")
    is_account = not separator and container.lower().endswith(".core.windows.net")
    return "" if is_account else container


def normalise_location(location: str) -> str:
    """Return the location that is opened: an absolute local path, or a URL without last slash.

    Raises StorageError for a location that names no place.

    >>> normalise_location("/a//b/"), normalise_location("file:///a/b%20c")
    ('/a/b', '/a/b c')
    >>> normalise_location("file:/a"), normalise_location("s3a://bucket/t/")
    ('/a', 's3://bucket/t')
    """
    if not location:
        raise StorageError("''", "is an empty location")
    local = find_local_path(location)
    if local is None or re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", local):
        if problem := find_url_problem(location):
            raise StorageError(location, problem)
        scheme, rest = split_url(location)
        return f"{_CLIENT_SCHEMES.get(scheme, scheme)}://{rest}"
    if names_local_host(location):
        raise StorageError(location, "names a host; a local location is file:///path")
    return make_absolute(local)


def is_opened_at(location: str, path: str) -> bool:
    """Return whether the path that a client makes of a location is the place it is identified by.

    >>> is_opened_at("abfss://c@acct.dfs.core.windows.net/t", "c/t")
    True
    >>> is_opened_at("abfs://c/t?", "c/t")
    False
    """
    scheme = split_url(location)[0]
    store = _STORES.get(scheme, scheme)
    if store not in _ONE_PLACE:
        return True
    start = "/" if store == "hdfs" else ""
    opened = identify_text(f"{store}://{start}{path.lstrip('/')}")
    return opened.place == identify_text(location).place


def use_store_scheme(location: str) -> str:
    """Return a location with one scheme per store, and without empty folders; nothing else changes.

    >>> use_store_scheme("s3a://Lake//orders"), use_store_scheme("/a/b")
    ('s3://Lake/orders', '/a/b')
    """
    if "://" not in location:
        return location
    scheme, rest = split_url(location)
    return f"{_STORES.get(scheme, scheme)}://{re.sub('/+', '/', rest)}"


def identify_text(location: str) -> PlaceIdentity:
    """Return the identity of a location, with links as written.

    >>> identify_text("S3A://Lake//a/./b/"), identify_text("file:///a//b/")
    (PlaceIdentity(place='s3://lake/a/b', details=()), PlaceIdentity(place='/a/b', details=()))
    >>> identify_text("abfss://c@Account.dfs.core.windows.net/t")
    PlaceIdentity(place='abfs://c/t', details=('account',))
    >>> identify_text("hdfs://NN:8020/t")
    PlaceIdentity(place='hdfs:///t', details=('nn', '8020'))
    """
    local = find_local_path(location)
    if local is not None:
        return PlaceIdentity(make_absolute(local, "/"))
    store, rest = use_store_scheme(location).split("://", 1)
    host, _, path = rest.partition("/")
    host, path = host.lower(), posixpath.normpath(f"/{path}").rstrip("/")
    match store:
        case "abfs":
            container, _, account = host.partition("@")
            return PlaceIdentity(f"abfs://{container}{path}", (account.partition(".")[0],))
        case "hdfs":
            name, _, port = host.rpartition("@")[2].partition(":")
            is_rpc = location[: len(store)].lower() == store  # ports of webhdfs are others
            return PlaceIdentity(f"hdfs://{path}", (name, port if is_rpc else ""))
        case _:
            return PlaceIdentity(f"{store}://{host.rpartition('@')[2]}{path}")


def find_below(root: str, url: str) -> str | None:
    """Return the path of a URL below a root in any spelling of both; None if it is not below it.

    >>> find_below("s3://lake/t", "s3a://lake/t/p=1/f"), find_below("s3a://lake/t/", "s3://lake/t")
    ('p=1/f', '')
    >>> find_below("s3://lake/t", "s3a://lake/t2/f"), find_below("/t", "file:///t/f")
    (None, 'f')
    """
    top, place = identify_text(root), identify_text(url)
    start = top.place.rstrip("/")
    is_below = place.place == start or place.place.startswith(f"{start}/")
    if not is_below or not top.may_be(PlaceIdentity(top.place, place.details)):
        return None
    return place.place[len(start) :].strip("/")


def follow_links(location: str) -> str:
    """Return a location without links on the local disk; other stores have none."""
    local = find_local_path(location)
    return location if local is None else os.path.realpath(make_absolute(local, "/"))


def identify_place(location: str) -> PlaceIdentity:
    """Return the identity of a location, with links followed."""
    return identify_text(follow_links(location))


class LocationMap(Generic[_Value]):
    """Values by location. A location finds the value of every spelling that may be its place."""

    def __init__(self) -> None:
        self._values: dict[str, list[tuple[PlaceIdentity, _Value]]] = {}

    def add(self, location: str, value: _Value) -> _Value | None:
        """Add a value and return None, or return the value that the place has already."""
        identity = identify_place(location)
        known = self._values.setdefault(identity.place, [])
        for other, found in known:
            if identity.may_be(other):
                return found
        known.append((identity, value))
        return None

    def find(self, location: str) -> _Value | None:
        """Return the value of a location; None if it has none."""
        identity = identify_place(location)
        known = self._values.get(identity.place, ())
        return next((value for other, value in known if identity.may_be(other)), None)
