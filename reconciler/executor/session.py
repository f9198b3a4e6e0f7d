"""One table during an apply: its storage, lock and timeline, and what may be asked of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reconciler.executor.deletion import FileDeleter
from reconciler.executor.gate import FreshPlan, check_refusals
from reconciler.executor.origin import Origin
from reconciler.executor.progress import Phase, Progress
from reconciler.hudi.load import load_properties
from reconciler.hudi_engine.executor import HudiExecutor
from reconciler.planners.compose import plan_table
from reconciler.plans.model import Step, TablePlan
from reconciler.plans.refusals import find_timeline_zone
from reconciler.spec.model import TableSpec
from reconciler.state.observe import observe
from reconciler.storage.api import Storage
from reconciler.storage.parallel import StopRequest
from reconciler.transaction.process import Clock, Process
from reconciler.transaction.session import RunContext, StorageOpener, TableSession, open_session

if TYPE_CHECKING:
    from reconciler.index.build import IndexBuilder
    from reconciler.rewrite.model import Rewriter


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyContext:
    """What an apply works with; none of it is part of the plan.

    ``now`` is what policies count from, the clock's time if None; instants always take the clock's.
    ``hudi`` executes what was requested where it is there (``--executor hudi``).
    ``stop`` is asked where work may end before its end. ``lock_wait_s`` bounds the waiting for a
    lock, and for writes to say where they go; ``heartbeat_s`` is the pause between signs of life.
    ``rewriter``: None where nothing can be rewritten. ``builder`` reads footers into an index;
    None: threads of this process do.
    """

    open_storage: StorageOpener
    deleter: FileDeleter
    clock: Clock
    process: Process
    new_token: Callable[[], str]
    progress: Progress
    hudi: HudiExecutor | None = None
    stop: StopRequest = field(default_factory=StopRequest)
    now: datetime | None = None
    lock_wait_s: float = 60
    heartbeat_s: float = 60
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
    def run_context(self) -> RunContext:
        """What tables are held with."""
        return RunContext(
            open_storage=self.open_storage,
            clock=self.clock,
            process=self.process,
            report_wait=self.progress.report_wait,
            check_stop=self.stop.check,
            lock_wait_s=self.lock_wait_s,
            heartbeat_s=self.heartbeat_s,
        )

    def get_policy_time(self) -> datetime:
        """What policies count from."""
        if self.now is not None:
            return self.now
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)


@dataclass(slots=True)
class WaitTime:
    """How long a run has waited for writes to say where they go."""

    seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApplySession(TableSession):
    """One apply's hold on one table. ``plan`` is the reviewed one, ``digest`` the whole plan's.

    ``clustered``: the clusterings that this run has completed, which it adds to; ``waited`` it
    adds to likewise.
    """

    context: ApplyContext
    plan: TablePlan
    digest: str
    spec: TableSpec
    clustered: set[str] = field(default_factory=set)
    waited: WaitTime = field(default_factory=WaitTime)

    def make_fresh_plan(self) -> FreshPlan:
        """Observe and plan anew; raises RefusedError, BusyError for what stops an apply."""
        return make_fresh_plan(
            self.storage, self.spec, self.context, self.plan.steps, self.clustered
        )

    @contextlib.contextmanager
    def phase(self, phase: Phase, total: int | None = None) -> Iterator[Callable[[int], None]]:
        with self.context.phase(self.plan.name, phase, total) as advance:
            yield advance


def make_fresh_plan(
    storage: Storage,
    spec: TableSpec,
    context: ApplyContext,
    reviewed: Sequence[Step],
    clustered: Collection[str] = (),
) -> FreshPlan:
    """Observe a table and plan it anew; raises RefusedError, BusyError for what stops an apply.

    ``reviewed``: the steps that are to run.

    What the ``clustered`` instants of this very run replaced is planned as if it were not: its old
    file slices were reviewed together with the clustering, and expire as they did then. Else a
    clean would leave all of them to the end of the replaced groups.
    """
    now = context.get_policy_time()
    observed_ms = context.clock.now_ms()
    state = observe(storage, spec, observed_ms=observed_ms, check_process=context.process.is_alive)
    planned, asked = state, spec
    if spec.queries and not clustered:
        from reconciler.state.sampling.forecast_input import add_forecast_input  # noqa: PLC0415 (few specs have queries)

        planned = add_forecast_input(storage, spec, state, only_max_scan=True)
    if clustered:
        left = {group: time for group, time in state.replaced.items() if time not in clustered}
        planned, asked = replace(state, replaced=left), replace(spec, clustering=None)
    look = FreshPlan(state=state, plan=plan_table(asked, planned, now))
    check_refusals(look, spec, load_properties(storage), now, reviewed)
    return look


def open_apply_session(
    plan: TablePlan, spec: TableSpec, storage: Storage, digest: str, context: ApplyContext
) -> tuple[ApplySession, FreshPlan]:
    """A table and a first look at it; nothing is written. Raises as ``make_fresh_plan``."""
    look = make_fresh_plan(storage, spec, context, plan.steps)
    properties = load_properties(storage)
    zone = find_timeline_zone(spec, look.state)
    assert zone is not None, "an apply without a zone is refused before"
    hold = open_session(
        spec,
        storage,
        properties,
        look.state.timeline,
        zone,
        owner=context.process.make_owner(context.new_token()),
        context=context.run_context,
    )
    parts = {one.name: getattr(hold, one.name) for one in fields(hold)}
    return ApplySession(context=context, plan=plan, digest=digest, spec=spec, **parts), look
