"""Deletes spread over a Spark cluster."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reconciler.apply.executor import Batch, Outcome, delete_share, shares
from reconciler.cluster.spark import ship, why
from reconciler.errors import ReconcilerError
from reconciler.storage.api import StorageRef
from reconciler.storage.redaction import redacted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: from so many files on, shares are made smaller so that progress is seen
_MANY_FILES: Final = 50_000
_SHARES_PER_SLOT: Final = 4
_REPORT_EVERY_S: Final = 0.5
#: Spark takes about four seconds to kill the Python of a task
_LOOKS_AT_THE_END: Final = 150
_LOOK_EVERY_S: Final = 0.1
_OF_A_JOB: Final = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_JOBS: Final = itertools.count(1)


class SparkExecutor:
    """Runs on a session's executors; each task opens its own storage.

    The cluster's slots bound the tasks at a time, for several tables together. Spark tries a task
    that dies again: what an earlier attempt at it has removed counts as deleted. When it gives up,
    a ReconcilerError says why, and no task deletes any more.
    """

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext

    def delete_files(
        self,
        ref: StorageRef,
        batches: Sequence[Batch],
        *,
        progress: Callable[[int], None],
    ) -> list[Outcome]:
        files = sum(len(batch.names) for batch in batches)
        slots = self._context.defaultParallelism
        work = shares(batches, slots * (_SHARES_PER_SLOT if files > _MANY_FILES else 1))
        if not work:
            return []
        ship(self._context)
        done = self._context.accumulator(0)
        task = _Task(ref, done, speculates=self._speculates())
        described = f"reconciler: delete {files} files of {ref.location}"
        with _job(self._context, described, ref.secrets), _reporting(done, progress):
            outcomes: list[Outcome] = (
                self._context.parallelize(work, len(work)).mapPartitions(task).collect()
            )
        return outcomes

    def _speculates(self) -> bool:
        said: str = self._context.getConf().get("spark.speculation", "false")
        return said.lower() == "true"


class _Task:
    """What one task does; picklable."""

    def __init__(self, ref: StorageRef, done: Any, *, speculates: bool) -> None:
        self._ref, self._done, self._speculates = ref, done, speculates

    def __call__(self, work: Iterable[list[Batch]]) -> Iterator[Outcome]:
        from pyspark import TaskContext  # noqa: PLC0415 (on the worker)

        from reconciler.storage.open import open_storage  # noqa: PLC0415

        context = TaskContext.get()
        # the driver has just seen every file: what is gone, another attempt at this task took
        repeats = self._speculates or (context is not None and context.attemptNumber() > 0)
        storage = open_storage(self._ref)
        for share in work:
            for outcome in delete_share(storage, share):
                self._done += outcome.deleted + len(outcome.gone) + len(outcome.failed)
                taken = outcome.deleted + len(outcome.gone)
                yield replace(outcome, deleted=taken, gone=()) if repeats else outcome


@contextlib.contextmanager
def _job(context: Any, described: str, secrets: Sequence[str]) -> Iterator[None]:
    """A group for the jobs of the block; when it fails, its tasks have ended afterwards."""
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped] # noqa: PLC0415

    before = {key: context.getLocalProperty(key) for key in _OF_A_JOB}
    group = f"reconciler-{next(_JOBS)}"
    context.setJobGroup(group, described)
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(Exception):  # Java itself may be gone
            _end(context, group)
        if (java := getattr(error, "java_exception", None)) is not None:
            said = redacted(why(str(java.getMessage())), secrets)
            raise ReconcilerError(said) from error
        if isinstance(error, ConnectionError | Py4JNetworkError):
            raise ReconcilerError("the Java process of Spark's driver has ended") from error
        raise
    finally:
        with contextlib.suppress(Exception):
            for key, value in before.items():
                context.setLocalProperty(key, value)


def _end(context: Any, group: str) -> None:
    """Cancel what is left of a group and wait until nothing of it runs, or for a while."""
    context.cancelJobGroup(group)
    tracker = context.statusTracker()
    for _ in range(_LOOKS_AT_THE_END):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        if not any(stage.numActiveTasks for stage in stages if stage):
            return
        time.sleep(_LOOK_EVERY_S)


@contextlib.contextmanager
def _reporting(done: Any, progress: Callable[[int], None]) -> Iterator[None]:
    """Tell ``progress`` what the tasks have counted, while they run and once more at the end."""
    stopped = threading.Event()
    told = 0

    def tell() -> None:
        nonlocal told
        now = int(done.value)
        if now > told:
            progress(now - told)
            told = now

    def watch() -> None:
        while not stopped.wait(_REPORT_EVERY_S):
            tell()

    thread = threading.Thread(target=watch, name="reconciler-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        tell()
