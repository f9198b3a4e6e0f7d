"""The places of locks that Hudi derives from a table's location.

A writer hashes ``hoodie.base.path`` as it is told it; only ``s3a://`` counts as ``s3://``. Source:
ZookeeperBasedImplicitBasePathLockProvider, DynamoDBBasedImplicitPartitionKeyLockProvider,
FSUtils.s3aToS3, HashID of Hudi.
"""

from __future__ import annotations

import re
from typing import Final

from reconciler.hudi.codecs.hash_id import hash_text

#: name of the lock below its base path in ZooKeeper
IMPLICIT_KEY: Final = "lock_key"
_S3A: Final = re.compile("^s3a://", re.IGNORECASE)


def derive_partition_key(location: str) -> str:
    """Return the key of a lock's row in DynamoDB.

    >>> derive_partition_key("s3a://lake/orders") == derive_partition_key("s3://lake/orders")
    True
    """
    return hash_text(_S3A.sub("s3://", location)).hex().upper()


def derive_base_path(location: str) -> str:
    """Return the base path of a lock in ZooKeeper."""
    return f"/tmp/{derive_partition_key(location)}"  # noqa: S108 (a node, not a folder)
