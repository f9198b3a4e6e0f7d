"""One table during an apply: its storage, lock and timeline, and what may be asked of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from reconciler.apply.checks import Look, refuse
from reconciler.apply.executor import Executor
from reconciler.apply.origin import Origin
from reconciler.apply.progress import Phase, Progress
from reconciler.delegate.model import Hudi
from reconciler.hudi.load import load_properties, load_timeline, newest_archived_time
from reconciler.hudi.owner import Owner
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.timeline import Timeline
from reconciler.parallel import Stop
from reconciler.plan.model import Step, TablePlan
from reconciler.plan.safety import timeline_zone
from reconciler.planners.compose import plan_table
from reconciler.spec.model import Option, Policy, TableSpec
from reconciler.state.observe import observe
from reconciler.storage.api import Storage, StorageRef
from reconciler.transaction.lock import FileLock, NoLock, TableLock, lock_place
from reconciler.transaction.process import Clock, Process
from reconciler.transaction.publish import Publisher
from reconciler.transaction.pulse import Heartbeat, Pulse

if TYPE_CHECKING:
    from reconciler.index.build import IndexBuilder
    from reconciler.rewrite.model import Rewriter

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
class Tools:
    """What an apply works with; none of it is part of the plan.

    ``now`` is what policies count from, the clock's time if None; instants always take the clock's.
    ``hudi`` executes what was requested where it is there (``--executor hudi``).
    ``stop`` is asked where work may end before its end. ``lock_wait_s`` bounds the waiting for a
    lock, and for writes to say where they go; ``pulse_s`` is the pause between signs of life.
    ``rewriter``: None where nothing can be rewritten. ``builder`` reads footers into an index;
    None: threads of this process do.
    """

    open_storage: Opener
    executor: Executor
    clock: Clock
    process: Process
    new_token: Callable[[], str]
    progress: Progress
    hudi: Hudi | None = None
    stop: Stop = field(default_factory=Stop)
    now: datetime | None = None
    lock_wait_s: float = 60
    pulse_s: float = 60
    origin: Origin = field(default_factory=Origin)
    rewriter: Rewriter | None = None
    builder: IndexBuilder | None = None

    @contextlib.contextmanager
    def phase(
        self, table: str, phase: Phase, total: int | None = None
    ) -> Iterator[Callable[[int], None]]:
        """A phase of a table; it does not begin when the apply was told to stop."""
        self.stop.check()
        with self.progress.phase(table, phase, total) as advance:
            yield advance

    def moment(self) -> datetime:
        """What policies count from."""
        if self.now is not None:
            return self.now
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)


@dataclass(slots=True)
class Waited:
    """How long a run has waited for writes to say where they go."""

    seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """One run's hold on one table. ``plan`` is the reviewed one, ``digest`` the whole plan's.

    ``clustered``: the clusterings that this run has completed, which it adds to; ``waited`` it
    adds to likewise.
    """

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
    clustered: set[str] = field(default_factory=set)
    waited: Waited = field(default_factory=Waited)

    def reread(self) -> Timeline:
        return self.publisher.reread()

    def look(self) -> Look:
        """Observe and plan anew; raises RefusedError, BusyError for what stops an apply."""
        return look_at(self.storage, self.spec, self.tools, self.plan.steps, self.clustered)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the table's lock, renewed in the background."""
        with self.lock.hold(), self.pulse.beating(self.lock.renew):
            yield

    @contextlib.contextmanager
    def phase(self, phase: Phase, total: int | None = None) -> Iterator[Callable[[int], None]]:
        with self.tools.phase(self.plan.name, phase, total) as advance:
            yield advance

    def heartbeat(self, instant: str) -> Heartbeat:
        return Heartbeat(self.storage, instant, self.owner, self.tools.clock)


def look_at(
    storage: Storage,
    spec: TableSpec,
    tools: Tools,
    reviewed: Sequence[Step],
    clustered: Collection[str] = (),
) -> Look:
    """Observe a table and plan it anew; raises RefusedError, BusyError for what stops an apply.

    ``reviewed``: the steps that are to run.

    What the ``clustered`` instants of this very run replaced is planned as if it were not: its old
    file slices were reviewed together with the clustering, and expire as they did then. Else a
    clean would leave all of them to the end of the replaced groups.
    """
    now = tools.moment()
    state = observe(storage, spec, observed_ms=tools.clock.now_ms())
    planned, asked = state, spec
    if spec.queries and not clustered:
        from reconciler.foresight.ask import with_foresight  # noqa: PLC0415 (few specs have queries)

        planned = with_foresight(storage, spec, state, only_max_scan=True)
    if clustered:
        left = {group: time for group, time in state.replaced.items() if time not in clustered}
        planned, asked = replace(state, replaced=left), replace(spec, clustering=None)
    look = Look(state=state, plan=plan_table(asked, planned, now))
    refuse(look, spec, load_properties(storage), now, reviewed)
    return look


def open_table(
    plan: TablePlan, spec: TableSpec, storage: Storage, digest: str, tools: Tools
) -> tuple[Table, Look]:
    """A table and a first look at it; nothing is written. Raises as ``look_at``."""
    look = look_at(storage, spec, tools, plan.steps)
    properties = load_properties(storage)
    owner = tools.process.owner(tools.new_token())
    zone = timeline_zone(spec, look.state)
    assert zone is not None, "an apply without a zone is refused before"
    table = Table(
        tools=tools,
        plan=plan,
        digest=digest,
        spec=spec,
        storage=storage,
        properties=properties,
        owner=owner,
        lock=lock_of(spec, storage, owner, tools),
        publisher=Publisher(
            storage=storage,
            folder=properties.timeline_folder,
            layout=properties.layout,
            zone=zone,
            clock=tools.clock,
            reread=lambda: load_timeline(storage, properties),
            archived_newest=_archived_newest(storage, properties, look.state.timeline),
            reach_ms=_reach_s(spec) * 1000,
        ),
        pulse=Pulse(_pause(spec, tools)),
    )
    return table, look


def _reach_s(spec: TableSpec) -> int:
    """How long before now the time of a rewrite may lie.

    Cleans by hours count from it how long the replaced files stay, so it is a small share of them.
    """
    retention = spec.retention
    if retention is None or retention.policy is not Policy.HOURS:
        return _LONGEST_REACH_S
    return min(_LONGEST_REACH_S, retention.keep * 3600 // 4)


def _pause(spec: TableSpec, tools: Tools) -> float:
    """Seconds between signs of life: a lock that expires is renewed three times before it does."""
    lock = spec.concurrency.lock if spec.concurrency else None
    return min(tools.pulse_s, lock.expire * 20) if lock and lock.expire else tools.pulse_s


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


def lock_of(spec: TableSpec, storage: Storage, owner: Owner, tools: Tools) -> TableLock:
    """The lock that a spec declares; none where it declares none."""
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is None or lock.provider == "none":
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
        on_wait=lambda holder: tools.progress.waits(spec.name, f"the lock, held by {holder}"),
        on_pause=tools.stop.check,
    )
