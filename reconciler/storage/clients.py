"""Start the fsspec client for a URL, with every cache off."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import fsspec

from reconciler.errors import StorageError
from reconciler.storage.api import StorageRef
from reconciler.storage.locations import is_opened_at
from reconciler.storage.redaction import redact_secrets
from reconciler.storage.remote import FAMILIES, RemoteStorage
from reconciler.storage.request_budget import split_policy
from reconciler.storage.requests import CountedClient
from reconciler.storage.s3_requests import install_retries, make_config
from reconciler.storage.shared_clients import SharedClients

_WRAPPERS: Final = (
    "asynclocal", "async_wrapper", "asyncwrapper", "blockcache", "cached", "dask", "dir",
    "filecache", "generic", "libarchive", "reference", "simplecache", "tar", "zip",
)  # fmt: skip
#: the extra that brings the client of a family
_EXTRAS: Final[Mapping[str, str]] = {"s3": "s3", "gs": "gcs", "azure": "azure"}

_NUMBERS: Final = frozenset({
    "block_size", "blocksize", "connection_timeout", "default_block_size", "listings_expiry_time",
    "max_concurrency", "max_paths", "read_timeout", "requests_timeout",
})  # fmt: skip

_CLIENTS_OF_S3: Final = SharedClients()


def connect(ref: StorageRef) -> RemoteStorage:
    """Return the storage of a normalised URL.

    Raises StorageError when the scheme is unknown, or its client is not installed or misconfigured.
    """
    scheme = ref.location.partition("://")[0]
    factory = _find_client(ref.location, scheme)
    fresh: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
    if scheme == "memory":
        fresh = {}
    try:
        named = factory._get_kwargs_from_urls(ref.location)  # noqa: SLF001 (host, account)
        filesystem = _start_client(factory, scheme, ref, named, fresh)
    except Exception as error:  # noqa: BLE001 (every client has its own exception classes)
        message = redact_secrets(f"{type(error).__name__}: {error}", ref.secrets)
        raise StorageError(
            ref.location, f"the client of {scheme}:// did not start: {_shorten(message, scheme)}"
        ) from None
    if FAMILIES.get(scheme) == "azure":
        _keep_question_marks(filesystem)
    root = filesystem._strip_protocol(ref.location).rstrip("/")  # noqa: SLF001
    if not is_opened_at(ref.location, root):
        message = f"is {root!r} for the client of {scheme}://; write {scheme}://bucket/folder"
        raise StorageError(ref.location, message)
    return RemoteStorage(ref, CountedClient(filesystem, scheme), root, connect)


def _shorten(message: str, scheme: str) -> str:
    """Return an error without the list of all places where the client has looked for Java."""
    if scheme != "hdfs" or "libjvm" not in message:
        return message
    return (
        "it finds no Java and Hadoop; set JAVA_HOME, HADOOP_HOME and CLASSPATH (hadoop classpath)"
    )


def _start_client(
    factory: Any,
    scheme: str,
    ref: StorageRef,
    named: Mapping[str, Any],
    fresh: Mapping[str, Any],
) -> Any:
    policy, rest = split_policy(dict(ref.options))
    decoded = {**named, **dict(_decode_options(list(rest.items()))), **fresh}
    if FAMILIES.get(scheme) != "s3":
        return factory(**decoded)
    decoded["config_kwargs"] = make_config(policy, decoded.get("config_kwargs", {}))

    def start() -> Any:
        filesystem = factory(**decoded)
        install_retries(filesystem, policy, ref.secrets)
        return filesystem

    return _CLIENTS_OF_S3.get((ref.options, ref.secrets, tuple(sorted(named.items()))), start)


def make_client_options(location: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return storage options as the fsspec client of a URL takes them; none for a local path.

    Raises ValueError for an option of the wrong form.
    """
    if FAMILIES.get(location.partition("://")[0]) is None:
        return {}
    _, rest = split_policy(dict(options))
    return dict(_decode_options(list(rest.items())))


def _find_client(location: str, scheme: str) -> Any:
    if scheme in _WRAPPERS:
        message = f"{scheme}:// opens a location of another store; write that location"
        raise StorageError(location, message)
    try:
        client = fsspec.get_filesystem_class(scheme)
        return _choose_google_client(client) if FAMILIES.get(scheme) == "gs" else client
    except (ImportError, ValueError) as error:  # fsspec itself does not know abfss://
        extra = _EXTRAS.get(FAMILIES.get(scheme, "other"))
        if extra is None and isinstance(error, ValueError):
            raise StorageError(location, f"{scheme}:// is not a supported store") from None
        remedy = f"pip install 'hudi-reconciler[{extra}]'" if extra else str(error)
        raise StorageError(
            location, f"{scheme}:// needs a client that is not installed; {remedy}"
        ) from None


def _choose_google_client(client: Any) -> Any:
    """Return gcsfs's client for objects instead of one that is given for folders and zones.

    The latter asks for the kind of the bucket first, over gRPC, and waits for a minute where a
    proxy or an emulator has none.
    """
    plain = [kind for kind in client.__mro__ if kind.__module__ == "gcsfs.core"]
    return plain[0] if plain else client


def _keep_question_marks(filesystem: Any) -> None:
    """Let adlfs name an object that ends in a question mark, which it takes for an empty query."""
    strip = filesystem._strip_protocol  # noqa: SLF001

    def keep(path: Any) -> Any:
        stripped = strip(path)
        is_lost = isinstance(path, str) and path.endswith("?") and not stripped.endswith("?")
        return f"{stripped}?" if is_lost else stripped

    filesystem._strip_protocol = keep  # noqa: SLF001


def _decode_options(options: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    """Yield options as clients expect them: booleans, mappings and numbers instead of strings.

    Only options that are known to be numbers become numbers: a key or an account may be digits.
    """
    for key, value in options:
        if key in _NUMBERS:
            try:
                yield key, int(value) if value.isdigit() else float(value)
            except ValueError:
                raise ValueError(f"{key}: {value!r} is not a number") from None
            continue
        if value in ("true", "false"):
            yield key, value == "true"
        elif value.startswith("{"):
            yield key, json.loads(value)
        else:
            yield key, value
