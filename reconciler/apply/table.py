"""One table during an apply: its storage, lock and timeline, and what may be asked of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reconciler.apply.checks import Look, refuse
from reconciler.apply.executor import Executor
from reconciler.apply.origin import Origin
from reconciler.apply.progress import Phase, Progress
from reconciler.delegate.model import Hudi
from reconciler.hudi.load import load_properties
from reconciler.parallel import Stop
from reconciler.plan.model import Step, TablePlan
from reconciler.plan.safety import timeline_zone
from reconciler.planners.compose import plan_table
from reconciler.spec.model import TableSpec
from reconciler.state.observe import observe
from reconciler.storage.api import Storage
from reconciler.transaction.hold import Hold, Means, Opener, open_hold
from reconciler.transaction.process import Clock, Process

if TYPE_CHECKING:
    from reconciler.index.build import IndexBuilder
    from reconciler.rewrite.model import Rewriter


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

    @property
    def means(self) -> Means:
        """What tables are held with."""
        return Means(
            open_storage=self.open_storage,
            clock=self.clock,
            process=self.process,
            waits=self.progress.waits,
            check=self.stop.check,
            lock_wait_s=self.lock_wait_s,
            pulse_s=self.pulse_s,
        )

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
class Table(Hold):
    """One apply's hold on one table. ``plan`` is the reviewed one, ``digest`` the whole plan's.

    ``clustered``: the clusterings that this run has completed, which it adds to; ``waited`` it
    adds to likewise.
    """

    tools: Tools
    plan: TablePlan
    digest: str
    spec: TableSpec
    clustered: set[str] = field(default_factory=set)
    waited: Waited = field(default_factory=Waited)

    def look(self) -> Look:
        """Observe and plan anew; raises RefusedError, BusyError for what stops an apply."""
        return look_at(self.storage, self.spec, self.tools, self.plan.steps, self.clustered)

    @contextlib.contextmanager
    def phase(self, phase: Phase, total: int | None = None) -> Iterator[Callable[[int], None]]:
        with self.tools.phase(self.plan.name, phase, total) as advance:
            yield advance


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
    observed_ms = tools.clock.now_ms()
    state = observe(storage, spec, observed_ms=observed_ms, lives=tools.process.lives)
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
    zone = timeline_zone(spec, look.state)
    assert zone is not None, "an apply without a zone is refused before"
    hold = open_hold(
        spec,
        storage,
        properties,
        look.state.timeline,
        zone,
        owner=tools.process.owner(tools.new_token()),
        means=tools.means,
    )
    parts = {one.name: getattr(hold, one.name) for one in fields(hold)}
    return Table(tools=tools, plan=plan, digest=digest, spec=spec, **parts), look
