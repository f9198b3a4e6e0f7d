"""Carrying a plan out from a command: a Spark session where there is work, and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from reconciler import world
from reconciler.apply.audit import Audit
from reconciler.apply.executor import Batch, Executor, InProcess, Outcome
from reconciler.apply.origin import Origin
from reconciler.apply.progress import Phase
from reconciler.apply.result import Result
from reconciler.apply.run import apply_plan
from reconciler.apply.ties import left_out_by_specs
from reconciler.cli import interruption
from reconciler.cli.environment import check_variables_of
from reconciler.cli.failures import explain_crash
from reconciler.cli.options import Format
from reconciler.cli.spark import spark_session
from reconciler.cli.terminal import progress, say, wants_color
from reconciler.delegate.model import Hudi
from reconciler.errors import ReconcilerError, StaleError
from reconciler.index.build import WORTH_A_JOB
from reconciler.plan.document import plan_digest, spec_digest
from reconciler.plan.guard import judge
from reconciler.plan.model import IndexStep, Plan, RollbackStep, Step, TablePlan
from reconciler.render import words
from reconciler.rewrite.model import Group, Rewrite, Rewriter, Rewritten
from reconciler.spec.document import spec_from_document
from reconciler.spec.model import TableSpec
from reconciler.storage.api import StorageRef

if TYPE_CHECKING:
    from reconciler.cli.audit import AuditFile
    from reconciler.index.build import Asked, Built, IndexBuilder
    from reconciler.index.merge import Keys

_Done = TypeVar("_Done")

_PHASES: Mapping[Phase, str] = {
    "observe": "looking at the table again",
    "resume": "finishing pending work",
    "rollback": "taking a dead write back",
    "request": "writing down what is going to be done",
    "rewrite": "rewriting files",
    "index": "reading footers for the index",
    "delete": "deleting files",
    "complete": "publishing what was done",
    "check": "checking the metadata table",
}


def carry_out(  # noqa: PLR0913 (the options of apply)
    plan: Plan,
    *,
    now: datetime | None = None,
    specs: Sequence[TableSpec] | None = None,
    digest: str | None = None,
    parallelism: int = 1,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    origin: Origin | None = None,
    audit: AuditFile | None = None,
    by_hudi: bool = False,
) -> Result:
    """Apply a plan. Spark starts before anything is written, and only where there are steps.

    ``by_hudi``: what is requested is executed by the Hudi on Spark's class path.

    Raises StaleError when the plan has not the given digest or is of other specs, SpecError for
    variables that are not set, ReconcilerError when Spark does not start; everything else is in the
    result of its table. What is raised is in the ``audit`` too.
    """
    journal = None
    if audit is not None:
        journal = Audit(
            append=audit.append,
            clock=world.SystemClock(),
            run=world.token(),
            who=world.process(),
            origin=origin or Origin(),
            plan_digest=plan_digest(plan),
        )
    interruption.advise("run the same apply again: it finishes or undoes the work")
    settings = settings or {}
    with (
        _refusals(journal),
        _ready(plan, specs, digest, master, settings, by_hudi=by_hudi) as hands,
    ):
        return apply_plan(
            plan,
            open_storage=world.open_storage,
            executor=hands.executor,
            rewriter=hands.rewriter,
            builder=hands.builder,
            hudi=hands.hudi,
            clock=world.SystemClock(),
            new_token=world.token,
            who=world.process(),
            specs=specs,
            progress=Watched(),
            parallelism=parallelism,
            now=now,
            on_crash=_crashed,
            on_stop=lambda under_way: _stop(hands.executor, under_way),
            origin=origin,
            journal=journal,
        )


@contextmanager
def _refusals(journal: Audit | None) -> Iterator[None]:
    """Write down what stops the whole apply."""
    try:
        yield
    except ReconcilerError as error:
        if journal is not None:
            try:
                journal.refused(error)
            except ReconcilerError as unwritten:
                said = f"warning: this refusal is not in the audit record: {unwritten}"
                say(words.plain(said), level="warning")
        raise


@contextmanager
def _ready(
    plan: Plan,
    specs: Sequence[TableSpec] | None,
    digest: str | None,
    master: str | None,
    settings: Mapping[str, str],
    *,
    by_hudi: bool,
) -> Iterator[Hands]:
    """What does the work, once nothing speaks against the plan as a whole."""
    if digest is not None and digest != (found := plan_digest(plan)):
        raise StaleError(
            f"this is not the approved plan: its digest is {found}, and {digest} was approved; "
            "apply the approved one, or review the plan again"
        )
    check_variables_of(plan.tables)
    with _hands(plan, master, settings, specs, by_hudi=by_hudi) as hands:
        yield hands


def _crashed(table: TablePlan, error: Exception) -> None:
    interruption.check()
    explain_crash(table.name, error)


@dataclass(frozen=True, slots=True)
class _Interruptible:
    """What works on a cluster; its errors after an interruption are the interruption."""

    executor: Executor
    cancel: Callable[[], None]
    rewriter: Rewriter | None = None
    builder: IndexBuilder | None = None

    def delete_files(
        self,
        ref: StorageRef,
        batches: Sequence[Batch],
        *,
        progress: Callable[[int], None],
    ) -> list[Outcome]:
        return self._to_the_end(lambda: self.executor.delete_files(ref, batches, progress=progress))

    def rewrite(
        self,
        ref: StorageRef,
        work: Rewrite,
        groups: Sequence[Group],
        *,
        progress: Callable[[int], None],
    ) -> list[Rewritten]:
        rewriter = self.rewriter
        assert rewriter is not None, "whoever has none rewrites nothing"
        return self._to_the_end(lambda: rewriter.rewrite(ref, work, groups, progress=progress))

    def build(
        self,
        ref: StorageRef,
        asked: Asked,
        files: Keys,
        *,
        progress: Callable[[int], None],
    ) -> Built:
        builder = self.builder
        assert builder is not None, "whoever has none leaves it to threads"
        return self._to_the_end(lambda: builder.build(ref, asked, files, progress=progress))

    def _to_the_end(self, work: Callable[[], _Done]) -> _Done:
        try:
            done = work()
            interruption.check()
        except (Exception, KeyboardInterrupt):
            if interruption.is_seen():
                self.give_up()
            interruption.check()
            raise
        return done

    def give_up(self) -> None:
        """Cancel whatever runs, for every table."""
        with suppress(Exception):  # what would cancel the rest may be gone itself
            self.cancel()


def _stop(executor: Executor, under_way: int) -> None:
    """Bring the tables that are under way to their end."""
    if under_way:
        tables = words.count(under_way, "table")
        say(f"waiting for {tables} to stop in good order; interrupt again to leave at once")
    if isinstance(executor, _Interruptible):
        executor.give_up()


@dataclass(frozen=True, slots=True)
class Hands:
    """What deletes and rewrites files and reads footers, and the Hudi that executes plans.

    ``builder``: None where threads of this process read footers.
    """

    executor: Executor
    rewriter: Rewriter | None = None
    hudi: Hudi | None = None
    builder: IndexBuilder | None = None


@contextmanager
def _hands(
    plan: Plan,
    master: str | None,
    settings: Mapping[str, str],
    specs: Sequence[TableSpec] | None,
    *,
    by_hudi: bool,
) -> Iterator[Hands]:
    running = [table for table in plan.tables if _may_run(table, specs)]
    if not any(_needs_workers(table) for table in running):
        yield Hands(InProcess(world.open_storage))
        return
    from reconciler.apply.spark import SparkExecutor  # noqa: PLC0415 (heavy)
    from reconciler.index.spark import SparkBuilder  # noqa: PLC0415 (heavy)
    from reconciler.rewrite.spark import SparkRewriter  # noqa: PLC0415 (heavy)

    with spark_session(master, settings, in_python=not by_hudi) as session:
        workers = _Interruptible(
            executor=SparkExecutor(session),
            cancel=session.sparkContext.cancelAllJobs,
            rewriter=SparkRewriter(session),
            builder=SparkBuilder(session),
        )
        if by_hudi:  # whose session may have no Python on its workers
            yield Hands(workers, workers, _hudi(session))
        else:
            yield Hands(workers, workers, builder=workers)


def _needs_workers(table: TablePlan) -> bool:
    """Whether a table has more to do than this process can do alone."""

    def is_small(step: Step) -> bool:
        is_index = isinstance(step, IndexStep) and step.files < WORTH_A_JOB
        return is_index or isinstance(step, RollbackStep)

    return not all(map(is_small, table.steps))


def _hudi(session: Any) -> Hudi:
    """The Hudi of a session; raises ReconcilerError where it has none."""
    from reconciler.delegate.spark import HudiOnSpark  # noqa: PLC0415 (heavy)

    hudi = HudiOnSpark(session)
    say(f"executing with Hudi {hudi.version()}")
    return hudi


def _may_run(table: TablePlan, specs: Sequence[TableSpec] | None) -> bool:
    """Whether an apply may find work: what the plan and the specs forbid alone needs no Spark."""
    if not table.has_changes or table.refusals or table.error is not None:
        return False
    try:
        spec = spec_from_document(table.spec, table.name, table.path)
    except ReconcilerError:
        return False  # apply says what is wrong with it
    if spec.concurrency is None or spec.concurrency.lock is None:
        return False
    if specs is None:
        return True
    digests = {today.name: spec_digest(today.document) for today in specs}
    if left_out_by_specs(table, {today.name: today for today in specs}, digests) is not None:
        return False
    today = next(today for today in specs if today.name == table.name)
    guarded = replace(spec, guarded_by=today.guarded_by)
    return not judge(table, guarded, world.now()).refusals


class Watched:
    """Progress of an apply for people."""

    @contextmanager
    def phase(self, table: str, phase: Phase, total: int | None) -> Iterator[Callable[[int], None]]:
        what = _PHASES[phase]
        if total is None:
            say(words.plain(f"{table}: {what}"), event="progress", table=table)
            yield lambda _: None
            return
        is_sized = phase == "rewrite"
        with progress(what, total, "bytes" if is_sized else "files", table=table) as tell:
            tell(0, words.size(total) if is_sized else words.count(total, "file"))
            yield lambda done: tell(done, "")

    def waits(self, table: str, what: str) -> None:
        said = words.plain(f"{table}: waiting for {what}")
        say(said, event="wait", table=table)


def rendered_result(
    result: Result,
    format: Format,  # noqa: A002
    origin: Origin | None = None,
) -> str | bytes:
    """The result as standard output carries it."""
    from reconciler.render import result as render  # noqa: PLC0415 (not while it runs)

    match format:
        case Format.TEXT:
            return render.result_text(result, color=wants_color())
        case Format.JSON:
            return render.result_json(result)
        case Format.MARKDOWN:
            from reconciler.render.applied import result_markdown  # noqa: PLC0415

            from_ = origin or Origin()
            return result_markdown(
                result,
                environment=from_.environment,
                actor=from_.actor,
                spec_commit=from_.spec_commit,
            )
        case _:
            assert_never(format)
