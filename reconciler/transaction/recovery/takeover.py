"""Tell from heartbeats if a pending instant's run is dead, and take its instant over."""

from __future__ import annotations

from functools import partial

from reconciler.errors import BusyError
from reconciler.hudi.load import load_heartbeat_owner
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass
from reconciler.state.model import (
    PendingClean,
    PendingClustering,
    PendingRollback,
)
from reconciler.storage.api import Storage
from reconciler.transaction.process import OWNER, Process, is_dead, read_store_clock_ms
from reconciler.transaction.session import TableSession


@dataclass(frozen=True, slots=True)
class LastHeartbeat:
    """The owner of a heartbeat, and when it was last written, epoch milliseconds."""

    owner: Owner
    at_ms: int

    def is_owner_dead(self, storage: Storage, process: Process, now_ms: int) -> bool:
        """Return True if its run is dead, by the store's clock as well; ``process``: this one."""
        ask_store = partial(read_store_clock_ms, storage)
        return is_dead(self.owner, self.at_ms, process, now_ms, ask_store)


def read_last_heartbeat(storage: Storage, instant: str) -> LastHeartbeat | None:
    """Return the last heartbeat of an instant; None if there is none or another program wrote it.

    Raises StorageError.
    """
    entry = storage.stat(heartbeat_path(instant))
    owner = load_heartbeat_owner(storage, instant) if entry is not None else None
    return None if entry is None or owner is None else LastHeartbeat(owner, entry.modified_ms)


def find_living_owner(
    storage: Storage,
    instant: str,
    *,
    requested_by: Owner | None,
    requested_ms: int,
    process: Process,
    now_ms: int,
) -> Owner | None:
    """Return who still works on a pending instant of reconciler, None if its owner is dead.

    The heartbeat names the last owner and the time; if there is none, the requested file does.
    ``requested_ms`` is that file's modification time, epoch milliseconds.
    """
    last = read_last_heartbeat(storage, instant)
    if last is None and requested_by is not None:
        last = LastHeartbeat(requested_by, requested_ms)
    if last is None or last.is_owner_dead(storage, process, now_ms):
        return None
    return last.owner


def take_over(
    session: TableSession,
    pending: PendingClean | PendingClustering | PendingRollback,
    *,
    known: Timeline,
    kind: str,
) -> None:
    """Check under the lock that no run works on a pending instant, and beat for it from now on.

    ``known``: the timeline that lists it; ``kind``: its name in messages. Raises BusyError naming
    its owner if that still runs, and if another writer has changed it since.
    """
    time = pending.instant

    def take() -> None:
        timeline = session.reload_timeline()
        before = [file for file in known.files if file.instant.requested == time]
        if before != [file for file in timeline.files if file.instant.requested == time]:
            raise BusyError(f"{kind} {time} is being worked on by another writer")
        owner = find_living_owner(
            session.storage,
            time,
            requested_by=Owner.parse(pending.extra.get(OWNER, "")),
            requested_ms=pending.started_ms,
            process=session.run_context.process,
            now_ms=session.clock.now_ms(),
        )
        if owner is not None:
            raise BusyError(f"{kind} {time} is the work of {owner}, which still runs")
        session.lock.confirm()
        session.make_heartbeat(time).start()

    session.run_locked(take)
