"""Turn the errors of stores' clients into this package's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.errors import (
    AlreadyExistsError,
    NotFoundError,
    PermissionDeniedError,
    ReconcilerError,
    StorageError,
    UnreachableError,
)
from reconciler.storage.redaction import redact_secrets
from reconciler.storage.request_budget import RequestsFailedError

_DENIED_ERRORS: Final = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "ClientAuthenticationError",
)
_EXPIRED_CODES: Final = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
_TAKEN_CODES: Final = frozenset({"PreconditionFailed", "412", "BlobAlreadyExists"})


@contextlib.contextmanager
def translate_errors(full: str, secrets: Sequence[str]) -> Iterator[None]:
    """Turn clients' errors into this package's, which name the path and never the options.

    ``full``: the whole name of what is read or written. ``secrets``: texts that messages hide.
    """
    try:
        yield
    except ReconcilerError:
        raise
    except Exception as error:  # noqa: BLE001 (every client has its own exception classes)
        raise _translate(error, full, secrets) from None


def _translate(error: Exception, full: str, secrets: Sequence[str]) -> StorageError:
    kind, message = type(error).__name__, redact_secrets(str(error), secrets)
    code, text = _find_answer(error)
    if isinstance(error, FileNotFoundError):
        return _describe_missing(error, full)
    if isinstance(error, FileExistsError):
        return AlreadyExistsError(full, "already exists")
    if isinstance(error, RequestsFailedError):
        return UnreachableError(full, message)
    if code in _EXPIRED_CODES:
        expired = f"the store's credentials have expired ({message}); renew them and run again"
        return PermissionDeniedError(full, expired)
    if isinstance(error, PermissionError) or kind in _DENIED_ERRORS:
        return PermissionDeniedError(full, message or "access denied")
    refused = f"the store refused it ({code}: {redact_secrets(text, secrets)})"
    return StorageError(full, refused if code else f"{kind}: {message}")


def _describe_missing(error: FileNotFoundError, full: str) -> StorageError:
    if not names_no_bucket(error):
        return NotFoundError(full, "does not exist")
    bucket = "/".join(full.split("/", 3)[:3])
    return UnreachableError(
        f"the bucket {bucket}", "does not exist; check its name and the endpoint"
    )


def names_no_bucket(error: FileNotFoundError) -> bool:
    """Return whether the store says that the bucket is missing, and not only the object."""
    return find_code(error) == "NoSuchBucket"


@contextlib.contextmanager
def refuse_taken(full: str) -> Iterator[None]:
    """Raise FileExistsError where the store refuses because the object already exists."""
    try:
        yield
    except OSError as error:
        if _is_taken(error):
            raise FileExistsError(full) from None
        raise


def _is_taken(error: OSError) -> bool:
    return isinstance(error, FileExistsError) or find_code(error) in _TAKEN_CODES


def find_code(error: BaseException) -> str | None:
    """Return the store's code of an error of s3fs; None if it has none."""
    return _find_answer(error)[0]


def _find_answer(error: BaseException) -> tuple[str | None, str]:
    """Return code and text of the store's answer that an error of s3fs was made of."""
    response = getattr(error.__cause__, "response", None)
    answer = response.get("Error", {}) if isinstance(response, dict) else {}
    return answer.get("Code"), str(answer.get("Message", ""))
