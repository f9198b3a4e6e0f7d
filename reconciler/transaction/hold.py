"""One run's hold on one table: its storage, lock and timeline, and what may be asked of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final, Protocol

from reconciler.errors import ReconcilerError
from reconciler.hudi.instant import Action
from reconciler.hudi.load import load_timeline, newest_archived_time
from reconciler.hudi.owner import Owner
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.timeline import Timeline
from reconciler.spec.model import Concurrency, Option, Policy, TableSpec
from reconciler.storage.api import Storage, StorageRef
from reconciler.transaction.lock import FileLock, NoLock, TableLock, lock_place
from reconciler.transaction.process import Clock, Process
from reconciler.transaction.publish import Publisher
from reconciler.transaction.pulse import Heartbeat, Pulse

#: writes that are announced so long after their time are none of a healthy table
_LONGEST_REACH_S: Final = 3600


class Opener(Protocol):
    """Opens a storage by location or reference; ``world.open_storage`` is one.

    Raises SpecError where an option is in a variable that is not set.
    """

    def __call__(
        self, ref: StorageRef | str, options: Mapping[str, Option] | None = None
    ) -> Storage: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a run holds its tables with.

    ``lock_wait_s`` bounds the waiting for a lock, ``pulse_s`` is the pause between signs of life.
    ``waits`` hears once a wait of a table's name and of what it waits for; ``check`` is called
    where a run may end, and raises where it was told to.
    """

    open_storage: Opener
    clock: Clock
    process: Process
    waits: Callable[[str, str], None]
    check: Callable[[], None]
    lock_wait_s: float = 60
    pulse_s: float = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hold:
    """A table that a run may write to. ``name``: the spec's, ``stale_after``: its seconds."""

    name: str
    storage: Storage
    properties: TableProperties
    owner: Owner
    lock: TableLock
    publisher: Publisher
    pulse: Pulse
    clock: Clock
    stale_after: int

    def reread(self) -> Timeline:
        return self.publisher.reread()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the table's lock, renewed in the background."""
        with self.lock.hold(), self.pulse.beating(self.lock.renew):
            yield

    def heartbeat(self, instant: str) -> Heartbeat:
        return Heartbeat(self.storage, instant, self.owner, self.clock)

    def announce(self, action: Action, timeline: Timeline, data: bytes) -> str:
        """Request a new write of rows; its file has no place for whose it is, a heartbeat has.

        It beats before. The table's lock is held. Raises as ``Publisher.request``, which a writer
        that needs no lock may be ahead of: neither its instant nor its heartbeat is touched.
        """
        beaten: list[Heartbeat] = []

        def beat(time: str) -> None:
            heartbeat = self.heartbeat(time)
            heartbeat.begin()
            beaten.append(heartbeat)

        try:
            return self.publisher.request(action, timeline, data, keeps_rows=False, before=beat)
        except ReconcilerError:
            for heartbeat in beaten:
                with contextlib.suppress(ReconcilerError):
                    heartbeat.remove()
            raise


def open_hold(  # noqa: PLR0913 (facts about one table)
    spec: TableSpec,
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    zone: tzinfo,
    *,
    owner: Owner,
    means: Means,
) -> Hold:
    """A hold on a table as it is; nothing is written. ``zone``: of the timeline's instants."""
    return Hold(
        name=spec.name,
        storage=storage,
        properties=properties,
        owner=owner,
        lock=lock_of(spec, storage, owner, means),
        publisher=Publisher(
            storage=storage,
            folder=properties.timeline_folder,
            layout=properties.layout,
            zone=zone,
            clock=means.clock,
            reread=lambda: load_timeline(storage, properties),
            archived_newest=_archived_newest(storage, properties, timeline),
            reach_ms=_reach_s(spec) * 1000,
        ),
        pulse=Pulse(_pause(spec, means)),
        clock=means.clock,
        stale_after=(spec.concurrency or Concurrency()).stale_after,
    )


def lock_of(spec: TableSpec, storage: Storage, owner: Owner, means: Means) -> TableLock:
    """The lock that a spec declares; none where it declares none."""
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is None or lock.provider == "none":
        return NoLock()
    place, path = lock_place(
        lock.path, storage, lambda folder: means.open_storage(folder, spec.storage_options)
    )
    return FileLock(
        place,
        path,
        owner,
        process=means.process,
        clock=means.clock,
        expire_minutes=lock.expire,
        wait_s=means.lock_wait_s,
        on_wait=lambda holder: means.waits(spec.name, f"the lock, held by {holder}"),
        on_pause=means.check,
    )


def _reach_s(spec: TableSpec) -> int:
    """How long before now the time of a rewrite may lie.

    Cleans by hours count from it how long the replaced files stay, so it is a small share of them.
    """
    retention = spec.retention
    if retention is None or retention.policy is not Policy.HOURS:
        return _LONGEST_REACH_S
    return min(_LONGEST_REACH_S, retention.keep * 3600 // 4)


def _pause(spec: TableSpec, means: Means) -> float:
    """Seconds between signs of life: a lock that expires is renewed three times before it does."""
    lock = spec.concurrency.lock if spec.concurrency else None
    return min(means.pulse_s, lock.expire * 20) if lock and lock.expire else means.pulse_s


def _archived_newest(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> str | None:
    """The greatest archived time where it can matter.

    The archiver takes the oldest instants, so with layout 1, whose archive has to be read whole, it
    is asked for only when nothing is active.
    """
    if properties.layout == 1 and timeline.newest_time is not None:
        return None
    return newest_archived_time(storage, properties)
