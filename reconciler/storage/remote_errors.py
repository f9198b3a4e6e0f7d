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
    except FileNotFoundError:
        raise NotFoundError(full, "does not exist") from None
    except FileExistsError:
        raise AlreadyExistsError(full, "already exists") from None
    except RequestsFailedError as error:
        raise StorageError(full, redact_secrets(str(error), secrets)) from None
    except PermissionError as error:
        message = redact_secrets(str(error), secrets) or "access denied"
        if find_code(error) in _EXPIRED_CODES:
            message = f"the store's credentials have expired ({message}); renew them and run again"
        raise PermissionDeniedError(full, message) from None
    except Exception as error:  # noqa: BLE001 (every client has its own exception classes)
        raise _translate_other(error, full, secrets) from None


def _translate_other(error: Exception, full: str, secrets: Sequence[str]) -> StorageError:
    """Return this package's error for one that only its client knows."""
    kind, message = type(error).__name__, redact_secrets(str(error), secrets)
    message = " ".join(message.split())  # some have many lines
    if kind in _RENEWAL_ERRORS:
        problem = f"there are no credentials for the store ({message}); renew them and run again"
        return PermissionDeniedError(full, problem)
    if _is_denied(error):
        return PermissionDeniedError(full, message)
    if find_code(error) == _NO_REASON:
        message = "the store answered 400 without a reason, as for expired credentials"
        return PermissionDeniedError(full, f"{message}; renew them and run again")
    return StorageError(full, f"{kind}: {message}")


def _is_denied(error: Exception) -> bool:
    """Return whether a store or its client does not let the caller in, by all clients' errors."""
    kind = type(error).__name__
    if kind in _STATUS_ERRORS:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        return str(status) in _DENIED_STATUS
    is_forbidden = isinstance(error, OSError) and str(error).startswith(_GOOGLE_DENIAL)
    return kind in _DENIED_ERRORS or is_forbidden


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
    response = getattr(error.__cause__, "response", None)
    return response.get("Error", {}).get("Code") if isinstance(response, dict) else None
