"""The lock file of Hudi's storage-based lock: JSON that says until when whom it belongs to.

A writer takes the lock by writing the file on the condition that nobody has changed it, renews it
the same way, and releases it by writing that it has expired. Source: StorageBasedLockProvider,
StorageLockData, StorageLockProviderAuditService; the same in 1.1 and 1.2.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final, Self

from reconciler.errors import FormatError
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass

#: in .hoodie
LOCKS_FOLDER: Final = ".locks"
STORAGE_LOCK_FILE: Final = f".hoodie/{LOCKS_FOLDER}/table_lock.json"
AUDIT_SWITCH_FILE: Final = f".hoodie/{LOCKS_FOLDER}/audit_enabled.json"
AUDIT_FOLDER: Final = f".hoodie/{LOCKS_FOLDER}/audit"
DEFAULT_VALIDITY_S: Final = 300
#: by how much the clocks of two writers may differ: CLOCK_DRIFT_BUFFER_MS
_CLOCK_DRIFT_MS: Final = 500
#: Hudi wants a lock to outlive ten renewals, and renews every 30 s at most by default
_RENEWALS: Final = 10
_MAX_RENEWAL_S: Final = 30
_AUDIT_FIELD: Final = "STORAGE_LOCK_AUDIT_SERVICE_ENABLED"
#: the field that names the run of reconciler; Hudi ignores fields that it does not know
_RUN_FIELD: Final = "reconciler"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLockFile:
    """The content of the lock file; ``owner`` is unique per holder, ``run`` None for Hudi's.

    >>> StorageLockFile(expired=False, valid_until_ms=7, owner="a").encode()
    b'{"expired":false,"validUntil":7,"owner":"a"}'
    """

    expired: bool
    valid_until_ms: int
    owner: str
    run: Owner | None = None

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the content of a lock file; raises FormatError."""
        try:
            fields = json.loads(data)
            run = fields.get(_RUN_FIELD)
            return cls(
                expired=bool(fields["expired"]),
                valid_until_ms=int(fields["validUntil"]),
                owner=str(fields["owner"]),
                run=None if run is None else Owner.parse(json.dumps(run)),
            )
        except (ValueError, TypeError, AttributeError, KeyError):
            remedy = "Hudi cannot read it either: remove it when no writer runs"
            raise FormatError(STORAGE_LOCK_FILE, "is no lock file of Hudi", remedy) from None

    def encode(self) -> bytes:
        fields = {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner}
        run = {} if self.run is None else {_RUN_FIELD: asdict(self.run)}
        return json.dumps({**fields, **run}, separators=(",", ":")).encode()

    def is_free(self, now_ms: int) -> bool:
        """Return True if Hudi would take the lock; times in milliseconds since 1970.

        >>> lock = StorageLockFile(expired=False, valid_until_ms=1000, owner="a")
        >>> lock.is_free(1500), lock.is_free(1501)
        (False, True)
        """
        return self.expired or now_ms > self.valid_until_ms + _CLOCK_DRIFT_MS


def get_renewal_s(validity_s: int) -> int:
    """Return the seconds between two renewals of a lock.

    >>> get_renewal_s(300), get_renewal_s(10)
    (30, 1)
    """
    return min(_MAX_RENEWAL_S, validity_s // _RENEWALS)


def is_audit_enabled(switch: bytes) -> bool:
    """Return what the file that switches the audit says; False if it says nothing.

    >>> is_audit_enabled(b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}'), is_audit_enabled(b"")
    (True, False)
    """
    try:
        return json.loads(switch).get(_AUDIT_FIELD) is True
    except (ValueError, AttributeError):
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LockAudit:
    """The audit file of one time that a lock is held; ``lines`` are those so far."""

    owner: str
    start_ms: int
    validity_s: int
    lines: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return f"{AUDIT_FOLDER}/{self.start_ms}_{self.owner}.jsonl"

    def add(self, state: str, now_ms: int) -> LockAudit:
        """Return the audit with one more line; ``state``: START, RENEW or END."""
        line = {  # in the order in which Hudi's map lists them
            "transactionStartTime": self.start_ms,
            "lockHeld": True,
            "state": state,
            "lockExpiration": now_ms + self.validity_s * 1000,
            "ownerId": self.owner,
            "timestamp": now_ms,
        }
        lines = (*self.lines, json.dumps(line, separators=(",", ":")))
        return LockAudit(
            owner=self.owner, start_ms=self.start_ms, validity_s=self.validity_s, lines=lines
        )

    def encode(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines).encode()
