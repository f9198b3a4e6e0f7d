"""Open the storage of a location."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.local import LocalStorage
from reconciler.storage.locations import normalise_location


def open_storage(ref: StorageRef | str, options: Mapping[str, str] | None = None) -> Storage:
    """Return the storage at a location; nothing is read yet.

    ``options`` are passed to the store's client and never printed. Raises StorageError for an
    invalid location.
    """
    if isinstance(ref, str):
        ref = StorageRef(ref, tuple(sorted((options or {}).items())))
    location = normalise_location(ref.location)
    if "://" not in location:
        return LocalStorage(location)
    from reconciler.storage.clients import connect  # noqa: PLC0415 (loaded only for remote tables)

    return connect(replace(ref, location=location))


def find_store(location: str) -> str | None:
    """Return the kind of store of a location: s3, gs or azure; None for any other place.

    >>> find_store("s3a://lake/t"), find_store("abfss://lake/t"), find_store("/t")
    ('s3', 'azure', None)
    """
    scheme = location.partition("://")[0].lower() if "://" in location else ""
    if not scheme:
        return None
    from reconciler.storage.remote import CLIENTS, FAMILIES  # noqa: PLC0415 (only for remote tables)

    family = FAMILIES.get("s3" if scheme in ("s3a", "s3n") else scheme, "other")
    return family if family in CLIENTS else None


def list_client_packages(location: str) -> tuple[str, ...]:
    """Return the packages that a process imports to open a location; none for a local table.

    >>> list_client_packages("/lake/t"), list_client_packages("s3a://lake/t")
    ((), ('fsspec', 's3fs'))
    """
    scheme, separator, _ = normalise_location(location).partition("://")
    if not separator:
        return ()
    from reconciler.storage.remote import CLIENTS, FAMILIES  # noqa: PLC0415 (only for remote tables)

    client = CLIENTS.get(FAMILIES.get(scheme, "other"))
    return ("fsspec",) if client is None else ("fsspec", client)


def find_bulk_size(location: str) -> int:
    """Return how many files one request deletes in the store of a location.

    >>> find_bulk_size("/lake/t"), find_bulk_size("s3a://lake/t")
    (1, 1000)
    """
    scheme, separator, _ = normalise_location(location).partition("://")
    if not separator:
        return 1
    from reconciler.storage.remote import BULK_SIZES, FAMILIES  # noqa: PLC0415 (only remote tables)

    return BULK_SIZES.get(FAMILIES.get(scheme, "other"), 1)
