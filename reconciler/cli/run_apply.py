"""Execution of ``reconciler apply``: a Spark session if one is needed, and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, assert_never

from reconciler import runtime
from reconciler.cli import interruption
from reconciler.cli.apply_executors import Executors, InterruptibleWorkers, open_executors
from reconciler.cli.environment import check_plan_variables
from reconciler.cli.error_reports import report_crash
from reconciler.cli.options import Format, SparkSettings
from reconciler.cli.terminal import find_terminal, log_message, show_progress
from reconciler.errors import ReconcilerError
from reconciler.executor.audit import AuditLog
from reconciler.executor.deletion import FileDeleter
from reconciler.executor.early_refusals import refuse_early
from reconciler.executor.gate import admit_plan, get_waiver_time
from reconciler.executor.origin import Origin
from reconciler.executor.progress import Phase, Progress
from reconciler.executor.result import ApplyResult
from reconciler.executor.run import apply_plan
from reconciler.executor.session import ApplyContext
from reconciler.executor.step_runs import import_step_code
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import (
    TablePlan,
)
from reconciler.plans.plan import Plan
from reconciler.render import result as render
from reconciler.render import words
from reconciler.spec.model import TableSpec
from reconciler.storage.parallel import StopRequest

if TYPE_CHECKING:
    from reconciler.cli.audit import AuditFile

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
    """Apply a plan. Spark has started before a step is run, and starts only if it pays.

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
        stop = StopRequest()
        opened = open_executors(
            admitted,
            run.spark,
            by_hudi=run.by_hudi,
            parallelism=run.parallelism,
            check_stop=stop.check,
        )
        with opened as executors:
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
                stop=stop,
                wait_for_workers=lambda: _wait_for_workers(executors),
                now=run.now,
                origin=run.origin,
                open_catalog=runtime.open_catalog,
            )
            import_step_code(admitted.working_tables)
            interruption.raise_if_interrupted()  # Python drops what its handler raises in an import
            result = apply_plan(
                admitted,
                context,
                parallelism=run.parallelism,
                on_crash=_report_table_crash,
                on_stop=lambda under_way: _stop_tables(executors.executor, under_way),
                journal=journal,
            )
            executors.raise_failure()
            return result


def _wait_for_workers(executors: Executors) -> None:
    """Wait until a table may be changed; raises what ends an apply that was interrupted by then."""
    executors.wait()
    interruption.raise_if_interrupted()


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


def _stop_tables(executor: FileDeleter, under_way: int) -> None:
    """Let the tables in progress stop, and cancel their jobs."""
    if under_way:
        tables = words.format_count(under_way, "table")
        log_message(f"waiting for {tables} to stop cleanly; interrupt again to exit at once")
    if isinstance(executor, InterruptibleWorkers):
        executor.cancel_all()


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
