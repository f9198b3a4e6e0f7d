"""Execution of ``reconciler apply``: a Spark session if one is needed, and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, assert_never

from reconciler import runtime
from reconciler.cli import interruption
from reconciler.cli.environment import check_plan_variables
from reconciler.cli.error_reports import report_crash
from reconciler.cli.options import Format, SparkSettings
from reconciler.cli.spark import open_spark_session
from reconciler.cli.terminal import find_terminal, log_message, show_progress
from reconciler.errors import ReconcilerError
from reconciler.executor.audit import AuditLog
from reconciler.executor.deletion import DELETED_HERE, DeletionOutcome, FileDeleter, LocalDeleter
from reconciler.executor.early_refusals import refuse_early
from reconciler.executor.gate import AdmittedPlan, admit_plan, get_waiver_time
from reconciler.executor.origin import Origin
from reconciler.executor.progress import Phase, Progress
from reconciler.executor.result import ApplyResult
from reconciler.executor.run import apply_plan
from reconciler.executor.session import ApplyContext
from reconciler.hudi_engine.executor import HudiExecutor
from reconciler.index.build import MIN_FILES_FOR_JOB
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.model import (
    IndexStep,
    MetadataStep,
    OrphansStep,
    RollbackStep,
    Step,
    TablePlan,
)
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.plan import Plan
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.render import words
from reconciler.rewrite.model import CompactedSlice, Rewriter, RewrittenGroup
from reconciler.spec.model import TableSpec

if TYPE_CHECKING:
    from reconciler.cli.audit import AuditFile
    from reconciler.index.build import BuiltIndex, IndexBuilder

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_PHASES: Mapping[Phase, str] = {
    "observe": "reading the table again",
    "resume": "finishing pending work",
    "rollback": "rolling back a failed write",
    "orphans": "looking at orphan files again",
    "savepoint": "recording the savepoint",
    "request": "recording the request",
    "rewrite": "rewriting files",
    "metadata": "repairing the metadata table",
    "index": "reading footers for the index",
    "delete": "deleting files",
    "archive": "archiving instants",
    "complete": "committing",
    "check": "checking the metadata table",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRun:
    """The options of an apply.

    ``now``, ``digest``, ``origin``: see the options of apply. ``specs``: the current ones, None to
    take those of the plan. ``advice``: what to do after Ctrl-C. ``audit`` gets a line per table.
    ``by_hudi``: what is requested is executed by the Hudi on Spark's class path.
    """

    now: datetime | None = None
    specs: Sequence[TableSpec] | None = None
    digest: str | None = None
    advice: str = "run the same apply again: it finishes or undoes the work"
    parallelism: int = 1
    spark: SparkSettings = field(default_factory=SparkSettings)
    origin: Origin = field(default_factory=Origin)
    audit: AuditFile | None = None
    by_hudi: bool = False


def run_apply(plan: Plan, run: ApplyRun) -> ApplyResult:
    """Apply a plan. Spark starts before anything is written, and only if there is work for it.

    Raises StaleError if the plan does not have the given digest or is of other specs, SpecError for
    variables that are not set, and ReconcilerError if Spark does not start. These are recorded in
    the audit file too. Other errors are in the result of their table.
    """
    clock, process = runtime.SystemClock(), runtime.current_process()
    journal = None
    if run.audit is not None:
        journal = AuditLog(
            append=run.audit.append,
            clock=clock,
            run_id=runtime.new_token(),
            process=process,
            origin=run.origin,
            plan_digest=plan.digest,
        )
    interruption.set_advice(run.advice)
    with _record_refusals(journal):
        check_plan_variables(plan.tables)
        waiver_time = get_waiver_time(run.now, clock)
        admitted = admit_plan(plan, specs=run.specs, expected_digest=run.digest, now=waiver_time)
        admitted = refuse_early(admitted, runtime.open_storage)
        with _open_executors(admitted, run) as executors:
            context = ApplyContext(
                open_storage=runtime.open_storage,
                deleter=executors.executor,
                rewriter=executors.rewriter,
                builder=executors.builder,
                hudi=executors.hudi,
                clock=clock,
                new_token=runtime.new_token,
                process=process,
                progress=TerminalProgress(),
                now=run.now,
                origin=run.origin,
                open_catalog=runtime.open_catalog,
            )
            return apply_plan(
                admitted,
                context,
                parallelism=run.parallelism,
                on_crash=_report_table_crash,
                on_stop=lambda under_way: _stop_tables(executors.executor, under_way),
                journal=journal,
            )


@contextmanager
def _record_refusals(journal: AuditLog | None) -> Iterator[None]:
    """Record an error that stops the whole apply."""
    try:
        yield
    except ReconcilerError as error:
        if journal is not None:
            try:
                journal.refused(error)
            except ReconcilerError as failure:
                warning = f"warning: this refusal is not in the audit file: {failure}"
                log_message(words.escape_text(warning), level="warning")
        raise


def _report_table_crash(table: TablePlan, error: Exception) -> None:
    interruption.raise_if_interrupted()
    report_crash(table.name, error)


@dataclass(frozen=True, slots=True)
class _InterruptibleWorkers:
    """Workers on a cluster. An error after Ctrl-C is reported as the interrupt."""

    executor: FileDeleter
    cancel: Callable[[], None]
    rewriter: Rewriter | None = None
    builder: IndexBuilder | None = None

    def delete_files(self, *args: Any, **kwargs: Any) -> list[DeletionOutcome]:
        return self._run_to_end(self.executor.delete_files, *args, **kwargs)

    def rewrite(self, *args: Any, **kwargs: Any) -> list[RewrittenGroup]:
        assert self.rewriter is not None, "without a rewriter nothing is rewritten"
        return self._run_to_end(self.rewriter.rewrite, *args, **kwargs)

    def compact(self, *args: Any, **kwargs: Any) -> list[CompactedSlice]:
        assert self.rewriter is not None, "without a rewriter nothing is compacted"
        return self._run_to_end(self.rewriter.compact, *args, **kwargs)

    def build(self, *args: Any, **kwargs: Any) -> BuiltIndex:
        assert self.builder is not None, "without a builder threads read the footers"
        return self._run_to_end(self.builder.build, *args, **kwargs)

    def _run_to_end(
        self,
        work: Callable[_Arguments, _Result],
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> _Result:
        try:
            done = work(*args, **kwargs)
            interruption.raise_if_interrupted()
        except (Exception, KeyboardInterrupt):
            if interruption.is_interrupted():
                self.cancel_all()
            interruption.raise_if_interrupted()
            raise
        return done

    def cancel_all(self) -> None:
        """Cancel the running jobs of every table."""
        with suppress(Exception):  # the Spark session may have ended
            self.cancel()


def _stop_tables(executor: FileDeleter, under_way: int) -> None:
    """Let the tables in progress stop, and cancel their jobs."""
    if under_way:
        tables = words.format_count(under_way, "table")
        log_message(f"waiting for {tables} to stop cleanly; interrupt again to exit at once")
    if isinstance(executor, _InterruptibleWorkers):
        executor.cancel_all()


@dataclass(frozen=True, slots=True)
class Executors:
    """The executors that delete and rewrite files and read footers, and Hudi if it executes plans.

    ``builder`` is None if threads of this process read footers.
    """

    executor: FileDeleter
    rewriter: Rewriter | None = None
    hudi: HudiExecutor | None = None
    builder: IndexBuilder | None = None


@contextmanager
def _open_executors(admitted: AdmittedPlan, run: ApplyRun) -> Iterator[Executors]:
    """Start what does the work of the tables that may run."""
    if not any(_needs_workers(table) for table in admitted.working_tables):
        yield Executors(LocalDeleter(runtime.open_storage))
        return
    from reconciler.executor.spark import SparkFileDeleter  # noqa: PLC0415 (slow to import)
    from reconciler.executor.workers import set_up_executors  # noqa: PLC0415 (slow to import)
    from reconciler.index.spark import SparkIndexBuilder  # noqa: PLC0415 (slow to import)
    from reconciler.rewrite.spark import SparkRewriter  # noqa: PLC0415 (slow to import)

    opened = open_spark_session(
        run.spark.master,
        run.spark.conf,
        in_python=not run.by_hudi,
        from_variables=run.spark.from_variables,
    )
    with opened as session:
        workers = _InterruptibleWorkers(
            executor=SparkFileDeleter(session),
            cancel=session.sparkContext.cancelAllJobs,
            rewriter=SparkRewriter(session),
            builder=SparkIndexBuilder(session),
        )
        if run.by_hudi:  # its session may have no Python on its workers
            yield Executors(workers, workers, _connect_hudi(session))
        else:
            with interruption.prefer_interrupt():
                set_up_executors(session, admitted.working_tables)
            yield Executors(workers, workers, builder=workers)


#: steps that this process does alone, however much they are
_STEPS_WITHOUT_WORKERS: Final = (
    RollbackStep | MetadataStep | SavepointStep | DeletePartitionStep | ArchiveStep
)


def _needs_workers(table: TablePlan) -> bool:
    """Return whether a table has more to do than this process can do alone."""

    def is_small(step: Step) -> bool:
        is_index = isinstance(step, IndexStep) and step.files < MIN_FILES_FOR_JOB
        is_few = isinstance(step, OrphansStep) and len(step.files) <= DELETED_HERE
        return is_index or is_few or isinstance(step, _STEPS_WITHOUT_WORKERS)

    return not all(map(is_small, table.steps))


def _connect_hudi(session: Any) -> HudiExecutor:
    """Return the Hudi of a session; raise ReconcilerError if it has none."""
    from reconciler.hudi_engine.spark import SparkHudiExecutor  # noqa: PLC0415 (slow to import)

    hudi = SparkHudiExecutor(session)
    log_message(f"executing with Hudi {hudi.read_version()}")
    return hudi


class TerminalProgress(Progress):
    """Shows the progress of an apply."""

    @contextmanager
    def phase(self, table: str, phase: Phase, total: int | None) -> Iterator[Callable[[int], None]]:
        what = _PHASES[phase]
        if total is None:
            log_message(words.escape_text(f"{table}: {what}"), event="progress", table=table)
            yield lambda _: None
            return
        is_sized = phase == "rewrite"
        with show_progress(what, total, "bytes" if is_sized else "files", table=table) as report:
            report(0, words.format_size(total) if is_sized else words.format_count(total, "file"))
            yield lambda done: report(done, "")

    def report_wait(self, table: str, what: str) -> None:
        log_message(words.escape_text(f"{table}: waiting for {what}"), event="wait", table=table)


def render_result(
    result: ApplyResult,
    format: Format,  # noqa: A002
    origin: Origin | None = None,
) -> str | bytes:
    """Return the result in a format."""
    from reconciler.render import result as render  # noqa: PLC0415 (not while the plan runs)

    match format:
        case Format.TEXT:
            return render.result_text(result, find_terminal())
        case Format.JSON:
            return render.result_json(result)
        case Format.MARKDOWN:
            from reconciler.render.result_markdown import result_markdown  # noqa: PLC0415

            return result_markdown(result, origin)
        case _:
            assert_never(format)
