"""Start the fsspec client for a URL, with every cache off."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final, assert_never

import fsspec

from reconciler.errors import StorageError
from reconciler.storage.api import StorageRef
from reconciler.storage.azure_requests import install_azure_retries
from reconciler.storage.client_options import find_azure_account, translate_options
from reconciler.storage.google_requests import install_google_retries
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
    root = filesystem._strip_protocol(ref.location).rstrip("/")  # noqa: SLF001
    if not is_opened_at(ref.location, root):
        message = f"is {root!r} for the client of {scheme}://; write {scheme}://bucket/folder"
        raise StorageError(ref.location, message)
    return RemoteStorage(
        ref,
        CountedClient(filesystem, scheme),
        root,
        connect,
        on_denial=lambda: _CLIENTS_OF_S3.drop(filesystem),
    )


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
    family = FAMILIES.get(scheme, "other")
    decoded = {**named, **_translate(family, ref.location, rest), **fresh}
    match family:
        case "s3":
            decoded["config_kwargs"] = make_config(policy, decoded.get("config_kwargs", {}))

            def start() -> Any:
                filesystem = factory(**decoded)
                install_retries(filesystem, policy, ref.secrets)
                return filesystem

            key = ref.options, ref.secrets, ref.surroundings, tuple(sorted(named.items()))
            return _CLIENTS_OF_S3.get(key, start)
        case "gs":
            filesystem = factory(**decoded)
            install_google_retries(filesystem, policy, ref.secrets)
        case "azure":
            filesystem = factory(**decoded)
            install_azure_retries(filesystem, policy, ref.secrets)
            _keep_question_marks(filesystem)
        case "memory" | "other":
            filesystem = factory(**decoded)
        case _:
            assert_never(family)
    return filesystem


def _translate(family: str, location: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return a client's options; the account of a URL is one of them."""
    account = find_azure_account(location) if family == "azure" else None
    named = {"account_name": account} if account else {}
    return translate_options(family, {**named, **options})


def make_client_options(location: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return storage options as the fsspec client of a URL takes them; none for a local path.

    Raises ValueError for an option of the wrong form.
    """
    family = FAMILIES.get(location.partition("://")[0])
    if family is None:
        return {}
    prepare_client(location)
    _, rest = split_policy(dict(options))
    return _translate(family, location, rest)


def prepare_client(location: str) -> None:
    """Let fsspec itself choose the client for a URL that is chosen here, in this process."""
    scheme = location.partition("://")[0]
    if FAMILIES.get(scheme) == "gs":
        with contextlib.suppress(ImportError):  # fsspec reports it
            plain = _choose_google_client(fsspec.get_filesystem_class(scheme))
            fsspec.register_implementation(scheme, plain, clobber=True)


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
