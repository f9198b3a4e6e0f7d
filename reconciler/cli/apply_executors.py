"""The executors of ``reconciler apply``: in this process where the work is small, else on Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from reconciler import runtime
from reconciler.cli import interruption
from reconciler.cli.executor_choice import Work, choose_by_size, choose_executor
from reconciler.cli.options import Executor, SparkSettings
from reconciler.cli.spark import open_spark_session
from reconciler.cli.spark_start import StartingSession, start_spark_session
from reconciler.cli.terminal import log_message
from reconciler.executor.deletion import DELETED_HERE, DeletionOutcome, FileDeleter
from reconciler.executor.plan_executors import make_local_executors
from reconciler.executor.work_size import WorkSize, measure_work
from reconciler.hudi_engine.executor import HudiExecutor
from reconciler.index.build import MIN_FILES_FOR_JOB
from reconciler.lazy_dataclass import dataclass
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
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.executor.gate import AdmittedPlan
    from reconciler.index.build import BuiltIndex, IndexBuilder
    from reconciler.rewrite.model import (
        CompactedSlice,
        RewriteGroup,
        RewriteJob,
        Rewriter,
        RewrittenGroup,
        SliceToCompact,
    )
    from reconciler.storage.api import Advance, StorageRef

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

#: steps that this process does alone, however much they are
_STEPS_WITHOUT_WORKERS: Final = (
    RollbackStep | MetadataStep | SavepointStep | DeletePartitionStep | ArchiveStep
)
#: requests for deletions that this process sends in the time that Spark takes to start
MOST_REQUESTS_HERE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Executors:
    """The executors that delete and rewrite files and read footers, and Hudi if it executes plans.

    ``builder`` is None if threads of this process read footers. ``wait``: returns when they can
    work, or raises why they cannot; ``raise_failure``: raises that if it is known.
    """

    executor: FileDeleter
    rewriter: Rewriter | None = None
    hudi: HudiExecutor | None = None
    builder: IndexBuilder | None = None
    wait: Callable[[], object] = lambda: None
    raise_failure: Callable[[], None] = lambda: None


@contextmanager
def open_executors(
    admitted: AdmittedPlan,
    settings: SparkSettings,
    *,
    by_hudi: bool,
    parallelism: int,
    check_stop: Callable[[], None],
) -> Iterator[Executors]:
    """Start what does the work of the tables that may run; ``parallelism``: tables at a time.

    ``check_stop`` ends work between two of its steps by raising. Spark starts on a thread: call
    ``Executors.wait`` before a table is changed.
    """
    tables = tuple(admitted.working_tables)
    here = _open_local(parallelism, check_stop)
    if not any(map(_needs_workers, tables)):
        yield here
        return
    if by_hudi:
        with _open_hudi(settings) as executors:
            yield executors
        return
    choice = choose_executor(settings, lambda: describe_work(measure_work(tables)))
    choice.report()
    with ExitStack() as stack:
        spark = _SparkOnDemand(settings, tables, check_stop, stack)
        if not choice.is_local:
            yield spark.open()
        elif settings.executor is Executor.AUTO:
            yield replace(here, rewriter=_GrowingRewriter(here, spark))
        else:
            yield here


@dataclass(slots=True)
class _SparkOnDemand:
    """A session that starts when it is asked for, and stops with ``stack``."""

    settings: SparkSettings
    tables: tuple[TablePlan, ...]
    check_stop: Callable[[], None]
    stack: ExitStack
    opened: Executors | None = None
    guard: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> Executors:
        """Return the executors of a session that is starting, the same ones every time."""
        _import_workers()
        with self.guard:
            if self.opened is None:
                self.opened = self._start()
            return self.opened

    def _start(self) -> Executors:
        from reconciler.executor.workers import set_up_executors  # noqa: PLC0415 (slow to import)

        def set_up(session: Any) -> None:
            set_up_executors(session, self.tables)

        opened = start_spark_session(self.settings, in_python=True, set_up=set_up)
        starting = self.stack.enter_context(opened)
        late = _LateSpark(starting, self.check_stop)
        workers = InterruptibleWorkers(late, starting.cancel_jobs, late, late)
        return Executors(
            workers,
            workers,
            builder=workers,
            wait=late.wait,
            raise_failure=starting.raise_failure,
        )


@dataclass(frozen=True, slots=True)
class _GrowingRewriter:
    """Rewrites here what is small, and on Spark what is not: pending work may be in no plan."""

    here: Executors
    spark: _SparkOnDemand

    def rewrite(
        self, ref: StorageRef, job: RewriteJob, groups: Sequence[RewriteGroup], *, progress: Advance
    ) -> list[RewrittenGroup]:
        chosen = self._choose(sum(group.bytes for group in groups))
        return chosen.rewrite(ref, job, groups, progress=progress)

    def compact(
        self,
        ref: StorageRef,
        job: RewriteJob,
        slices: Sequence[SliceToCompact],
        *,
        progress: Advance,
    ) -> list[CompactedSlice]:
        chosen = self._choose(sum(given.bytes for given in slices))
        return chosen.compact(ref, job, slices, progress=progress)

    def _choose(self, size: int) -> Rewriter:
        choice = choose_by_size(Work.from_bytes(size, "of pending work to rewrite"))
        if choice.is_local:
            assert self.here.rewriter is not None, "it is there from the start"
            return self.here.rewriter
        choice.report()
        rewriter = self.spark.open().rewriter
        assert rewriter is not None, "Spark has one"
        return rewriter


def _open_local(parallelism: int, check_stop: Callable[[], None]) -> Executors:
    local = make_local_executors(
        runtime.open_storage,
        cores=runtime.count_cores(),
        parallelism=parallelism,
        check_stop=check_stop,
    )
    return Executors(executor=local.deleter, rewriter=local.rewriter)


@contextmanager
def _open_hudi(settings: SparkSettings) -> Iterator[Executors]:
    """Open the Hudi on Spark's class path; its session may have no Python on its workers."""
    _import_workers()
    opened = open_spark_session(
        settings.master, settings.conf, from_variables=settings.from_variables
    )
    with opened as session:
        running = StartingSession()
        running.start(lambda: session)
        late = _LateSpark(running)
        workers = InterruptibleWorkers(late, running.cancel_jobs, late)
        yield Executors(workers, workers, _connect_hudi(session))


def _connect_hudi(session: Any) -> HudiExecutor:
    """Return the Hudi of a session; raise ReconcilerError if it has none."""
    from reconciler.hudi_engine.spark import SparkHudiExecutor  # noqa: PLC0415 (slow to import)

    hudi = SparkHudiExecutor(session)
    log_message(f"executing with Hudi {hudi.read_version()}")
    return hudi


def describe_work(size: WorkSize) -> Work:
    """Return the work of steps as text, and whether this process does it."""
    rewriting = Work.from_bytes(size.rewritten_bytes, "to rewrite")
    deleting = Work(
        text=f"{words.format_count(size.deleted_files, 'file')} to delete",
        is_small=size.delete_requests <= MOST_REQUESTS_HERE,
        limit="what this process deletes while Spark starts",
    )
    footers = words.format_count(size.footers, "footer")
    indexing = Work(
        text=f"{footers} to read",
        is_small=size.footers < MIN_FILES_FOR_JOB,
        limit=words.format_count(MIN_FILES_FOR_JOB, "footer"),
    )
    parts = (
        (rewriting, size.rewritten_bytes),
        (deleting, size.deleted_files),
        (indexing, size.footers),
    )
    if large := next((part for part, _ in parts if not part.is_small), None):
        return large
    text = " and ".join(part.text for part, count in parts if count)
    limit = rewriting.limit if size.rewritten_bytes else ""
    return Work(text=text or "nothing to rewrite or to delete", limit=limit)


def _needs_workers(table: TablePlan) -> bool:
    """Return whether a table has work that workers may do."""

    def is_small(step: Step) -> bool:
        is_index = isinstance(step, IndexStep) and step.files < MIN_FILES_FOR_JOB
        is_few = isinstance(step, OrphansStep) and len(step.files) <= DELETED_HERE
        return is_index or is_few or isinstance(step, _STEPS_WITHOUT_WORKERS)

    return not all(map(is_small, table.steps))


def _import_workers() -> None:
    """Import what ``_LateSpark`` runs: no import shall fail once a table has changed."""
    for name in ("executor", "index", "rewrite"):
        import_module(f"reconciler.{name}.spark")


@dataclass(frozen=True, slots=True)
class _LateSpark:
    """Works on a session that may still be starting, and waits for it."""

    starting: StartingSession
    check_stop: Callable[[], None] = lambda: None

    def wait(self) -> Any:
        """Return the session when it is there; raise why it did not start."""
        return self.starting.get(self.check_stop)

    def delete_files(self, *args: Any, **kwargs: Any) -> list[DeletionOutcome]:
        from reconciler.executor.spark import SparkFileDeleter  # noqa: PLC0415 (slow to import)

        return SparkFileDeleter(self.wait()).delete_files(*args, **kwargs)

    def rewrite(self, *args: Any, **kwargs: Any) -> list[RewrittenGroup]:
        from reconciler.rewrite.spark import SparkRewriter  # noqa: PLC0415 (slow to import)

        return SparkRewriter(self.wait()).rewrite(*args, **kwargs)

    def compact(self, *args: Any, **kwargs: Any) -> list[CompactedSlice]:
        from reconciler.rewrite.spark import SparkRewriter  # noqa: PLC0415 (slow to import)

        return SparkRewriter(self.wait()).compact(*args, **kwargs)

    def build(self, *args: Any, **kwargs: Any) -> BuiltIndex:
        from reconciler.index.spark import SparkIndexBuilder  # noqa: PLC0415 (slow to import)

        return SparkIndexBuilder(self.wait()).build(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class InterruptibleWorkers:
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
