"""Whether the Hudi that executes a plan can take the table's lock; decides only.

Hudi takes the lock itself when it completes an instant. A bundle lacks what runs on AWS, which
would show only after the instant is requested. Source: LockManager, StorageSchemes of Hudi.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reconciler.errors import UnsupportedError
from reconciler.hudi_engine.table_options import LOCK_PROVIDERS
from reconciler.spec.model import Lock

#: of a storage lock on S3
_S3_CLIENT: Final = "org.apache.hudi.aws.transaction.lock.S3StorageLockClient"
_S3_SCHEMES: Final = ("s3://", "s3a://")
_OR_NATIVE: Final = "or use --executor native"


def check_delegated_lock(
    lock: Lock | None, location: str, version: str, has_class: Callable[[str], bool]
) -> None:
    """Raise UnsupportedError if Hudi cannot take the lock of a table at ``location``.

    ``version``: of the bundle; ``has_class`` says whether Spark's class path has a Java class.
    """
    if lock is None or lock.provider == "none":
        return
    if lock.provider == "dynamodb" and lock.region is None:
        raise UnsupportedError(
            "the lock in DynamoDB has no region, and Hudi's default may be another one than that "
            f"of AWS's settings: add concurrency.lock.region, {_OR_NATIVE}"
        )
    if lock.provider == "storage" and not location.startswith(_S3_SCHEMES):
        raise UnsupportedError(
            f"Hudi has a storage lock on S3 only, and the table is at {location}: {_OR_NATIVE[3:]}"
        )
    needed = [LOCK_PROVIDERS[lock.provider], *([_S3_CLIENT] if lock.provider == "storage" else [])]
    for name in needed:
        if not has_class(name):
            raise UnsupportedError(
                f"Hudi {version} takes the table's lock (concurrency.lock.provider: "
                f"{lock.provider}) by {name}, which is not on Spark's class path: "
                f"{_find_remedy(name)}, {_OR_NATIVE}"
            )


def _find_remedy(name: str) -> str:
    if ".aws." in name:
        return "add hudi-aws-bundle of the same version beside the Hudi bundle"
    return "use a bundle of Hudi 1.1 or newer"
