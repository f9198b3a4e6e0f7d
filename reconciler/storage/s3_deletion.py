"""Delete many objects of S3 in one request, and again those that the store could not delete yet.

The client's own function is not used: it expands ``*`` and ``[`` in names, and ignores errors in
the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from reconciler.errors import ReconcilerError
from reconciler.storage.remote_errors import find_code
from reconciler.storage.request_budget import RequestPolicy, RequestsFailedError, share_budget
from reconciler.storage.s3_requests import RETRIED_CODES

#: what stores without bulk deletes answer, and those that take none without an MD5 of the request
_MISSING_CODES: Final = frozenset({
    "NotImplemented", "MethodNotAllowed", "UnsupportedOperation", "MissingContentMD5", "501", "405",
})  # fmt: skip


class NoBulkDeleteError(ReconcilerError):
    """The store deletes no more than one object in a request."""


class KeysRefusedError(ReconcilerError):
    """The store did not delete some of the keys until the budget was spent."""

    def __init__(self, keys: Sequence[str], problem: str) -> None:
        super().__init__(problem)
        self.keys = keys


def delete_keys(
    filesystem: Any, bucket: str, keys: Sequence[str], policy: RequestPolicy
) -> dict[str, str]:
    """Delete objects in bulk; return the problem of each key that the store refuses for good.

    Keys that it refuses for a while are sent again within the budget of the first request. Raises
    NoBulkDeleteError, KeysRefusedError, and the client's errors for a whole request that failed.
    """
    refused: dict[str, str] = {}
    waiting = list(keys)
    with share_budget(policy) as budget:
        for tries in count(1):
            errors = _send_deletion(filesystem, bucket, waiting)
            waiting = [key for key, (code, _) in errors.items() if code in RETRIED_CODES]
            refused |= {
                key: f"{code}: {message}"
                for key, (code, message) in errors.items()
                if code not in RETRIED_CODES
            }
            if not waiting:
                break
            problem = "the store answered {}: {}".format(*errors[waiting[0]])
            what = f"the deletion of {len(waiting)} of {len(keys)} objects"
            try:
                budget.wait(what, problem, tries)
            except RequestsFailedError as error:
                raise KeysRefusedError(waiting, str(error)) from None
    return refused


def _send_deletion(filesystem: Any, bucket: str, keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Send one request; return code and message of each key that was not deleted."""
    objects = [{"Key": key} for key in keys]
    try:
        answer = filesystem.call_s3(
            "delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
        )
    except OSError as error:
        if find_code(error) in _MISSING_CODES or "Content-MD5" in str(error):
            raise NoBulkDeleteError from None
        raise
    errors = {
        str(error.get("Key")): (error.get("Code", ""), error.get("Message", "not deleted"))
        for error in answer.get("Errors", [])
    }
    if unknown := errors.keys() - set(keys):
        name = min(unknown)
        raise RequestsFailedError(
            f"the store says that it did not delete {name!r}, which it was not asked to delete "
            f"({errors[name][0]}: {errors[name][1]})"
        )
    return errors
