"""Open a table for a run that writes to it: storage, lock, timeline, heartbeats."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from datetime import tzinfo
from functools import partial
from typing import Final, Protocol, TypeVar, assert_never

from reconciler.errors import (
    AlreadyExistsError,
    PermissionDeniedError,
    ReconcilerError,
    StorageError,
    VanishedLockError,
)
from reconciler.hudi.load import (
    find_newest_archived_time,
    load_properties,
    read_instant_file,
)
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline import dynamodb_lock, metastore_lock
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, State
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.storage_lock import get_renewal_s
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import Concurrency, Lock, Option, Policy, TableSpec
from reconciler.storage.api import Storage, StorageRef
from reconciler.transaction.heartbeat import Heartbeat, HeartbeatThread
from reconciler.transaction.locks.declared_lock import (
    find_declared_lock,
    find_dynamodb_place,
    find_zookeeper_place,
    get_validity_s,
    open_metastore_locks,
)
from reconciler.transaction.locks.dynamodb_lock import DynamodbLock
from reconciler.transaction.locks.dynamodb_rows import connect_dynamodb
from reconciler.transaction.locks.file_lock import FileLock, locate_lock
from reconciler.transaction.locks.metastore_lock import MetastoreLock
from reconciler.transaction.locks.storage_lock import StorageLock
from reconciler.transaction.locks.table_lock import NoLock, TableLock
from reconciler.transaction.locks.zookeeper_lock import ZookeeperLock
from reconciler.transaction.locks.zookeeper_nodes import connect_zookeeper
from reconciler.transaction.process import Clock, Process
from reconciler.transaction.publish import Publisher
from reconciler.transaction.upgrades import (
    check_same_timeline,
    is_same_timeline,
    load_timeline_in_place,
)

#: no healthy writer announces a write longer than this after the write's time
_MAX_BACKDATING_S: Final = 3600
#: how often a lock may vanish under one piece of work
_VANISHED_LOCKS: Final = 7
#: after these a store has certainly not written a file
_REFUSALS: Final = (AlreadyExistsError, PermissionDeniedError)

_T = TypeVar("_T")


class StorageOpener(Protocol):
    """Opens a storage by location or reference; ``runtime.open_storage`` is one.

    Raises SpecError if an option is in a variable that is not set.
    """

    def __call__(
        self, ref: StorageRef | str, options: Mapping[str, Option] | None = None
    ) -> Storage: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The services and settings with which a run works on tables.

    ``lock_wait_s`` bounds the wait for a lock, ``heartbeat_s`` is the time between heartbeats.
    ``report_wait`` is called once a wait with a table's name and what it waits for. ``check_stop``
    is called when a run may end, and raises if it has to.
    """

    open_storage: StorageOpener
    clock: Clock
    process: Process
    report_wait: Callable[[str, str], None] = lambda _name, _what: None
    check_stop: Callable[[], None] = lambda: None
    lock_wait_s: float = 60
    heartbeat_s: float = 60


@dataclass(slots=True)
class WaitTime:
    """The time that a session has waited for writes to say where they go."""

    seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSession:
    """One run's work on one table: its storage, lock, timeline and heartbeats.

    ``name``: the spec's; ``stale_after``: seconds. ``waited`` is added to.
    """

    name: str
    storage: Storage
    properties: TableProperties
    owner: Owner
    lock: TableLock
    publisher: Publisher
    heartbeats: HeartbeatThread
    clock: Clock
    stale_after: int
    run_context: RunContext
    waited: WaitTime = field(default_factory=WaitTime)

    def reload_timeline(self) -> Timeline:
        """Return the timeline as it is now; raises as ``load_timeline_in_place``."""
        return self.publisher.reload_timeline()

    def reload_properties(self) -> TableProperties:
        """Return the properties as they are now; StaleError if the table was upgraded since."""
        properties = load_properties(self.storage)
        check_same_timeline(self.name, self.properties, properties)
        return properties

    def follow_upgrade(self) -> TableSession:
        """Return a session on the timeline as an upgrade has left it; otherwise this one.

        It is for taking back what an upgrade has moved.
        """
        properties = load_properties(self.storage)
        if is_same_timeline(self.properties, properties):
            return self
        publisher = replace(
            self.publisher,
            folder=properties.timeline_folder,
            layout=properties.layout,
            reload_timeline=partial(load_timeline_in_place, self.name, self.storage, properties),
        )
        return replace(self, properties=properties, publisher=publisher)

    def read_instant(self, file: TimelineFile) -> tuple[bytes, str]:
        """Return the content and the path of a timeline file; raises as ``read_instant_file``."""
        return read_instant_file(self.storage, self.properties, file)

    @contextlib.contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the table's lock inside the block, and renew it in the background."""
        with self.lock.acquire(), self.heartbeats.repeat(self.lock.renew):
            yield

    def run_locked(self, work: Callable[[], _T]) -> _T:
        """Return the result of ``work``, which is called under the table's lock.

        It looks at the table, and confirms the lock before it publishes anything. It is called
        again if the lock vanished by then, because others may have held it meanwhile.
        """
        for _attempt in range(_VANISHED_LOCKS):
            with contextlib.suppress(VanishedLockError), self.hold_lock():
                return work()
        with self.hold_lock():
            return work()

    def make_heartbeat(self, instant: str) -> Heartbeat:
        return Heartbeat(self.storage, instant, self.owner, self.clock)

    def request_instant(self, action: Action, timeline: Timeline, data: bytes) -> str:
        """Request an instant whose requested file names the owner, beat for it, and return it.

        The table's lock is held, so that nobody takes the instant over before the first heartbeat.
        The heartbeat comes second: an inflight file without one is that of another writer. Raises
        as ``Publisher.request``.
        """
        time = self.publisher.request(action, timeline, data)
        self.make_heartbeat(time).start()
        return time

    def request_write(self, action: Action, timeline: Timeline, data: bytes) -> str:
        """Request a new write of rows, and return its instant.

        Its requested file cannot name the owner, so its heartbeat is written first and does. The
        table's lock is held. Raises as ``Publisher.request``. A writer without a lock may have
        taken the same time: neither its instant nor its heartbeat is touched then. If the store
        lost the answer to a requested file that it wrote, the heartbeat stays: by it, the next run
        knows whose the file is.
        """
        beaten: dict[str, Heartbeat] = {}

        def claim(time: str) -> bool:
            heartbeat = self.make_heartbeat(time)
            try:
                heartbeat.create()
            except AlreadyExistsError:
                return False
            beaten[time] = heartbeat
            return True

        try:
            return self.publisher.request(action, timeline, data, keeps_rows=False, claim=claim)
        except ReconcilerError as error:
            for time, heartbeat in beaten.items():
                if not self._may_be_requested(action, time, error):
                    with contextlib.suppress(ReconcilerError):
                        heartbeat.remove()
            raise

    def _may_be_requested(self, action: Action, time: str, error: ReconcilerError) -> bool:
        """Return whether a store that gave an error may have written the requested file."""
        if not isinstance(error, StorageError) or isinstance(error, _REFUSALS):
            return False
        try:
            return self.reload_timeline().find_file(time, action, State.REQUESTED) is not None
        except ReconcilerError:
            return True


def open_session(  # noqa: PLR0913 (facts about one table)
    spec: TableSpec,
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    zone: tzinfo,
    *,
    owner: Owner,
    context: RunContext,
) -> TableSession:
    """Open a session on a table; nothing is written. ``zone``: the zone of instants."""
    return TableSession(
        name=spec.name,
        storage=storage,
        properties=properties,
        owner=owner,
        lock=open_lock(spec, storage, owner, context),
        publisher=Publisher(
            storage=storage,
            folder=properties.timeline_folder,
            layout=properties.layout,
            zone=zone,
            clock=context.clock,
            reload_timeline=partial(load_timeline_in_place, spec.name, storage, properties),
            archived_newest=_read_archived_newest(storage, properties, timeline),
            backdating_ms=_get_backdating_s(spec) * 1000,
        ),
        heartbeats=HeartbeatThread(get_heartbeat_interval(spec, context)),
        clock=context.clock,
        stale_after=(spec.concurrency or Concurrency()).stale_after,
        run_context=context,
    )


def open_lock(spec: TableSpec, storage: Storage, owner: Owner, context: RunContext) -> TableLock:
    """Return the lock that a spec declares, or ``NoLock`` if it declares none."""
    lock = find_declared_lock(spec)
    if lock is None:
        return NoLock()

    def report(holder: str) -> None:
        context.report_wait(spec.name, f"the lock, held by {holder}")

    if lock.provider == "storage":
        return StorageLock(
            storage,
            owner,
            process=context.process,
            clock=context.clock,
            validity_s=get_validity_s(lock),
            wait_s=context.lock_wait_s,
            on_wait=report,
            on_pause=context.check_stop,
        )
    if (served := _open_served_lock(lock, owner, context, report)) is not None:
        return served
    place, path = locate_lock(
        lock.path, storage, lambda folder: context.open_storage(folder, spec.storage_options)
    )
    return FileLock(
        place,
        path,
        owner,
        process=context.process,
        clock=context.clock,
        expire_minutes=lock.expire,
        wait_s=context.lock_wait_s,
        on_wait=report,
        on_pause=context.check_stop,
    )


def _open_served_lock(
    lock: Lock, owner: Owner, context: RunContext, report: Callable[[str], None]
) -> TableLock | None:
    """Return a lock that servers of its own keep, None if files of the table do."""
    make: Callable[..., TableLock]
    match lock.provider:
        case "hivemetastore":
            make = partial(MetastoreLock, open_metastore_locks(lock))
        case "dynamodb":
            make = partial(DynamodbLock, connect_dynamodb(find_dynamodb_place(lock)))
        case "zookeeper":
            place = find_zookeeper_place(lock)
            make = partial(ZookeeperLock, place.location, partial(connect_zookeeper, place))
        case "filesystem" | "storage" | "none":
            return None
        case _:
            assert_never(lock.provider)
    return make(
        owner,
        process=context.process,
        clock=context.clock,
        wait_s=context.lock_wait_s,
        on_wait=report,
        on_pause=context.check_stop,
    )


def _get_backdating_s(spec: TableSpec) -> int:
    """Return how long before now the time of a rewrite may lie.

    A clean by hours keeps replaced files that long from that time on, so this is a small share.
    """
    retention = spec.retention
    if retention is None or retention.policy is not Policy.HOURS:
        return _MAX_BACKDATING_S
    return min(_MAX_BACKDATING_S, retention.keep * 3600 // 4)


def get_heartbeat_interval(spec: TableSpec, context: RunContext) -> float:
    """Return the seconds between heartbeats: a lock is renewed three times before it expires."""
    lock = find_declared_lock(spec)
    if lock is not None and lock.provider == "storage":
        return min(context.heartbeat_s, get_renewal_s(get_validity_s(lock)))
    if lock is not None and lock.provider == "hivemetastore":
        return min(context.heartbeat_s, metastore_lock.RENEWAL_S)
    if lock is not None and lock.provider == "dynamodb":
        return min(context.heartbeat_s, dynamodb_lock.RENEWAL_S)
    return (
        min(context.heartbeat_s, lock.expire * 20) if lock and lock.expire else context.heartbeat_s
    )


def _read_archived_newest(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> str | None:
    """Return the greatest archived time if it can matter, otherwise None.

    The archiver takes the oldest instants. The archive of layout 1 has to be read whole, so it is
    read only when no instant is active.
    """
    if properties.layout == 1 and timeline.newest_time is not None:
        return None
    return find_newest_archived_time(storage, properties)
