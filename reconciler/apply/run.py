"""Apply a plan: every table on its own, one failing does not stop the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, assert_never

from reconciler.apply.audit import Journal, Unwritten
from reconciler.apply.checks import Look, RefusedError, check_identity, counted, judged, running
from reconciler.apply.clean import run_clean
from reconciler.apply.cluster import run_cluster
from reconciler.apply.cluster_resume import resume_clusterings
from reconciler.apply.delegate import check_delegation
from reconciler.apply.executor import Executor
from reconciler.apply.index import HUDI_TARGET, run_index
from reconciler.apply.origin import Origin
from reconciler.apply.progress import Progress, Silent
from reconciler.apply.result import Result, StepOutcome, TableResult
from reconciler.apply.resume import resume_pending, resume_reviewed
from reconciler.apply.rollback import run_rollback
from reconciler.apply.table import Table, Tools, open_table
from reconciler.apply.tidy import tidy
from reconciler.apply.ties import left_out_by_specs, of_other_specs
from reconciler.delegate.model import Hudi
from reconciler.errors import ReconcilerError, StaleError
from reconciler.hudi.load import load_properties
from reconciler.parallel import apart, each
from reconciler.plan.document import plan_digest, spec_digest
from reconciler.plan.model import (
    CleanStep,
    ClusterStep,
    IndexStep,
    Note,
    Plan,
    ResumeStep,
    RollbackStep,
    TablePlan,
)
from reconciler.rewrite.model import Rewriter
from reconciler.spec.document import spec_from_document
from reconciler.spec.locations import identity
from reconciler.spec.model import TableSpec
from reconciler.transaction.hold import Opener
from reconciler.transaction.process import Clock, Process

if TYPE_CHECKING:
    from reconciler.index.build import IndexBuilder

OnCrash = Callable[[TablePlan, Exception], None]


def apply_plan(  # noqa: PLR0913 (everything the outside world gives to an apply)
    plan: Plan,
    *,
    open_storage: Opener,
    executor: Executor,
    clock: Clock,
    new_token: Callable[[], str],
    who: Process,
    specs: Iterable[TableSpec] | None = None,
    progress: Progress | None = None,
    parallelism: int = 1,
    expected_digest: str | None = None,
    now: datetime | None = None,
    lock_wait_s: float = 60,
    on_table: Callable[[TableResult], None] | None = None,
    on_crash: OnCrash | None = None,
    origin: Origin | None = None,
    journal: Journal | None = None,
    on_stop: Callable[[int], None] | None = None,
    rewriter: Rewriter | None = None,
    hudi: Hudi | None = None,
    builder: IndexBuilder | None = None,
) -> Result:
    """Do what was reviewed as far as it still holds; what falls out is reported.

    ``specs``: today's; a table whose path or effective spec is no longer the reviewed one is left
    out, and the policies over the others are asked once more. ``now``: what retention counts from,
    by default the clock's time. ``lock_wait_s`` bounds the wait for a lock, and for writes
    to say where they go. ``on_table`` hears of every table as soon as it is done, ``on_crash`` of
    errors that are this program's own.
    ``origin`` goes into the instants; ``journal`` hears of a table before anything is done to it
    and when its work ends. ``rewriter`` writes the files of clusterings, ``builder`` reads footers
    for an index; ``hudi`` executes what is requested, instead of us.
    Raises StaleError when the plan has not the expected digest or is of
    other specs; everything else that goes wrong is in the result of its table.

    ``parallelism``: tables at a time, never two at one place. With several, an interruption ends
    each at its next phase, and is raised when all have ended; ``on_stop`` hears how many those are.
    """
    digest = plan_digest(plan)
    if expected_digest is not None and expected_digest != digest:
        raise StaleError(f"the plan's digest is {digest}, not the approved {expected_digest}")
    by_name = None if specs is None else {spec.name: spec for spec in specs}
    if by_name is not None and (other := of_other_specs(plan, by_name)):
        raise StaleError(other)
    tools = Tools(
        open_storage=open_storage,
        executor=executor,
        clock=clock,
        process=who,
        new_token=new_token,
        progress=progress or Silent(),
        rewriter=rewriter,
        builder=builder,
        hudi=hudi,
        now=now,
        lock_wait_s=lock_wait_s,
        origin=origin or Origin(),
    )
    run = _Run(tools, digest, by_name, on_crash, journal or Unwritten())
    started = clock.now_ms()
    results = _each(run, plan.tables, parallelism, on_table, on_stop)
    return Result(
        plan_digest=digest,
        selection=plan.selection,
        tables=results,
        seconds=_since(started, clock),
    )


def _each(
    run: _Run,
    tables: Sequence[TablePlan],
    parallelism: int,
    on_table: Callable[[TableResult], None] | None,
    on_stop: Callable[[int], None] | None,
) -> tuple[TableResult, ...]:
    """The results in the plan's order."""

    def told(results: Mapping[int, TableResult]) -> None:
        for result in results.values():
            if on_table is not None:
                on_table(result)

    def stopped(under_way: int) -> None:
        run.tools.stop.ask()
        if on_stop is not None:
            on_stop(under_way)

    found: dict[int, TableResult] = {}
    for results in each(
        lambda numbers: {number: run.table(tables[number]) for number in numbers},
        apart(range(len(tables)), lambda n: n if parallelism == 1 else identity(tables[n].path)),
        at_once=parallelism,
        on_done=told,
        on_stop=stopped,
    ):
        found |= results
    return tuple(found[number] for number in range(len(tables)))


@dataclass(frozen=True, slots=True)
class _Run:
    tools: Tools
    digest: str
    specs: Mapping[str, TableSpec] | None
    on_crash: OnCrash | None
    journal: Journal

    def table(self, plan: TablePlan) -> TableResult:
        """One table's result; raises nothing but KeyboardInterrupt."""
        self.tools.stop.check()
        started = self.tools.clock.now_ms()
        done = _Done()
        try:
            result = self._apply(plan, done)
        except RefusedError as error:
            result = _failed(plan, done, error, error.notes)
        except ReconcilerError as error:
            result = _failed(plan, done, error)
        except Exception as error:  # noqa: BLE001 (reported as this table's, the others go on)
            if self.on_crash is not None:
                self.on_crash(plan, error)
            result = TableResult(
                name=plan.name,
                path=plan.path,
                outcomes=tuple(done.outcomes),
                error=f"{type(error).__name__}: {error} (an error of this program, report it)",
                code=1,
            )
        except BaseException:  # told to stop: what is done is done
            if done.is_begun:
                stopped = TableResult(
                    name=plan.name,
                    path=plan.path,
                    outcomes=tuple(done.outcomes),
                    warnings=tuple(done.warnings),
                    seconds=_since(started, self.tools.clock),
                )
                with suppress(ReconcilerError):
                    self.journal.interrupted(plan, stopped)
            raise
        return self._recorded(plan, replace(result, seconds=_since(started, self.tools.clock)))

    def _recorded(self, plan: TablePlan, result: TableResult) -> TableResult:
        """The result, which is an error where it can't be written down: nobody would know of it."""
        try:
            self.journal.finished(plan, result)
        except ReconcilerError as error:
            said = f"{result.error}; " if result.error else ""
            unknown = f"{said}what was done is not in the audit record: {error}"
            return replace(result, error=unknown, code=1, unchanged=False)
        return result

    def _apply(self, plan: TablePlan, done: _Done) -> TableResult:
        result = TableResult(name=plan.name, path=plan.path)
        if plan.error is not None:
            return replace(result, error=plan.error, code=1)
        if plan.refusals:
            raise RefusedError(plan.refusals)
        if (stale := self._left_out(plan)) is not None:
            return replace(result, error=stale, code=StaleError.exit_code)
        spec = self._spec(plan)
        guarded = self._guarded(plan, spec)
        done.warnings += judged(counted(plan), guarded, self._today())
        self.journal.started(plan)
        done.is_begun = True
        storage = self.tools.open_storage(plan.path, spec.storage_options)
        tidy(storage, spec, self.tools)
        if not plan.steps and not _waits_for_a_clean(plan, spec):
            return replace(result, unchanged=True, warnings=tuple(done.warnings))
        with self.tools.phase(plan.name, "observe"):
            table, look = open_table(plan, spec, storage, self.digest, self.tools)
            check_identity(plan, look.state)
            if self.tools.hudi is not None:
                check_delegation(table, self.tools.hudi)
        done.warnings[:] = judged(running(plan, look), guarded, self._today())
        with table.pulse.running():
            _run_steps(table, look, done)
        return replace(result, outcomes=tuple(done.outcomes), warnings=tuple(done.warnings))

    def _spec(self, plan: TablePlan) -> TableSpec:
        """The reviewed spec; only how to reach the store comes from today's."""
        spec = spec_from_document(plan.spec, plan.name, plan.path)
        today = (self.specs or {}).get(plan.name)
        return replace(spec, storage_options=today.storage_options) if today else spec

    def _guarded(self, plan: TablePlan, spec: TableSpec) -> TableSpec:
        """The reviewed spec under today's policies."""
        today = (self.specs or {}).get(plan.name)
        return replace(spec, guarded_by=today.guarded_by) if today else spec

    def _today(self) -> datetime:
        """What waivers count from: no moment of the past that somebody names."""
        clock = datetime.fromtimestamp(self.tools.clock.now_ms() / 1000, UTC)
        return max(self.tools.moment(), clock)

    def _left_out(self, plan: TablePlan) -> str | None:
        if self.specs is None:
            return None
        digests = {name: spec_digest(spec.document) for name, spec in self.specs.items()}
        return left_out_by_specs(plan, self.specs, digests)


@dataclass(slots=True)
class _Done:
    """What is done so far: it stays true when a later step fails."""

    outcomes: list[StepOutcome] = field(default_factory=list)
    warnings: list[Note] = field(default_factory=list)
    is_begun: bool = False


def _run_steps(table: Table, look: Look, done: _Done) -> None:
    """Every step's outcome, with the time that it took."""
    clock = table.tools.clock
    started = clock.now_ms()
    for outcome in _steps(table, look):
        done.outcomes.append(replace(outcome, seconds=_since(started, clock)))
        started = clock.now_ms()


def _steps(table: Table, look: Look) -> Iterator[StepOutcome]:
    """Pending cleans first, whoever left them; then what was reviewed."""
    pending = {clean.instant for clean in look.state.pending_cleans}
    pending |= {one.instant for one in look.state.pending_clusterings if one.is_ours}
    yield from resume_pending(table, look)
    for outcome in resume_clusterings(table, look):
        yield _remembered(table, outcome)
    fresh = None if pending else look
    for step in table.plan.steps:
        match step:
            case ResumeStep():
                if step.instant not in pending:
                    yield resume_reviewed(look, step)
            case RollbackStep():
                yield run_rollback(table, step, fresh)
                fresh = None
            case ClusterStep():
                yield _remembered(table, run_cluster(table, step, fresh))
                fresh = None
            case IndexStep():
                yield from run_index(table, step, fresh)
                if HUDI_TARGET in step.targets:
                    fresh = None
                    table = replace(table, properties=load_properties(table.storage))
            case CleanStep():
                yield run_clean(table, step, fresh)
            case _:
                assert_never(step)


def _remembered(table: Table, outcome: StepOutcome) -> StepOutcome:
    """The outcome of a clustering; what it replaced is cleaned as it was reviewed."""
    if outcome.how == "completed" and outcome.rewritten is not None and outcome.instant is not None:
        table.clustered.add(outcome.instant)
    return outcome


def _waits_for_a_clean(plan: TablePlan, spec: TableSpec) -> bool:
    """Whether there are no steps only because another writer's clean may be at work."""
    named = any(note.rule == "pendingClean" for note in plan.warnings)
    return named and spec.retention is not None


def _failed(
    plan: TablePlan, done: _Done, error: ReconcilerError, notes: Sequence[Note] = ()
) -> TableResult:
    return TableResult(
        name=plan.name,
        path=plan.path,
        outcomes=tuple(done.outcomes),
        error=None if notes else str(error),
        code=error.exit_code,
        refusals=tuple(notes),
        warnings=tuple(done.warnings),
    )


def _since(started_ms: int, clock: Clock) -> float:
    return (clock.now_ms() - started_ms) / 1000
