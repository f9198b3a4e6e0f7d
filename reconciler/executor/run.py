"""Apply a plan: every table on its own, one failing does not stop the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, assert_never

from reconciler.errors import ReconcilerError, StaleError
from reconciler.executor.audit import Journal, NoJournal
from reconciler.executor.clean.hudi_execution import check_delegation
from reconciler.executor.clean.resume import report_finished_clean, resume_cleans
from reconciler.executor.clean.run import run_clean
from reconciler.executor.cluster.resume import resume_clusterings
from reconciler.executor.cluster.run import run_cluster
from reconciler.executor.deletion import FileDeleter
from reconciler.executor.gate import (
    FreshPlan,
    RefusedError,
    check_identity,
    check_policies,
    effective_plan,
    recount,
)
from reconciler.executor.index.run import HUDI_TARGET, run_index
from reconciler.executor.origin import Origin
from reconciler.executor.progress import NoProgress, Progress
from reconciler.executor.result import ApplyResult, StepOutcome, TableResult
from reconciler.executor.rollback import run_rollback
from reconciler.executor.session import ApplyContext, ApplySession, open_apply_session
from reconciler.executor.spec_match import explain_mismatch, explain_other_specs
from reconciler.hudi.load import load_properties
from reconciler.hudi_engine.executor import HudiExecutor
from reconciler.plans.document import compute_spec_digest
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    IndexStep,
    Note,
    ResumeStep,
    RollbackStep,
    TablePlan,
)
from reconciler.plans.plan import Plan
from reconciler.rewrite.model import Rewriter
from reconciler.spec.document import spec_from_document
from reconciler.spec.locations import location_identity
from reconciler.spec.model import TableSpec
from reconciler.storage.parallel import group_by_key, run_parallel
from reconciler.transaction.process import Clock, Process
from reconciler.transaction.recovery.finished_runs import remove_finished_runs
from reconciler.transaction.session import StorageOpener

if TYPE_CHECKING:
    from reconciler.index.build import IndexBuilder

OnCrash = Callable[[TablePlan, Exception], None]


def apply_plan(  # noqa: PLR0913 (everything the outside world gives to an apply)
    plan: Plan,
    *,
    open_storage: StorageOpener,
    deleter: FileDeleter,
    clock: Clock,
    new_token: Callable[[], str],
    process: Process,
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
    hudi: HudiExecutor | None = None,
    builder: IndexBuilder | None = None,
) -> ApplyResult:
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
    digest = plan.digest
    if expected_digest is not None and expected_digest != digest:
        raise StaleError(f"the plan's digest is {digest}, not the approved {expected_digest}")
    by_name = None if specs is None else {spec.name: spec for spec in specs}
    if by_name is not None and (other := explain_other_specs(plan, by_name)):
        raise StaleError(other)
    tools = ApplyContext(
        open_storage=open_storage,
        deleter=deleter,
        clock=clock,
        process=process,
        new_token=new_token,
        progress=progress or NoProgress(),
        rewriter=rewriter,
        builder=builder,
        hudi=hudi,
        now=now,
        lock_wait_s=lock_wait_s,
        origin=origin or Origin(),
    )
    run = _ApplyRun(tools, digest, by_name, on_crash, journal or NoJournal())
    started = clock.now_ms()
    results = _apply_tables(run, plan.tables, parallelism, on_table, on_stop)
    return ApplyResult(
        plan_digest=digest,
        selection=plan.selection,
        tables=results,
        seconds=_seconds_since(started, clock),
    )


def _apply_tables(
    run: _ApplyRun,
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
        run.context.stop.request()
        if on_stop is not None:
            on_stop(under_way)

    found: dict[int, TableResult] = {}
    for results in run_parallel(
        lambda numbers: {number: run.apply_table(tables[number]) for number in numbers},
        group_by_key(
            range(len(tables)),
            lambda n: n if parallelism == 1 else location_identity(tables[n].path),
        ),
        parallelism=parallelism,
        on_done=told,
        on_stop=stopped,
    ):
        found |= results
    return tuple(found[number] for number in range(len(tables)))


@dataclass(frozen=True, slots=True)
class _ApplyRun:
    context: ApplyContext
    digest: str
    specs: Mapping[str, TableSpec] | None
    on_crash: OnCrash | None
    journal: Journal

    def apply_table(self, plan: TablePlan) -> TableResult:
        """One table's result; raises nothing but KeyboardInterrupt."""
        self.context.stop.check()
        started = self.context.clock.now_ms()
        done = _TableProgress()
        try:
            result = self._apply(plan, done)
        except RefusedError as error:
            result = _make_failed_result(plan, done, error, error.notes)
        except ReconcilerError as error:
            result = _make_failed_result(plan, done, error)
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
            if done.has_begun:
                stopped = TableResult(
                    name=plan.name,
                    path=plan.path,
                    outcomes=tuple(done.outcomes),
                    warnings=tuple(done.warnings),
                    seconds=_seconds_since(started, self.context.clock),
                )
                with suppress(ReconcilerError):
                    self.journal.interrupted(plan, stopped)
            raise
        return self._record(
            plan, replace(result, seconds=_seconds_since(started, self.context.clock))
        )

    def _record(self, plan: TablePlan, result: TableResult) -> TableResult:
        """The result, which is an error where it can't be written down: nobody would know of it."""
        try:
            self.journal.finished(plan, result)
        except ReconcilerError as error:
            said = f"{result.error}; " if result.error else ""
            unknown = f"{said}what was done is not in the audit record: {error}"
            return replace(result, error=unknown, code=1, unchanged=False)
        return result

    def _apply(self, plan: TablePlan, done: _TableProgress) -> TableResult:
        result = TableResult(name=plan.name, path=plan.path)
        if plan.error is not None:
            return replace(result, error=plan.error, code=1)
        if plan.refusals:
            raise RefusedError(plan.refusals)
        if (stale := self._explain_mismatch(plan)) is not None:
            return replace(result, error=stale, code=StaleError.exit_code)
        spec = self._load_spec(plan)
        guarded = self._add_policies(plan, spec)
        done.warnings += check_policies(recount(plan), guarded, self._get_today())
        self.journal.started(plan)
        done.has_begun = True
        storage = self.context.open_storage(plan.path, spec.storage_options)
        owner = self.context.process.make_owner(self.context.new_token())
        remove_finished_runs(storage, spec, self.context.run_context, owner)
        if not plan.steps and not _waits_for_clean(plan, spec):
            return replace(result, unchanged=True, warnings=tuple(done.warnings))
        with self.context.phase(plan.name, "observe"):
            table, look = open_apply_session(plan, spec, storage, self.digest, self.context)
            check_identity(plan, look.state)
            if self.context.hudi is not None:
                check_delegation(table, self.context.hudi)
        done.warnings[:] = check_policies(effective_plan(plan, look), guarded, self._get_today())
        with table.heartbeats.run():
            _run_steps(table, look, done)
        return replace(result, outcomes=tuple(done.outcomes), warnings=tuple(done.warnings))

    def _load_spec(self, plan: TablePlan) -> TableSpec:
        """The reviewed spec; only how to reach the store comes from today's."""
        spec = spec_from_document(plan.spec, plan.name, plan.path)
        today = (self.specs or {}).get(plan.name)
        return replace(spec, storage_options=today.storage_options) if today else spec

    def _add_policies(self, plan: TablePlan, spec: TableSpec) -> TableSpec:
        """The reviewed spec under today's policies."""
        today = (self.specs or {}).get(plan.name)
        return replace(spec, guarded_by=today.guarded_by) if today else spec

    def _get_today(self) -> datetime:
        """What waivers count from: no moment of the past that somebody names."""
        clock = datetime.fromtimestamp(self.context.clock.now_ms() / 1000, UTC)
        return max(self.context.get_policy_time(), clock)

    def _explain_mismatch(self, plan: TablePlan) -> str | None:
        if self.specs is None:
            return None
        digests = {name: compute_spec_digest(spec.document) for name, spec in self.specs.items()}
        return explain_mismatch(plan, self.specs, digests)


@dataclass(slots=True)
class _TableProgress:
    """What is done so far: it stays true when a later step fails."""

    outcomes: list[StepOutcome] = field(default_factory=list)
    warnings: list[Note] = field(default_factory=list)
    has_begun: bool = False


def _run_steps(session: ApplySession, fresh: FreshPlan, done: _TableProgress) -> None:
    """Every step's outcome, with the time that it took."""
    clock = session.context.clock
    started = clock.now_ms()
    for outcome in _steps(session, fresh):
        done.outcomes.append(replace(outcome, seconds=_seconds_since(started, clock)))
        started = clock.now_ms()


def _steps(session: ApplySession, look: FreshPlan) -> Iterator[StepOutcome]:
    """Pending cleans first, whoever left them; then what was reviewed."""
    pending = {clean.instant for clean in look.state.pending_cleans}
    pending |= {one.instant for one in look.state.pending_clusterings if one.is_ours}
    yield from resume_cleans(session, look)
    for outcome in resume_clusterings(session, look):
        yield _remember_clustering(session, outcome)
    fresh = None if pending else look
    for step in session.plan.steps:
        match step:
            case ResumeStep():
                if step.instant not in pending:
                    yield report_finished_clean(look, step)
            case RollbackStep():
                yield run_rollback(session, step, fresh)
                fresh = None
            case ClusterStep():
                yield _remember_clustering(session, run_cluster(session, step, fresh))
                fresh = None
            case IndexStep():
                yield from run_index(session, step, fresh)
                if HUDI_TARGET in step.targets:
                    fresh = None
                    session = replace(session, properties=load_properties(session.storage))
            case CleanStep():
                yield run_clean(session, step, fresh)
            case _:
                assert_never(step)


def _remember_clustering(session: ApplySession, outcome: StepOutcome) -> StepOutcome:
    """The outcome of a clustering; what it replaced is cleaned as it was reviewed."""
    if outcome.how == "completed" and outcome.rewritten is not None and outcome.instant is not None:
        session.clustered.add(outcome.instant)
    return outcome


def _waits_for_clean(plan: TablePlan, spec: TableSpec) -> bool:
    """Whether there are no steps only because another writer's clean may be at work."""
    named = any(note.rule == "pendingClean" for note in plan.warnings)
    return named and spec.retention is not None


def _make_failed_result(
    plan: TablePlan, done: _TableProgress, error: ReconcilerError, notes: Sequence[Note] = ()
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


def _seconds_since(started_ms: int, clock: Clock) -> float:
    return (clock.now_ms() - started_ms) / 1000
