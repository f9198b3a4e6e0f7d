"""What every use of a Spark cluster shares: this package on its workers, and why a job failed.

Workers that only delete import this, so it needs nothing but Python itself.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import sys
import tempfile
import threading
import time
import zipimport
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import reconciler
from reconciler.errors import ReconcilerError
from reconciler.spark.failures import JVM_ENDED

#: no name that somebody would give ``--py-files``
_ARCHIVE: Final = "reconciler-of-the-driver.zip"
_ABORTED: Final = "Job aborted due to stage failure: "
_TRACEBACK: Final = "Traceback (most recent call last):"
_SHIPPING: Final = threading.Lock()
_REPORT_EVERY_S: Final = 0.5
#: Spark takes about four seconds to kill the Python of a task
_LOOKS_AT_THE_END: Final = 150
_LOOK_EVERY_S: Final = 0.1
_OF_A_JOB: Final = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_JOBS: Final = itertools.count(1)
#: archives that Spark puts on its workers' path, and that never change
_OF_SPARK: Final = re.compile(
    r"[\\/](pyspark|py4j-[^\\/]*-src)\.zip$|[\\/]spark-core_[^\\/]*\.jar$"
)


def ship_package(context: Any) -> None:
    """Send this package to a SparkContext's workers, once, unless they share our process's host."""
    if is_single_host(context):
        return
    with _SHIPPING:
        _ship_archive(context)


def is_single_host(context: Any) -> bool:
    """Whether all workers share our process's host and its disks."""
    master = context.master
    return bool(master == "local" or master.startswith("local["))  # not local-cluster


def _ship_archive(context: Any) -> None:
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    if any(url.endswith(f"/{_ARCHIVE}") for url in context.listFiles):
        return  # sent before in this session: Spark refuses a second file of the name
    package = Path(reconciler.__file__).parent
    # executors fetch it whenever they start, so it has to stay as long as the session does
    with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as folder:
        made = shutil.make_archive(
            f"{folder}/reconciler", "zip", root_dir=package.parent, base_dir=package.name
        )
        archive = Path(made).replace(Path(SparkFiles.getRootDirectory()) / _ARCHIVE)
    context.addPyFile(str(archive))


def drop_zip_caches() -> None:
    """Spare the next tasks of this worker to read the contents of Spark's own archives again.

    Before every task PySpark has all importers forget what they know (``pyspark.worker``), and one
    of an archive then reads its whole directory: the jar of Spark's core, which holds no Python,
    takes most of what a small task takes. They come back, with what Python remembers of them, when
    something is imported that was not before; archives of others are left as they are.
    """
    for path, finder in [*sys.path_importer_cache.items()]:
        if isinstance(finder, zipimport.zipimporter) and _OF_SPARK.search(finder.archive):
            sys.path_importer_cache.pop(path, None)


def explain_job_failure(message: str) -> str:
    r"""The line of Spark's message that says why a job failed; of a Python error, its last.

    >>> explain_job_failure("Job aborted due to stage failure: Task 0 failed\nDriver stacktrace:")
    'Task 0 failed'
    >>> explain_job_failure("Lost task 0.0: E: Traceback (most recent call last):\n  f\nOSError: no\n\n\tat x")
    'Lost task 0.0: OSError: no'
    """
    first, _, rest = message.strip().partition("\n")
    first = first.removeprefix(_ABORTED)
    if not first.endswith(_TRACEBACK):
        return first
    where = first.removesuffix(_TRACEBACK).rstrip(": ").rpartition(": ")[0]
    lines = [line for line in rest.partition("\n\n")[0].splitlines() if line[:1].strip()]
    return f"{where}: {lines[-1]}" if where and lines else first


@contextlib.contextmanager
def run_job_group(
    context: Any,
    description: str,
    redact: Callable[[str], str],
    *,
    waits_for_all_attempts: bool = False,
    explain: Callable[[str], str] = explain_job_failure,
) -> Iterator[None]:
    """A group for the jobs of the block; when it fails, its tasks have ended afterwards.

    ``waits_for_all_attempts``: so have overtaken attempts at them when it succeeds; Spark does not wait for those.
    What Spark says of a failure is raised as a ReconcilerError of one sentence, which ``explain`` has
    made of it and ``redact`` has gone over.
    """
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped] # noqa: PLC0415

    before = {key: context.getLocalProperty(key) for key in _OF_A_JOB}
    group = f"reconciler-{next(_JOBS)}"
    context.setJobGroup(group, description)
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(Exception):  # Java itself may be gone
            _end_job_group(context, group)
        if (java := getattr(error, "java_exception", None)) is not None:
            raise ReconcilerError(redact(explain(str(java.getMessage())))) from error
        if isinstance(error, ConnectionError | Py4JNetworkError):
            raise ReconcilerError(JVM_ENDED) from error
        raise
    else:
        if (
            waits_for_all_attempts
            and context.getConf().get("spark.speculation", "false").lower() == "true"
        ):
            with contextlib.suppress(Exception):
                _end_job_group(context, group)
    finally:
        with contextlib.suppress(Exception):
            for key, value in before.items():
                context.setLocalProperty(key, value)


def _end_job_group(context: Any, group: str) -> None:
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
def report_progress(done: Any, progress: Callable[[int], None]) -> Iterator[None]:
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
