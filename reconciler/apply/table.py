"""One table during an apply: its storage, lock and timeline, and what may be asked of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo

from reconciler.apply.executor import Executor
from reconciler.apply.progress import Phase, Progress
from reconciler.errors import BlockedError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.owner import Owner
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.timeline import Timeline
from reconciler.plan.model import Note, TablePlan
from reconciler.planners.compose import plan_table
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.state.observe import observe
from reconciler.storage.api import Storage, StorageRef
from reconciler.transaction.lock import FileLock, NoLock, TableLock, lock_place
from reconciler.transaction.process import Clock, Process
from reconciler.transaction.publish import Publisher
from reconciler.transaction.pulse import Heartbeat, Pulse


class Opener(Protocol):
    """Opens a storage by location or reference; ``storage.open.open_storage`` is one."""

    def __call__(
        self, ref: StorageRef | str, options: Mapping[str, str] | None = None
    ) -> Storage: ...


class RefusedError(BlockedError):
    """Refusals of one table, each with its rule."""

    def __init__(self, notes: tuple[Note, ...]) -> None:
        super().__init__("; ".join(note.because for note in notes))
        self.notes = notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What an apply works with; none of it is part of the plan.

    ``now`` is what policies count from, the clock's time if None; instants always take the clock's.
    ``lock_wait_s`` bounds the waiting for a lock, ``pulse_s`` is the pause between signs of life.
    """

    open_storage: Opener
    executor: Executor
    clock: Clock
    process: Process
    new_token: Callable[[], str]
    progress: Progress
    parallelism: int | None = None
    now: datetime | None = None
    lock_wait_s: float = 60
    pulse_s: float = 60

    def moment(self) -> datetime:
        """What policies count from."""
        if self.now is not None:
            return self.now
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Look:
    """The table as it is now and the plan that follows from it, by the planner of the review."""

    state: TableState
    plan: TablePlan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """One run's hold on one table. ``plan`` is the reviewed one, ``digest`` the whole plan's."""

    tools: Tools
    plan: TablePlan
    digest: str
    spec: TableSpec
    storage: Storage
    properties: TableProperties
    owner: Owner
    lock: TableLock
    publisher: Publisher
    pulse: Pulse

    def reread(self) -> Timeline:
        return self.publisher.reread()

    def look(self) -> Look:
        """Observe and plan anew."""
        state = observe(self.storage, self.spec, observed_ms=self.tools.clock.now_ms())
        return Look(state=state, plan=plan_table(self.spec, state, self.tools.moment()))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the table's lock, renewed in the background."""
        with self.lock.hold(), self.pulse.beating(self.lock.renew):
            yield

    @contextlib.contextmanager
    def phase(self, phase: Phase, total: int | None = None) -> Iterator[Callable[[int], None]]:
        with self.tools.progress.phase(self.plan.name, phase, total) as advance:
            yield advance

    def heartbeat(self, instant: str) -> Heartbeat:
        return Heartbeat(self.storage, instant, self.owner, self.tools.clock)


def open_table(plan: TablePlan, spec: TableSpec, digest: str, tools: Tools) -> Table:
    """Open a table for an apply; nothing is written.

    Raises RefusedError where the spec lacks what only an apply needs: the lock and the zone.
    """
    storage = tools.open_storage(plan.path, spec.storage_options)
    properties = load_properties(storage)
    owner = tools.process.owner(tools.new_token())
    return Table(
        tools=tools,
        plan=plan,
        digest=digest,
        spec=spec,
        storage=storage,
        properties=properties,
        owner=owner,
        lock=_lock(spec, storage, owner, tools),
        publisher=Publisher(
            storage=storage,
            folder=properties.timeline_folder,
            layout=properties.layout,
            zone=_zone(spec, properties),
            clock=tools.clock,
            reread=lambda: load_timeline(storage, properties),
        ),
        pulse=Pulse(tools.pulse_s),
    )


def _lock(spec: TableSpec, storage: Storage, owner: Owner, tools: Tools) -> TableLock:
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is None:
        raise RefusedError(
            (
                Note(
                    "lock",
                    "apply needs spec.concurrency.lock: {provider: filesystem} as the writers have "
                    "it, or {provider: none} if nothing else ever writes this table",
                ),
            )
        )
    if lock.provider == "none":
        return NoLock()
    place, path = lock_place(
        lock.path, storage, lambda folder: tools.open_storage(folder, spec.storage_options)
    )
    return FileLock(
        place,
        path,
        owner,
        process=tools.process,
        clock=tools.clock,
        expire_minutes=lock.expire,
        wait_s=tools.lock_wait_s,
    )


def _zone(spec: TableSpec, properties: TableProperties) -> tzinfo:
    """The zone of the timeline's instants: the table's own, or the one that the spec declares."""
    if properties.timezone == "UTC":
        return UTC
    if spec.timezone is None:
        raise RefusedError(
            (
                Note(
                    "zone",
                    "the timeline's instants are in the local time of its writers: declare "
                    "spec.timezone, for example timezone: Europe/Berlin",
                ),
            )
        )
    return ZoneInfo(spec.timezone)
