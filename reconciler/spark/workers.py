"""Set up the Python workers of a Spark session: their interpreter, this package and what it needs.

Workers that only delete files import this, so it needs nothing but Python's standard library.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from reconciler.errors import ReconcilerError
from reconciler.spark.executor_wait import ExecutorsMissingError
from reconciler.spark.failures import explain_failure
from reconciler.spark.jobs import check_running, run_job_group

#: packages that workers import to read footers or rows, to merge log files, to write rows, and to
#: look keys up in a record index
READING_PACKAGES: Final = ("numpy", "pyarrow")
MERGING_PACKAGES: Final = (*READING_PACKAGES, "fastavro")
WRITING_PACKAGES: Final = (*READING_PACKAGES, "xxhash")
RECORD_INDEX_PACKAGES: Final = ("fastavro", "google_crc32c")
#: a name that nobody gives to ``--py-files``
_ARCHIVE: Final = "reconciler-of-the-driver.zip"
#: what PySpark runs if PYSPARK_PYTHON is not set: the first of that name on PATH
_DEFAULT_PYTHON: Final = "python3"
_MAX_CHECK_TASKS: Final = 8
_TRACEBACK: Final = "Traceback (most recent call last):"
_PYTHON_ERROR: Final = re.compile(r"^[\w.]*(?:Error|Exception): .*$", re.MULTILINE)
_REMEDY: Final = "install hudi-reconciler there, or set PYSPARK_PYTHON to a Python that has it"
_SETTING_UP: Final = threading.Lock()
#: per SparkContext, the packages that its workers are known to have
_CHECKED: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()


def set_up_workers(context: Any, packages: Sequence[str] = ()) -> None:
    """Let the workers of a SparkContext run this package, and check once that they can.

    On this host they run the interpreter of the driver, unless PYSPARK_PYTHON names another. To
    other hosts this package is sent. ``packages``: what the work imports. Raises ReconcilerError if
    workers lack something, or run another version of Python.
    """
    check_running(context)
    with _SETTING_UP:
        if is_single_host(context):
            if context.pythonExec == _DEFAULT_PYTHON and sys.executable:
                context.pythonExec = sys.executable
            if context.pythonExec == sys.executable:
                return
        else:
            _ship_archive(context)
        _check_workers(context, frozenset(packages))


def is_single_host(context: Any) -> bool:
    """True if all workers run on this host and share its disks."""
    master = context.master
    return bool(master == "local" or master.startswith("local["))  # not local-cluster


def _ship_archive(context: Any) -> None:
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    if any(url.endswith(f"/{_ARCHIVE}") for url in context.listFiles):
        return  # already sent in this session; Spark refuses a second file of the name
    package = Path(__file__).parents[1]
    # executors fetch it whenever they start, so it must last as long as the session
    with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as folder:
        made = shutil.make_archive(
            f"{folder}/reconciler", "zip", root_dir=package.parent, base_dir=package.name
        )
        archive = Path(made).replace(Path(SparkFiles.getRootDirectory()) / _ARCHIVE)
    context.addPyFile(str(archive))


def _check_workers(context: Any, packages: frozenset[str]) -> None:
    """Run a small job that looks for packages on the workers, unless they are known to be there."""
    known = _CHECKED.get(context)
    if known is not None and packages <= known:
        return
    python = context.pythonExec
    tasks = min(context.defaultParallelism, _MAX_CHECK_TASKS)
    find = partial(_find_missing, sorted(packages))
    try:
        with run_job_group(context, "reconciler: check workers", str, explain=_explain_check):
            found = context.parallelize(range(tasks), tasks).mapPartitions(find).collect()
    except ExecutorsMissingError:
        raise
    except ReconcilerError as error:
        problem = f"Spark's workers ({python}) cannot do the work: {error}"
        raise ReconcilerError(f"{problem}; {_REMEDY}") from error
    if found:
        host, missing = min(found)
        names = ", ".join(missing)
        raise ReconcilerError(
            f"Spark's workers ({python} on {host}) lack {names}; install hudi-reconciler and "
            f"{names} there, or set PYSPARK_PYTHON to a Python that has them"
        )
    _CHECKED[context] = packages | (known or frozenset())


def _explain_check(message: str) -> str:
    r"""Return the line of Spark's message that says why the check failed.

    >>> _explain_check("Lost task: E: Traceback (most recent call last):\n  f\nImportError: no x\n")
    'ImportError: no x'
    """
    trace = message.partition(_TRACEBACK)[2]
    found = _PYTHON_ERROR.search(trace)
    return found[0] if found else explain_failure(message)


def _find_missing(
    packages: Sequence[str], _partition: Iterable[int]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the host and the packages that this worker lacks, if there are any."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        yield socket.gethostname(), missing
