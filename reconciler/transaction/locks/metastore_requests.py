"""Requests for the locks of a Hive Metastore, by its Thrift interface. Needs the extra `hive`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from reconciler.errors import CatalogError
from reconciler.hudi.timeline.metastore_lock import MetastoreLock, make_agent
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass
from reconciler.state.catalogs.hive import open_metastore


@dataclass(frozen=True, slots=True)
class MetastoreLocks:
    """The locks of one name; ``table``: ``database.table``, as the writers spell it.

    Each request has a connection of its own: the client must not be shared by threads, and locks
    are asked for seldom. Every method raises CatalogError if the metastore cannot be reached.
    """

    uri: str
    table: str

    @property
    def location(self) -> str:
        return f"{self.uri.partition(',')[0].rstrip('/')}/{self.table}"

    def request(self, owner: Owner) -> tuple[int, bool]:
        """Ask for the exclusive lock; return the number of the request and whether it is held."""
        from pymetastore.hive_metastore import ttypes  # noqa: PLC0415 (an extra)

        database, _, table = self.table.partition(".")
        component = ttypes.LockComponent(
            type=ttypes.LockType.EXCLUSIVE,
            level=ttypes.LockLevel.TABLE,
            dbname=database,
            tablename=table,
            operationType=ttypes.DataOperationType.NO_TXN,
        )
        request = ttypes.LockRequest(
            component=[component],
            user=owner.who,
            hostname=owner.host,
            agentInfo=make_agent(owner),
        )
        with self._connect() as client:
            answer = client.lock(request)
        return answer.lockid, answer.state == ttypes.LockState.ACQUIRED

    def list(self) -> Sequence[MetastoreLock]:
        """Return the holder and all that wait, in the order of their requests."""
        from pymetastore.hive_metastore import ttypes  # noqa: PLC0415 (an extra)

        database, _, table = self.table.partition(".")
        with self._connect() as client:
            # filters match case as the metastore stores names, which differs by its version
            found = client.show_locks(ttypes.ShowLocksRequest()).locks or ()
        wanted = (database.lower(), table.lower())
        return sorted(
            (
                MetastoreLock(
                    lock_id=each.lockid,
                    is_held=each.state == ttypes.LockState.ACQUIRED,
                    user=each.user or "",
                    host=each.hostname or "",
                    agent=each.agentInfo or "",
                    beat_ms=each.lastheartbeat or each.acquiredat or 0,
                )
                for each in found
                if ((each.dbname or "").lower(), (each.tablename or "").lower()) == wanted
            ),
            key=lambda lock: lock.lock_id,
        )

    def renew(self, lock_id: int) -> bool:
        """Send a heartbeat; return False if the metastore has ended the lock."""
        from pymetastore.hive_metastore import ttypes  # noqa: PLC0415 (an extra)

        ended = (ttypes.NoSuchLockException, ttypes.NoSuchTxnException, ttypes.TxnAbortedException)
        with self._connect() as client:
            try:
                client.heartbeat(ttypes.HeartbeatRequest(lockid=lock_id))
            except ended:
                return False
        return True

    def release(self, lock_id: int) -> None:
        """Free the lock, or take back a request; nothing happens if it is gone."""
        from pymetastore.hive_metastore import ttypes  # noqa: PLC0415 (an extra)

        with self._connect() as client:
            try:
                client.unlock(ttypes.UnlockRequest(lockid=lock_id))
            except ttypes.NoSuchLockException:
                return

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        connection = open_metastore(self.uri, {})
        try:
            with connection.explain_errors(f"the lock of {self.table}"):
                yield connection.client
        except CatalogError as error:
            remedy = _find_remedy(error.problem)
            raise CatalogError(error.catalog, f"{error.problem}{remedy}") from None
        finally:
            connection.close()


def _find_remedy(problem: str) -> str:
    if "Internal error" in problem or "MetaException" in problem:
        return "; see its log: locks need the tables of its transactions (hive-txn-schema-*.sql)"
    return "; check concurrency.lock.uri and the metastore's log" if "timeout" in problem else ""
