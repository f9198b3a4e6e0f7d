"""Recognise an object that this very call created, though the answer to its creation was lost.

The client then asks again, and the store refuses because the object exists. Equal bytes would not
tell whose it is: inflight files of instants are empty, and two writers that choose one instant time
write the same. So each creation gives its object a token that no other creation has, as metadata
of the object, and a refusal reads the token back. Listings and readers do not see it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

#: the name of the token in an object's metadata
TOKEN_NAME: Final = "reconciler-creation"  # noqa: S105 (no secret)
#: the same on Azure, where names are those of variables
AZURE_TOKEN_NAME: Final = "reconciler_creation"  # noqa: S105 (no secret)
_numbers: Iterator[int] = count()


def make_token(writer: str) -> str:
    """Return a token for one creation; ``writer`` is random, and its processes share it."""
    return f"{writer}-{os.getpid():x}-{next(_numbers):x}"


def make_token_options(family: str, token: str) -> dict[str, Any]:
    """Return the client's options that give an object the token; none where a client has none.

    adlfs sets metadata of its own, but passes headers on, and metadata are headers.

    >>> make_token_options("s3", "t")
    {'Metadata': {'reconciler-creation': 't'}}
    >>> make_token_options("azure", "t")
    {'headers': {'x-ms-meta-reconciler_creation': 't'}}
    """
    match family:
        case "s3":
            return {"Metadata": {TOKEN_NAME: token}}
        case "gs":
            return {"metadata": {TOKEN_NAME: token}}
        case "azure":
            return {"headers": {f"x-ms-meta-{AZURE_TOKEN_NAME}": token}}
        case _:
            return {}


def has_token(filesystem: Any, family: str, full: str, token: str) -> bool:
    """Return whether the object has the token; False if there is none, or nobody may look."""
    try:
        if family == "s3":
            return find_own_version(filesystem, full, token) is not None
        if family == "gs":
            filesystem.invalidate_cache()
            found = filesystem.info(full).get("metadata") or {}
            return bool(found.get(TOKEN_NAME) == token)
        if family == "azure":
            return _find_azure_metadata(filesystem, full).get(AZURE_TOKEN_NAME) == token
    except (FileNotFoundError, PermissionError):
        pass
    return False


def _find_azure_metadata(filesystem: Any, full: str) -> dict[str, str]:
    """Return the metadata of a blob by names in small letters; none if there is no blob."""
    from azure.core.exceptions import ResourceNotFoundError  # noqa: PLC0415 (comes with adlfs)
    from fsspec.asyn import sync  # noqa: PLC0415 (heavy)

    container, name, _version = filesystem.split_path(full)
    blob = filesystem.service_client.get_blob_client(container, name)
    try:
        found = sync(filesystem.loop, blob.get_blob_properties).metadata or {}
    except ResourceNotFoundError:
        return {}
    return {key.lower(): value for key, value in found.items()}


def find_own_version(filesystem: Any, full: str, token: str) -> str | None:
    """Return the ETag of an object of S3 that has the token; None for any other object."""
    bucket, key, _version = filesystem.split_path(full)
    found = filesystem.call_s3("head_object", Bucket=bucket, Key=key)
    return str(found["ETag"]) if found["Metadata"].get(TOKEN_NAME) == token else None
