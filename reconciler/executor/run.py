"""Apply a plan: every table on its own, so that one that fails does not stop the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import assert_never

from reconciler.errors import ReconcilerError
from reconciler.executor.audit import Journal
from reconciler.executor.clean.hudi_execution import check_delegation
from reconciler.executor.clean.resume import report_finished_clean, resume_cleans
from reconciler.executor.clean.run import run_clean
from reconciler.executor.cluster.resume import resume_clusterings
from reconciler.executor.cluster.run import run_cluster
from reconciler.executor.fresh_plan import FreshPlan, check_identity, effective_plan
from reconciler.executor.gate import (
    AdmittedPlan,
    AdmittedTable,
    RefusedError,
    RefusedTable,
    check_policies,
    get_waiver_time,
)
from reconciler.executor.index.run import HUDI_TARGET, run_index
from reconciler.executor.result import ApplyResult, StepOutcome, TableResult
from reconciler.executor.rollback import run_rollback
from reconciler.executor.session import ApplyContext, ApplySession, open_apply_session
from reconciler.hudi.load import load_properties
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    IndexStep,
    Note,
    ResumeStep,
    RollbackStep,
    TablePlan,
)
from reconciler.spec.locations import location_identity
from reconciler.spec.model import TableSpec
from reconciler.storage.parallel import group_by_key, run_parallel
from reconciler.transaction.process import Clock
from reconciler.transaction.recovery.finished_runs import remove_finished_runs

OnCrash = Callable[[TablePlan, Exception], None]


def apply_plan(  # noqa: PLR0913 (who watches an apply, and how)
    admitted: AdmittedPlan,
    context: ApplyContext,
    *,
    parallelism: int = 1,
    journal: Journal | None = None,
    on_table: Callable[[TableResult], None] | None = None,
    on_crash: OnCrash | None = None,
    on_stop: Callable[[int], None] | None = None,
) -> ApplyResult:
    """Do what was reviewed as far as it still holds, and report the rest.

    What goes wrong with a table is in its result. ``parallelism``: tables at a time, never two at
    one place. ``journal`` is told of a table before anything is done to it and when its work ends,
    ``on_table`` of its result, ``on_crash`` of errors that are this program's own. An interruption
    ends each table at its next phase and is raised when all have ended; ``on_stop`` is told how
    many those are.
    """
    run = _ApplyRun(context, admitted.digest, on_crash, journal or Journal())
    started = context.clock.now_ms()
    results = _apply_tables(run, admitted.tables, parallelism, on_table, on_stop)
    return ApplyResult(
        plan_digest=admitted.digest,
        selection=admitted.plan.selection,
        tables=results,
        seconds=_seconds_since(started, context.clock),
    )


def _apply_tables(
    run: _ApplyRun,
    tables: Sequence[AdmittedTable | RefusedTable],
    parallelism: int,
    on_table: Callable[[TableResult], None] | None,
    on_stop: Callable[[int], None] | None,
) -> tuple[TableResult, ...]:
    """Return the results in the plan's order."""

    def report(results: Mapping[int, TableResult]) -> None:
        for result in results.values():
            if on_table is not None:
                on_table(result)

    def stop(under_way: int) -> None:
        run.context.stop.request()
        if on_stop is not None:
            on_stop(under_way)

    found: dict[int, TableResult] = {}
    for results in run_parallel(
        lambda numbers: {number: run.apply_table(tables[number]) for number in numbers},
        group_by_key(
            range(len(tables)),
            lambda n: n if parallelism == 1 else location_identity(tables[n].plan.path),
        ),
        parallelism=parallelism,
        on_done=report,
        on_stop=stop,
    ):
        found |= results
    return tuple(found[number] for number in range(len(tables)))


@dataclass(frozen=True, slots=True)
class _ApplyRun:
    context: ApplyContext
    digest: str
    on_crash: OnCrash | None
    journal: Journal

    def apply_table(self, table: AdmittedTable | RefusedTable) -> TableResult:
        """Apply one table and return its result; raises nothing but KeyboardInterrupt."""
        plan = table.plan
        self.context.stop.check()
        started = self.context.clock.now_ms()
        done = _TableProgress()
        try:
            result = self._apply(table, done)
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
        except BaseException:  # the process has to stop: what is done is recorded
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
        """Record a result; where that fails the result is an error, or nobody would know of it."""
        try:
            self.journal.finished(plan, result)
        except ReconcilerError as error:
            earlier = f"{result.error}; " if result.error else ""
            unknown = f"{earlier}what was done is not in the audit record: {error}"
            return replace(result, error=unknown, code=1, unchanged=False)
        return result

    def _apply(self, table: AdmittedTable | RefusedTable, done: _TableProgress) -> TableResult:
        if isinstance(table, RefusedTable):
            raise table.error
        plan, spec, context = table.plan, table.spec, self.context
        result = TableResult(name=plan.name, path=plan.path)
        done.warnings += table.warnings
        self.journal.started(plan)
        done.has_begun = True
        storage = context.open_storage(plan.path, spec.storage_options)
        owner = context.process.make_owner(context.new_token())
        remove_finished_runs(storage, spec, context.run_context, owner)
        if not plan.steps and not _waits_for_clean(plan, spec):
            return replace(result, unchanged=True, warnings=tuple(done.warnings))
        with context.phase(plan.name, "observe"):
            session, fresh = open_apply_session(plan, spec, storage, self.digest, context)
            check_identity(plan, fresh.state)
            if context.hudi is not None:
                check_delegation(session, context.hudi)
        # once more, for the files that are there now and the time that it is
        now = get_waiver_time(context.now, context.clock)
        done.warnings[:] = check_policies(effective_plan(plan, fresh), table.guarded, now)
        with session.heartbeats.run():
            _run_steps(session, fresh, done)
        return replace(result, outcomes=tuple(done.outcomes), warnings=tuple(done.warnings))


@dataclass(slots=True)
class _TableProgress:
    """What is done so far: it stays true when a later step fails."""

    outcomes: list[StepOutcome] = field(default_factory=list)
    warnings: list[Note] = field(default_factory=list)
    has_begun: bool = False


def _run_steps(session: ApplySession, fresh: FreshPlan, done: _TableProgress) -> None:
    """Collect every step's outcome, with the time that it took."""
    clock = session.context.clock
    started = clock.now_ms()
    for outcome in _steps(session, fresh):
        done.outcomes.append(replace(outcome, seconds=_seconds_since(started, clock)))
        started = clock.now_ms()


def _steps(session: ApplySession, first: FreshPlan) -> Iterator[StepOutcome]:
    """Resume what is pending first, whoever left it; then run what was reviewed."""
    pending = {clean.instant for clean in first.state.pending_cleans}
    pending |= {one.instant for one in first.state.pending_clusterings if one.is_ours}
    yield from resume_cleans(session, first)
    for outcome in resume_clusterings(session, first):
        yield _remember_clustering(session, outcome)
    fresh = None if pending else first
    for step in session.plan.steps:
        match step:
            case ResumeStep():
                if step.instant not in pending:
                    yield report_finished_clean(first, step)
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
    """Remember a completed clustering: what it replaced is cleaned as it was reviewed."""
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
