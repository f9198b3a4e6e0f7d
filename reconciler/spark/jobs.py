"""Run jobs on a Spark cluster: group jobs, end them, report progress.

Workers that only delete files import this, so it needs nothing but Python's standard library.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
import threading
import time
import zipimport
from collections.abc import Callable, Iterator
from typing import Any, Final

from reconciler.errors import ReconcilerError
from reconciler.spark.executor_wait import ExecutorsMissingError, ExecutorWait
from reconciler.spark.failures import JVM_ENDED, SESSION_ENDED, read_java_message

_ABORTED: Final = "Job aborted due to stage failure: "
_TRACEBACK: Final = "Traceback (most recent call last):"
_REPORT_EVERY_S: Final = 0.5
#: Spark takes about four seconds to kill the Python of a task
_MAX_END_CHECKS: Final = 150
_CHECK_EVERY_S: Final = 0.1
_MAX_CANCELS: Final = 10
_JOB_PROPERTIES: Final = (
    "spark.jobGroup.id",
    "spark.job.description",
    "spark.job.interruptOnCancel",
)
_JOBS: Final = itertools.count(1)
#: archives that Spark puts on its workers' path; they never change
_SPARK_ARCHIVES: Final = re.compile(
    r"[\\/](pyspark|py4j-[^\\/]*-src)\.zip$|[\\/]spark-core_[^\\/]*\.jar$"
)


def drop_zip_caches() -> None:
    """Keep the next tasks of this worker from reading the directories of Spark's archives again.

    Before every task PySpark invalidates all importer caches (``pyspark.worker``), and an archive's
    importer then reads its whole directory again. The jar of Spark's core holds no Python, but
    reading its directory takes most of a small task's time. Importers return when something new is
    imported; archives other than Spark's keep theirs.
    """
    for path, finder in [*sys.path_importer_cache.items()]:
        if isinstance(finder, zipimport.zipimporter) and _SPARK_ARCHIVES.search(finder.archive):
            sys.path_importer_cache.pop(path, None)


def explain_job_failure(message: str) -> str:
    r"""Return the line of Spark's message that says why a job failed; for a Python error, its last.

    >>> explain_job_failure("Job aborted due to stage failure: Task 0 failed\nDriver stacktrace:")
    'Task 0 failed'
    >>> message = "Lost task 0.0: E: Traceback (most recent call last):\n  f\nOSError: no\n\n\tat x"
    >>> explain_job_failure(message)
    'Lost task 0.0: OSError: no'
    """
    first, _, rest = message.strip().partition("\n")
    first = first.removeprefix(_ABORTED)
    if not first.endswith(_TRACEBACK):
        return first
    where = first.removesuffix(_TRACEBACK).rstrip(": ").rpartition(": ")[0]
    lines = [line for line in rest.partition("\n\n")[0].splitlines() if line[:1].strip()]
    return f"{where}: {lines[-1]}" if where and lines else first


def check_running(context: Any) -> None:
    """Raise ReconcilerError if a SparkContext has ended; PySpark's own errors do not say so."""
    if getattr(context, "_jsc", context) is None:
        raise ReconcilerError(SESSION_ENDED)


@contextlib.contextmanager
def run_job_group(
    context: Any,
    description: str,
    redact: Callable[[str], str],
    *,
    waits_for_all_attempts: bool = False,
    explain: Callable[[str], str] = explain_job_failure,
) -> Iterator[None]:
    """Run the jobs of the block in one group; when the block fails, no task runs any more.

    ``waits_for_all_attempts``: on success too, speculative attempts have ended; Spark does not wait
    for them. A failure of Spark is raised as a ReconcilerError of one sentence: ``explain`` makes
    it, ``redact`` removes secrets.
    """
    try:
        with watch_job_group(context, description) as group:
            yield
            speculates = context.getConf().get("spark.speculation", "false").lower() == "true"
            if waits_for_all_attempts and speculates:
                with contextlib.suppress(Exception):
                    _end_job_group(context, group)
    except Exception as error:
        if (because := _find_reason(error, explain)) is not None:
            raise ReconcilerError(redact(because)) from error
        raise


@contextlib.contextmanager
def watch_job_group(context: Any, description: str) -> Iterator[str]:
    """Run the jobs of the block in one group, whose name it gives; its errors are Spark's own.

    Raises ExecutorsMissingError if the jobs wait for executors for too long. When the block fails,
    no task runs any more.
    """
    check_running(context)
    before = {key: context.getLocalProperty(key) for key in _JOB_PROPERTIES}
    group = f"reconciler-{next(_JOBS)}"
    context.setJobGroup(group, description)
    wait = ExecutorWait(context, group)
    try:
        with wait.watch():
            yield group
    except BaseException as error:
        with contextlib.suppress(Exception):  # the JVM may have ended
            _end_job_group(context, group)
        if wait.has_given_up and isinstance(error, Exception):
            raise ExecutorsMissingError(wait.describe_end()) from error
        if _hides_interrupt(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        with contextlib.suppress(Exception):
            for key, value in before.items():
                context.setLocalProperty(key, value)


def _find_reason(error: BaseException, explain: Callable[[str], str]) -> str | None:
    """Return in one sentence why a job failed; None for an error that is not of a job."""
    if (java := getattr(error, "java_exception", None)) is not None:
        return explain(read_java_message(java))
    return JVM_ENDED if _is_broken_connection(error) else None


def _is_broken_connection(error: BaseException) -> bool:
    is_broken = any(kind.__name__ == "Py4JNetworkError" for kind in type(error).__mro__)
    return is_broken or isinstance(error, ConnectionError)


def _hides_interrupt(error: BaseException) -> bool:
    """Return whether an interrupt has broken the connection to Java, and that is what is told.

    Py4J closes the connection of an interrupted call. PySpark calls Java once more before the
    interrupt leaves it, and that call may find its new connection closed, too.
    """
    if not _is_broken_connection(error):
        return False
    cause = error.__context__
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None


def _end_job_group(context: Any, group: str) -> None:
    """Cancel the jobs of a group, and wait for a while until none of its tasks runs.

    The first connection after an interrupt may be broken, so it is tried again.
    """
    for attempt in range(_MAX_CANCELS):
        try:
            context.cancelJobGroup(group)
            break
        except Exception as error:
            if attempt + 1 == _MAX_CANCELS or not _is_broken_connection(error):
                raise
            time.sleep(_CHECK_EVERY_S)
    tracker = context.statusTracker()
    for _ in range(_MAX_END_CHECKS):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        if not any(stage.numActiveTasks for stage in stages if stage):
            return
        time.sleep(_CHECK_EVERY_S)


@contextlib.contextmanager
def report_progress(done: Any, progress: Callable[[int], None]) -> Iterator[None]:
    """Report increases of an accumulator to ``progress`` during the block, and once at its end."""
    stopped = threading.Event()
    reported = 0

    def report() -> None:
        nonlocal reported
        now = int(done.value)
        if now > reported:
            progress(now - reported)
            reported = now

    def poll() -> None:
        while not stopped.wait(_REPORT_EVERY_S):
            report()

    thread = threading.Thread(target=poll, name="reconciler-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        report()
