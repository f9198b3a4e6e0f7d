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
#: what gives credentials has no new ones: botocore's and Google's errors
_RENEWAL_ERRORS: Final = (
    "CredentialRetrievalError",
    "DefaultCredentialsError",
    "RefreshError",
    "SSOTokenLoadError",
    "TokenRetrievalError",
    "UnauthorizedSSOTokenError",
)
_EXPIRED_CODES: Final = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
#: errors of gcsfs and of Azure that have the status of an answer
_STATUS_ERRORS: Final = ("HttpError", "HttpResponseError")
_DENIED_STATUS: Final = ("401", "403")
_GOOGLE_DENIAL: Final = "Forbidden: "
#: how S3 refuses a HEAD, whose answer has no place for a reason
_NO_REASON: Final = "400"
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
    message = redact_secrets(str(error), secrets)
    if isinstance(error, FileNotFoundError):
        return _describe_missing(error, full)
    if isinstance(error, FileExistsError):
        return AlreadyExistsError(full, "already exists")
    if isinstance(error, RequestsFailedError):
        return UnreachableError(full, message)
    if denial := _find_denial(error, " ".join(message.split())):  # some have many lines
        return PermissionDeniedError(full, denial)
    code, text = _find_answer(error)
    if code:
        return StorageError(full, f"the store refused it ({code}: {redact_secrets(text, secrets)})")
    return StorageError(full, f"{type(error).__name__}: {' '.join(message.split())}")


def _find_denial(error: Exception, message: str) -> str | None:
    """Return why a store does not let the caller in; None for any other error."""
    code = find_code(error)
    if code in _EXPIRED_CODES:
        return f"the store's credentials have expired ({message}); renew them and run again"
    if type(error).__name__ in _RENEWAL_ERRORS:
        return f"there are no credentials for the store ({message}); renew them and run again"
    if code == _NO_REASON:
        return (
            "the store answered 400 without a reason, as for expired credentials; renew them and "
            "run again"
        )
    return (message or "access denied") if _is_denied(error) else None


def _is_denied(error: Exception) -> bool:
    """Return whether a store or its client does not let the caller in, by all clients' errors."""
    kind = type(error).__name__
    if kind in _STATUS_ERRORS:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        return str(status) in _DENIED_STATUS
    is_forbidden = isinstance(error, OSError) and str(error).startswith(_GOOGLE_DENIAL)
    return isinstance(error, PermissionError) or kind in _DENIED_ERRORS or is_forbidden


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
