"""Hudi's lock in DynamoDB: a row in the form of Amazon's lock client, which Hudi uses.

The row has a lease and a version. Its owner writes a new version well within the lease; whoever has
seen the same version for a whole lease may take the lock by replacing exactly that version. A row
that is gone or says that it is released is free. Source: DynamoDBBasedLockProvider of Hudi;
AmazonDynamoDBLockClient, LockItem; the same from Hudi 0.14 to 1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from reconciler.errors import FormatError
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass

KEY: Final = "key"
OWNER: Final = "ownerName"
LEASE: Final = "leaseDuration"
VERSION: Final = "recordVersionNumber"
RELEASED: Final = "isReleased"
#: the attribute that names the run of reconciler; Amazon's client drops what it does not know
RUN: Final = "reconciler"
#: what Hudi's writers take by default: their longest wait for a lock
LEASE_S: Final = 60
RENEWAL_S: Final = LEASE_S // 3

#: a row as DynamoDB has it: attribute -> {type: value}
Row = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRow:
    """A row of a lock. ``owner`` is unique per holder, ``version`` per write."""

    owner: str
    version: str
    lease_ms: int
    is_released: bool = False
    run: Owner | None = None

    @classmethod
    def parse(cls, row: Row, location: str) -> Self:
        """Return the row; raises FormatError that names ``location``.

        >>> row = {"ownerName": {"S": "a"}, "recordVersionNumber": {"S": "v"}}
        >>> LockRow.parse({**row, "leaseDuration": {"S": "20000"}}, "dynamodb:locks/orders").owner
        'a'
        """
        try:
            return cls(
                owner=row[OWNER]["S"],
                version=row[VERSION]["S"],
                lease_ms=int(row[LEASE]["S"]),
                is_released=RELEASED in row,
                run=Owner.parse(row[RUN]["S"]) if RUN in row else None,
            )
        except (KeyError, ValueError, TypeError):
            remedy = "Hudi cannot read it either: delete the row when no writer runs"
            raise FormatError(location, "is no lock of Hudi", remedy) from None

    def encode(self, key: str) -> dict[str, dict[str, str]]:
        """Return the row of the lock with a partition key."""
        row = {
            KEY: {"S": key},
            OWNER: {"S": self.owner},
            LEASE: {"S": str(self.lease_ms)},
            VERSION: {"S": self.version},
        }
        run = {} if self.run is None else {RUN: {"S": self.run.encode().decode()}}
        return row | run
