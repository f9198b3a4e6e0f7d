"""Open a table for an apply, and plan it afresh."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NoReturn, TypeVar

from reconciler.executor.deletion import FileDeleter
from reconciler.executor.fresh_plan import FreshPlan, check_refusals
from reconciler.executor.gate import RefusedError
from reconciler.executor.origin import Origin
from reconciler.executor.progress import Phase, Progress
from reconciler.executor.result import StepOutcome
from reconciler.hudi.load import PROPERTIES
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi_engine.executor import HudiExecutor
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.compose import plan_table
from reconciler.plans.model import MetadataStep, Step, StepKind, TablePlan
from reconciler.plans.refusals import find_timeline_zone
from reconciler.spec.model import Lock, TableSpec
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.model import TableState
from reconciler.state.observe import observe
from reconciler.storage.api import Advance, Storage
from reconciler.storage.parallel import StopRequest
from reconciler.transaction.locks.declared_lock import find_declared_lock
from reconciler.transaction.process import Clock, Process, make_ownership_metadata
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Change, RequestedInstant
from reconciler.transaction.session import RunContext, StorageOpener, TableSession, open_session

if TYPE_CHECKING:
    from reconciler.index.build import IndexBuilder
    from reconciler.rewrite.model import Rewriter
    from reconciler.state.catalogs.open import CatalogOpener


SPEC_COMMIT: Final = "reconciler.spec.commit"
ACTOR: Final = "reconciler.actor"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyContext:
    """The services and settings of an apply; none of it is part of the plan.

    ``now``: what policies count from, the clock's time if None; instants always take the clock's.
    ``hudi`` executes what was requested, if there is one (``--executor hudi``). ``stop`` is asked
    at points where work may end early. ``lock_wait_s`` bounds the wait for a lock, and for writes
    to say where they go. ``heartbeat_s``: time between heartbeats. ``rewriter``: None if nothing
    can be rewritten. ``builder`` reads footers into an index; None: threads of this process do.
    ``wait_for_workers`` returns when ``deleter``, ``rewriter`` and ``builder`` can work, or raises
    ReconcilerError; a table is not changed before. ``open_catalog``: opens the catalog of a table;
    None: no catalog is synced.
    """

    open_storage: StorageOpener
    deleter: FileDeleter
    clock: Clock
    process: Process
    new_token: Callable[[], str]
    progress: Progress = field(default_factory=Progress)
    hudi: HudiExecutor | None = None
    stop: StopRequest = field(default_factory=StopRequest)
    now: datetime | None = None
    lock_wait_s: float = 60
    heartbeat_s: float = 60
    origin: Origin = field(default_factory=Origin)
    rewriter: Rewriter | None = None
    builder: IndexBuilder | None = None
    wait_for_workers: Callable[[], object] = lambda: None
    open_catalog: CatalogOpener | None = None

    @contextlib.contextmanager
    def phase(self, table: str, phase: Phase, total: int | None = None) -> Iterator[Advance]:
        """Report a phase of a table; it does not begin when the apply has to stop."""
        self.stop.check()
        with self.progress.phase(table, phase, total) as advance:
            yield advance

    @property
    def run_context(self) -> RunContext:
        """Return what sessions on tables need."""
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
        """Return the time that policies count from."""
        if self.now is not None:
            return self.now
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApplySession(TableSession):
    """One apply's work on one table. ``plan`` is the reviewed one, ``digest`` the whole plan's.

    ``replacements``: completed clusterings and deletions of partitions that belong to the plan.
    They were made by this run, which adds to them, by an earlier apply of the plan, or by another
    writer whose clustering the plan finishes.
    """

    context: ApplyContext
    plan: TablePlan
    digest: str
    spec: TableSpec
    replacements: set[str] = field(default_factory=set)

    @property
    def declared_lock(self) -> Lock | None:
        """The lock of the spec, with its place; None without one, or for a single writer."""
        return find_declared_lock(self.spec)

    def make_extra(self) -> dict[str, str]:
        """Return the extra metadata that every instant of an apply has: its owner, plan, spec."""
        origin = self.context.origin
        known = {SPEC_COMMIT: origin.spec_commit, ACTOR: origin.actor}
        return {
            PLAN_DIGEST: self.digest,
            **make_ownership_metadata(self.plan.spec_digest, self.owner),
            **{key: text for key, text in known.items() if text},
        }

    def make_fresh_plan(self) -> FreshPlan:
        """Observe the table and plan it again; raises RefusedError and BusyError."""
        return make_fresh_plan(
            self.storage,
            self.spec,
            self.context,
            self.plan.steps,
            self.replacements,
            verifies=any(isinstance(step, MetadataStep) for step in self.plan.steps),
        )

    def observe(self) -> FreshPlan:
        """Make a fresh plan, and report that as a phase."""
        with self.phase("observe"):
            return self.make_fresh_plan()

    def phase(self, phase: Phase, total: int | None = None) -> AbstractContextManager[Advance]:
        return self.context.phase(self.plan.name, phase, total)


class ApplyChange:
    """The common part of an apply's changes: their phases, and the fresh plan.

    ``fresh``: one that was made just now, which is used once; None if there is none.
    """

    session: ApplySession
    fresh: FreshPlan | None = None
    #: the kind of step that a refusal must name to forbid this change
    refusable: ClassVar[StepKind | None] = None

    def phase(self, name: Phase) -> AbstractContextManager[Advance]:
        return self.session.phase(name)

    def stays_pending(self, outcome: Any) -> bool:
        return isinstance(outcome, StepOutcome) and outcome.how == "inflight"

    def take_fresh_plan(self) -> FreshPlan:
        """Return the fresh plan that there is, or make one.

        Raises as ``make_fresh_plan``, and RefusedError if it refuses this kind of step.
        """
        fresh, self.fresh = self.fresh, None
        fresh = fresh or self.session.observe()
        notes = tuple(note for note in fresh.plan.refusals if note.step == self.refusable)
        if self.refusable is not None and notes:
            raise RefusedError(notes)
        return fresh


_Prepared = TypeVar("_Prepared")
_Outcome = TypeVar("_Outcome")


@dataclass(kw_only=True, eq=False)
class LockedApplyChange(
    ApplyChange,
    Change[_Prepared, RequestedInstant, None, _Outcome],
    Generic[_Prepared, _Outcome],
):
    """A change of an apply that has no instant on the timeline, and ends under the lock."""

    session: ApplySession
    fresh: FreshPlan | None = None

    def work(self, pending: RequestedInstant) -> NoReturn:
        raise AssertionError(f"{pending.instant} was never requested")

    def settle(self, pending: RequestedInstant, result: None, should_wait: ShouldWait) -> NoReturn:  # noqa: ARG002
        raise AssertionError(f"{pending.instant} was never requested")

    def abandon(self, pending: RequestedInstant) -> NoReturn:
        raise AssertionError(f"{pending.instant} was never requested")


def make_fresh_plan(
    storage: Storage,
    spec: TableSpec,
    context: ApplyContext,
    reviewed: Sequence[Step],
    replacements: Collection[str] = (),
    *,
    verifies: bool = True,
) -> FreshPlan:
    """Observe a table and plan it again; raises RefusedError or BusyError for what stops an apply.

    ``reviewed``: the steps that are to run. ``replacements``: completed clusterings and deletions
    of partitions of the plan. The file groups that those replaced are planned as if they were not
    replaced. Their old file slices were reviewed together with that step, and expire as they did
    then; otherwise a clean would leave them until the replaced groups expire. Nothing else is
    replaced then.
    ``verifies``: plan repairs of the metadata table too, which may read every footer.
    """
    now = context.get_policy_time()
    observed_ms = context.clock.now_ms()
    state = observe(storage, spec, observed_ms=observed_ms, check_process=context.process.is_alive)
    if verifies and spec.metadata is not None:
        from reconciler.verification.verify import add_metadata_verification  # noqa: PLC0415

        state = add_metadata_verification(storage, spec, state)
    planned_state, planned_spec = state, spec
    if spec.queries and not replacements:
        from reconciler.planners.prediction.forecast import choose_samples  # noqa: PLC0415
        from reconciler.state.sampling.forecast_input import add_forecast_input  # noqa: PLC0415

        planned_state = add_forecast_input(storage, spec, state, choose_samples, only_max_scan=True)
    if replacements:
        left = {group: time for group, time in state.replaced.items() if time not in replacements}
        planned_state = replace(state, replaced=left)
        planned_spec = replace(spec, clustering=None, files=None, partition_retention=None)
    plan = plan_table(planned_spec, planned_state, now, keeps_savepoints=True)
    fresh = FreshPlan(state=state, plan=plan)
    check_refusals(fresh, spec, get_properties(state), now, reviewed)
    return fresh


def get_properties(state: TableState) -> TableProperties:
    """Return the properties that the table had when it was observed, without another request."""
    return TableProperties.from_raw(state.properties, PROPERTIES)


def open_apply_session(
    plan: TablePlan, spec: TableSpec, storage: Storage, digest: str, context: ApplyContext
) -> tuple[ApplySession, FreshPlan]:
    """Open a session on a table and plan it afresh; nothing is written.

    Raises as ``make_fresh_plan``.
    """
    fresh = make_fresh_plan(storage, spec, context, plan.steps)
    properties = get_properties(fresh.state)
    zone = find_timeline_zone(spec, fresh.state)
    assert zone is not None, "an apply without a zone is refused before"
    session = open_session(
        spec,
        storage,
        properties,
        fresh.state.timeline,
        zone,
        owner=context.process.make_owner(context.new_token()),
        context=context.run_context,
    )
    parts = {part.name: getattr(session, part.name) for part in fields(session)}
    return ApplySession(context=context, plan=plan, digest=digest, spec=spec, **parts), fresh
