"""Set up the Python workers of a Spark session: their interpreter, this package and what it needs.

Workers that only delete files import this, so it needs nothing but Python's standard library.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from reconciler.errors import ReconcilerError
from reconciler.spark.executor_wait import ExecutorsMissingError, count_executors
from reconciler.spark.failures import explain_error, explain_failure, is_spark_error
from reconciler.spark.interpreters import check_interpreters
from reconciler.spark.jobs import check_running, run_job_group
from reconciler.spark.package_checks import ask_for_packages, describe_lacks
from reconciler.spark.shipping import SHIP, report_arrival, send_packages, wants_shipping

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
_TRACEBACK: Final = "Traceback (most recent call last):"
_PYTHON_ERROR: Final = re.compile(r"^[\w.]*(?:Error|Exception): .*$", re.MULTILINE)
_OWN_PYTHON: Final = "or set PYSPARK_PYTHON to a Python that has"
_REMEDY: Final = f"install hudi-reconciler there, {_OWN_PYTHON} it"
_OTHER_PYTHON: Final = re.compile(
    r"different version:? \(?(\d+)(?:, |\.)(\d+)\)? than that in driver:? (\d+\.\d+)"
)
_SETTING_UP: Final = threading.Lock()
#: per SparkContext, the packages that its workers are known to have
_CHECKED: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()


def set_up_workers(context: Any, packages: Sequence[str] = ()) -> None:
    """Let the workers of a SparkContext run this package, and check once that they can.

    On this host they run the interpreter of the driver, unless PYSPARK_PYTHON names another. To
    other hosts this package is sent, and the driver's packages too if the setting SHIP asks for it.
    ``packages``: what the work imports. Raises ReconcilerError if workers lack something, or run
    another version of Python.
    """
    check_running(context)
    with _SETTING_UP:
        if is_single_host(context):
            if context.pythonExec == _DEFAULT_PYTHON and sys.executable:
                context.pythonExec = sys.executable
            if context.pythonExec != sys.executable:
                _check_workers(context, frozenset(packages), ships=False)
        elif not _is_checked(context, frozenset(packages)):
            ships = bool(packages) and wants_shipping(context)
            with _explain_failed_shipping(context):
                _ship_archive(context)
                if ships:
                    check_interpreters(context, sends_packages=True)
                    send_packages(context, packages)
            _check_workers(context, frozenset(packages), ships=ships)


def is_single_host(context: Any) -> bool:
    """True if all workers run on this host and share its disks."""
    master = context.master
    return bool(master == "local" or master.startswith("local["))  # not local-cluster


@contextmanager
def _explain_failed_shipping(context: Any) -> Iterator[None]:
    """Raise errors of Spark in the block as a ReconcilerError, as when a master has ended it."""
    master = context.master  # a session that has ended has none
    try:
        yield
    except Exception as error:
        if not is_spark_error(error):
            raise
        raise ReconcilerError(
            f"Spark on {master} could not get what its workers need: "
            f"{explain_error(error).rstrip('.')}; see the log of the master, and run this again"
        ) from error


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


def _is_checked(context: Any, packages: frozenset[str]) -> bool:
    known = _CHECKED.get(context)
    return known is not None and packages <= known


def _check_workers(context: Any, packages: frozenset[str], *, ships: bool) -> None:
    """Run a small job that looks for packages on the workers, unless they are known to be there.

    ``ships``: the packages were sent to them.
    """
    if _is_checked(context, packages):
        return
    python = context.pythonExec
    try:
        with run_job_group(context, "reconciler: check workers", str, explain=explain_check):
            found = ask_for_packages(context, packages, imports=ships)
            silent = count_executors(context) - len(found)
    except ExecutorsMissingError:
        raise
    except ReconcilerError as error:
        if not is_single_host(context):
            check_interpreters(context, sends_packages=False)
        problem = f"Spark's workers ({python}) cannot do the work: {error}"
        raise ReconcilerError(f"{problem}; {_REMEDY}") from error
    lacking = [worker for worker in found if worker.lacks]
    if not is_single_host(context) and (lacking or silent > 0):
        # a host with another Python fails its tasks at once, and other hosts may have run them all
        check_interpreters(context, sends_packages=False)
    if lacking:
        problem = f"Spark's workers ({python}) lack {describe_lacks(lacking)}"
        raise ReconcilerError(f"{problem}; {_find_remedy(context, ships=ships)}")
    if ships:
        report_arrival()
    _CHECKED[context] = packages | _CHECKED.get(context, frozenset())


def _find_remedy(context: Any, *, ships: bool) -> str:
    """Return what to do about packages that workers lack."""
    if is_single_host(context):
        return f"install hudi-reconciler and these packages there, {_OWN_PYTHON} them"
    install = "install these packages there"  # this package comes from the driver
    if ships:
        return f"{install}, {_OWN_PYTHON} them"
    return f"send the driver's with --ship ({SHIP}=true), {install}, {_OWN_PYTHON} them"


def explain_check(message: str) -> str:
    r"""Return the line of Spark's message that says why the check failed.

    >>> explain_check("Lost task: E: Traceback (most recent call last):\n  f\nImportError: no x\n")
    'ImportError: no x'
    """
    if other := _OTHER_PYTHON.search(message):
        return f"they run Python {other[1]}.{other[2]}, and the driver runs {other[3]}"
    trace = message.partition(_TRACEBACK)[2]
    found = _PYTHON_ERROR.search(trace)
    return found[0] if found else explain_failure(message)
