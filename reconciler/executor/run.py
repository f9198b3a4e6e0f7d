"""Apply a plan: every table on its own, so that one that fails does not stop the rest.

What few tables need is imported when one needs it.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from functools import partial
from itertools import chain
from typing import Any, Final, assert_never

from reconciler.errors import ReconcilerError, choose_worst_code
from reconciler.executor.audit import Journal
from reconciler.executor.catalog_sync import check_catalog_location, sync_catalog
from reconciler.executor.earlier_applies import adopt_replacements
from reconciler.executor.fresh_plan import FreshPlan, check_identity, effective_plan
from reconciler.executor.gate import (
    AdmittedPlan,
    AdmittedTable,
    RefusedError,
    RefusedTable,
    check_policies,
    get_waiver_time,
    omit_refused,
)
from reconciler.executor.pending_steps import find_pending, list_foreign_clusterings
from reconciler.executor.result import (
    ApplyResult,
    StepOutcome,
    TableResult,
)
from reconciler.executor.session import ApplyContext, ApplySession, open_apply_session
from reconciler.executor.step_runs import (
    build_indexes,
    import_resumption_code,
    import_step_code,
    repair_metadata,
    rewrite_groups,
    run_removal,
    run_under_lock,
)
from reconciler.hudi.load import load_properties
from reconciler.hudi.unchanging_files import is_unchanging
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import (
    INDEX_TARGETS,
    CleanStep,
    ClusterStep,
    IndexStep,
    MetadataStep,
    Note,
    OrphansStep,
    ResumeStep,
    RollbackStep,
    TablePlan,
)
from reconciler.plans.partition_deletion import DeletePartitionStep, deleted_partitions
from reconciler.plans.refused_steps import find_refused_kinds
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.spark.failures import explain_error, is_spark_error
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.storage.api import Storage
from reconciler.storage.locations import identify_place
from reconciler.storage.parallel import group_by_key, run_parallel
from reconciler.storage.remembering import RememberingStorage
from reconciler.transaction.process import Clock
from reconciler.transaction.recovery.finished_runs import remove_finished_runs

OnCrash = Callable[[TablePlan, Exception], None]

#: the index that is in the metadata table
_COLUMN_STATS: Final = INDEX_TARGETS[1]


def apply_plan(
    admitted: AdmittedPlan,
    context: ApplyContext,
    *,
    parallelism: int = 1,
    journal: Journal | None = None,
    on_crash: OnCrash | None = None,
    on_stop: Callable[[int], None] | None = None,
) -> ApplyResult:
    """Do what was reviewed as far as it still holds, and report the rest.

    What goes wrong with a table is in its result. ``parallelism``: tables at a time, never two at
    one place. ``journal`` records a table before anything is done to it and when its work ends.
    ``on_crash`` gets errors that are this program's own. An interruption ends each table at its
    next phase and is raised when all have ended; ``on_stop`` gets their number.
    """
    import_step_code(admitted.working_tables)
    run = _ApplyRun(context, admitted.digest, on_crash, journal or Journal())
    started = context.clock.now_ms()
    tables = admitted.tables

    def apply_tables(numbers: Sequence[int]) -> dict[int, TableResult]:
        return {number: run.apply_table(tables[number]) for number in numbers}

    def stop(under_way: int) -> None:
        context.stop.request()
        if on_stop is not None:
            on_stop(under_way)

    def choose_key(number: int) -> Hashable:
        return number if parallelism == 1 else identify_place(tables[number].plan.path).place

    shares = group_by_key(range(len(tables)), choose_key)
    results: dict[int, TableResult] = {}
    for done in run_parallel(apply_tables, shares, parallelism=parallelism, on_stop=stop):
        results |= done
    return ApplyResult(
        plan_digest=admitted.digest,
        selection=admitted.plan.selection,
        tables=tuple(results[number] for number in range(len(tables))),
        seconds=_seconds_since(started, context.clock),
    )


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
        done = _TableProgress(plan)
        try:
            result = self._apply(table, done)
        except ReconcilerError as error:
            if isinstance(error, RefusedError):
                done.add_refusals(error.notes)
            text = None if isinstance(error, RefusedError) else str(error)
            result = done.make_result(error=text, code=error.exit_code)
        except Exception as error:  # noqa: BLE001 (reported as this table's, the others go on)
            result = done.make_result(error=self._explain(plan, error), code=1, warnings=())
        except BaseException:  # the process has to stop: what is done is recorded
            if done.has_begun:
                seconds = _seconds_since(started, self.context.clock)
                with suppress(ReconcilerError):
                    self.journal.interrupted(plan, done.make_result(seconds=seconds))
            raise
        if isinstance(table, AdmittedTable):
            result = sync_catalog(table.spec, result, self.context)
        prices = None if plan.costs is None else plan.costs.prices
        seconds = _seconds_since(started, self.context.clock)
        return self._record(plan, replace(result, prices=prices, seconds=seconds))

    def _explain(self, plan: TablePlan, error: Exception) -> str:
        """Return one line about an error, and report it if it is one of this program."""
        if is_spark_error(error):
            return explain_error(error)
        if self.on_crash is not None:
            self.on_crash(plan, error)
        text, _, _ = str(error).strip().partition("\n")
        return f"{type(error).__name__}: {text} (an error of this program, report it)"

    def _record(self, plan: TablePlan, result: TableResult) -> TableResult:
        """Record a result; if that fails the result is an error, because no record shows it."""
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
        plan, spec, context = table.allowed, table.spec, self.context
        done.warnings += table.warnings
        done.add_refusals(table.refusals)
        self.journal.started(table.plan)
        done.has_begun = True
        if plan.steps:
            check_catalog_location(spec, context)
        opened = context.open_storage(plan.path, spec.storage_options)
        storage = RememberingStorage(opened, is_unchanging)
        owner = context.process.make_owner(context.new_token())
        remove_finished_runs(storage, spec, context.run_context, owner)
        if not plan.steps and not _waits_for_clean(plan, spec):
            return done.make_result(unchanged=not done.refusals)
        _take_back_dead_deletions(plan, spec, storage, context)
        with context.phase(plan.name, "observe"):
            session, fresh = open_apply_session(plan, spec, storage, self.digest, context)
            check_identity(plan, fresh.state)
            session = replace(session, plan=self._omit_refused_now(table, fresh, done))
            _check_delegation(session)
        with session.heartbeats.run():
            _run_steps(session, fresh, done)
        if (failure := session.lock.take_release_failure()) is not None:
            done.warnings.append(Note("lock", failure))
        return done.make_result()

    def _omit_refused_now(
        self, table: AdmittedTable, fresh: FreshPlan, done: _TableProgress
    ) -> TablePlan:
        """Return the reviewed plan without steps that the table or a policy refuses by now.

        Policies are checked once more, for the files that are there now and the time that it is.
        """
        done.add_refusals(fresh.plan.refusals)
        effective = omit_refused(effective_plan(table.allowed, fresh), done.refusals)
        now = get_waiver_time(self.context.now, self.context.clock)
        policies = check_policies(effective, table.guarded, now)
        done.warnings[:] = policies.warnings
        done.add_refusals(policies.refusals)
        return omit_refused(table.plan, done.refusals)


@dataclass(slots=True)
class _TableProgress:
    """The work done so far: it stays true when a later step fails."""

    plan: TablePlan
    outcomes: list[StepOutcome] = field(default_factory=list)
    refusals: list[Note] = field(default_factory=list)
    warnings: list[Note] = field(default_factory=list)
    has_begun: bool = False

    def add_refusals(self, notes: Iterable[Note]) -> None:
        """Add refusals that are not known yet."""
        self.refusals += [note for note in notes if note not in self.refusals]

    def make_result(self, *, code: int = 0, **more: Any) -> TableResult:
        """Return the table's result; ``code``: that of an error; ``more``: other fields of it."""
        codes = (code, RefusedError.exit_code) if self.refusals else (code,)
        known = {
            "code": choose_worst_code(codes),
            "outcomes": tuple(self.outcomes),
            "refusals": tuple(self.refusals),
            "warnings": tuple(self.warnings),
        }
        return TableResult(name=self.plan.name, path=self.plan.path, **{**known, **more})


def _take_back_dead_deletions(
    plan: TablePlan, spec: TableSpec, storage: Storage, context: ApplyContext
) -> None:
    """Take back the pending deletions of partitions of dead applies, if the plan deletes some."""
    if deleted_partitions(plan.steps):
        from reconciler.executor.expiry.dead_deletions import take_back_dead_deletions

        take_back_dead_deletions(spec, storage, context)


def _check_delegation(session: ApplySession) -> None:
    """Raise UnsupportedError if Hudi is to execute the steps and cannot do it as reviewed."""
    if (hudi := session.context.hudi) is not None:
        from reconciler.executor.clean.hudi_execution import check_delegation

        check_delegation(session, hudi)


def _run_steps(session: ApplySession, fresh: FreshPlan, done: _TableProgress) -> None:
    """Collect every step's outcome, with the time that it took.

    All code is imported now: no import shall fail once the table has changed.
    """
    pending = find_pending(session, fresh)
    if pending:
        import_resumption_code()
    checks = _load_checks(session, fresh.state)
    session.context.wait_for_workers()
    clock = session.context.clock
    started = clock.now_ms()
    outcomes = chain(_steps(session, fresh, pending, done), (check() for check in checks))
    for outcome in outcomes:
        done.outcomes.append(replace(outcome, seconds=_seconds_since(started, clock)))
        started = clock.now_ms()


def _steps(  # noqa: PLR0915 (a case for each kind of step)
    session: ApplySession, first: FreshPlan, pending: Collection[str], done: _TableProgress
) -> Iterator[StepOutcome]:
    """Resume what is pending first, whoever left it; then run what was reviewed.

    ``pending``: the instants. A step that turns out to be refused is left, and the others run.
    """
    yield from _resume(session, first, done) if pending else ()
    fresh = None if pending else first
    for step in session.plan.steps:
        match step:
            case ResumeStep():
                if step.instant not in pending:
                    from reconciler.executor.clean.resume import report_finished_clean

                    yield report_finished_clean(first, step)
            case RollbackStep() | SavepointStep():
                yield run_under_lock(session, step, fresh)
                fresh = None
            case MetadataStep():
                with _leave_refused(done):
                    yield repair_metadata(session, step, fresh)
                fresh, session = None, _reload_properties(session)
            case DeletePartitionStep() | ClusterStep() | CompactStep():
                with _leave_refused(done):
                    yield _remember_replaced(session, rewrite_groups(session, step, fresh))
                fresh = None
            case IndexStep():
                yield from build_indexes(session, step, fresh)
                if _COLUMN_STATS in step.targets:
                    fresh, session = None, _reload_properties(session)
            case CleanStep() | OrphansStep() | ArchiveStep():
                with _leave_refused(done):
                    yield run_removal(session, step, adopt_replacements(session, first, fresh))
                fresh = None
            case _:
                assert_never(step)


def _load_checks(session: ApplySession, before: TableState) -> list[Callable[[], StepOutcome]]:
    """Return what verifies the metadata table after the steps, if the spec wants that."""
    metadata = session.spec.metadata
    if metadata is None or metadata.verify != "each-apply":
        return []
    from reconciler.executor.metadata_repair import verify_after_apply

    return [partial(verify_after_apply, session, before)]


def _reload_properties(session: ApplySession) -> ApplySession:
    """Return the session with the partitions that the metadata table has now."""
    return replace(session, properties=load_properties(session.storage))


def _resume(session: ApplySession, first: FreshPlan, done: _TableProgress) -> Iterator[StepOutcome]:
    """Resume pending cleans, clusterings and compactions, except kinds that are refused."""
    from reconciler.executor.clean.resume import resume_cleans
    from reconciler.executor.compact.resume import resume_compactions

    kinds = find_refused_kinds(done.refusals)
    if "clean" not in kinds:
        yield from resume_cleans(session, first)
    if "cluster" not in kinds:
        with _leave_refused(done):
            for outcome in _resume_clusterings(session, first):
                yield _remember_replaced(session, outcome)
    if "compact" not in kinds:
        yield from resume_compactions(session, first)


def _resume_clusterings(session: ApplySession, first: FreshPlan) -> Iterator[StepOutcome]:
    """Resume clusterings of ours, and finish those of other writers that the review names."""
    from reconciler.executor.cluster.finish import finish_clustering
    from reconciler.executor.cluster.resume import resume_clusterings

    has_changed = bool(first.state.pending_cleans)
    for outcome in resume_clusterings(session, first):
        has_changed = True
        yield outcome
    for step in list_foreign_clusterings(session, first):
        yield finish_clustering(session, step, session.observe() if has_changed else first)
        has_changed = True


@contextmanager
def _leave_refused(done: _TableProgress) -> Iterator[None]:
    """Note the refusal of one kind of step, after which the other steps go on."""
    try:
        yield
    except RefusedError as error:
        if any(refusal.step is None for refusal in error.notes):
            raise
        done.add_refusals(error.notes)


def _remember_replaced(session: ApplySession, outcome: StepOutcome) -> StepOutcome:
    """Remember a completed clustering or deletion: what it replaced is cleaned as reviewed."""
    has_rewritten = outcome.rewritten is not None and outcome.kind != "compact"
    replaces = has_rewritten or outcome.deletion is not None
    if outcome.how == "completed" and replaces and outcome.instant is not None:
        session.replacements.add(outcome.instant)
    return outcome


def _waits_for_clean(plan: TablePlan, spec: TableSpec) -> bool:
    """Return True if there are no steps only because another writer's clean may be at work."""
    is_pending = any(note.rule == "pendingClean" for note in plan.warnings)
    return is_pending and spec.retention is not None


def _seconds_since(started_ms: int, clock: Clock) -> float:
    return (clock.now_ms() - started_ms) / 1000
