"""Set up the Python workers of a Spark session: their interpreter, this package and what it needs.

Workers that only delete files import this, so it needs nothing but Python's standard library.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import socket
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from reconciler.errors import ReconcilerError
from reconciler.spark.executor_wait import ExecutorsMissingError
from reconciler.spark.failures import explain_error, explain_failure, is_spark_error
from reconciler.spark.jobs import check_running, run_job_group

#: packages that workers import to read footers or rows, to merge log files, to write rows, and to
#: look keys up in a record index
READING_PACKAGES: Final = ("numpy", "pyarrow")
MERGING_PACKAGES: Final = (*READING_PACKAGES, "fastavro")
WRITING_PACKAGES: Final = (*READING_PACKAGES, "xxhash")
RECORD_INDEX_PACKAGES: Final = ("fastavro", "google_crc32c")
#: the oldest versions of packages that workers may import, as in pyproject.toml
MINIMUM_VERSIONS: Final = {
    "adlfs": "2024.12",
    "fastavro": "1.9",
    "fsspec": "2024.6",
    "gcsfs": "2024.12",
    "google_crc32c": "1.5",
    "numpy": "1.26",
    "pandas": "2.2",
    "pyarrow": "17",
    "s3fs": "2024.10",
    "xxhash": "3.4",
}
#: a name that nobody gives to ``--py-files``
_ARCHIVE: Final = "reconciler-of-the-driver.zip"
#: what PySpark runs if PYSPARK_PYTHON is not set: the first of that name on PATH
_DEFAULT_PYTHON: Final = "python3"
_MAX_CHECK_TASKS: Final = 8
_TRACEBACK: Final = "Traceback (most recent call last):"
_PYTHON_ERROR: Final = re.compile(r"^[\w.]*(?:Error|Exception): .*$", re.MULTILINE)
_REMEDY: Final = "install hudi-reconciler there, or set PYSPARK_PYTHON to a Python that has it"
_OTHER_PYTHON: Final = re.compile(
    r"different version:? \(?(\d+)(?:, |\.)(\d+)\)? than that in driver:? (\d+\.\d+)"
)
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
            with _explain_failed_shipping(context):
                _ship_archive(context)
        _check_workers(context, frozenset(packages))


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


def _check_workers(context: Any, packages: frozenset[str]) -> None:
    """Run a small job that looks for packages on the workers, unless they are known to be there."""
    known = _CHECKED.get(context)
    if known is not None and packages <= known:
        return
    python = context.pythonExec
    tasks = min(context.defaultParallelism, _MAX_CHECK_TASKS)
    find = partial(find_lacks, sorted(packages))
    try:
        with run_job_group(context, "reconciler: check workers", str, explain=explain_check):
            found = context.parallelize(range(tasks), tasks).mapPartitions(find).collect()
    except ExecutorsMissingError:
        raise
    except ReconcilerError as error:
        problem = f"Spark's workers ({python}) cannot do the work: {error}"
        raise ReconcilerError(f"{problem}; {_REMEDY}") from error
    if found:
        raise ReconcilerError(
            f"Spark's workers ({python}) lack {describe_lacks(found)}; install hudi-reconciler "
            "and these packages there, or set PYSPARK_PYTHON to a Python that has them"
        )
    _CHECKED[context] = packages | (known or frozenset())


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


def find_lacks(
    packages: Sequence[str], _partition: Iterable[int]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the host and the packages that this worker lacks or has too old, if there are any."""
    lacks = [text for name in packages if (text := _describe_lack(name))]
    if lacks:
        yield socket.gethostname(), lacks


def _describe_lack(package: str) -> str | None:
    """Return a package with what is wrong with it on this host; None for nothing."""
    if importlib.util.find_spec(package) is None:
        return package
    minimum = MINIMUM_VERSIONS.get(package)
    if minimum is None:
        return None
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # installed without its description
        return None
    if _parse_version(version) >= _parse_version(minimum):
        return None
    return f"{package} {minimum} (they have {version})"


def _parse_version(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version.

    >>> _parse_version("17.0.1") < _parse_version("2024.10")
    True
    """
    first, second, *_ = (*map(int, re.findall(r"\d+", text)), 0, 0)
    return first, second


def describe_lacks(found: Iterable[tuple[str, list[str]]]) -> str:
    """Return what hosts lack, with the hosts that lack the same things together.

    >>> describe_lacks([("b", ["numpy"]), ("a", ["numpy"]), ("c", ["numpy", "pyarrow"])])
    'numpy on a, b; numpy, pyarrow on c'
    """
    hosts = defaultdict(set)
    for host, lacks in found:
        hosts[", ".join(lacks)].add(host)
    groups = sorted((sorted(names), lacks) for lacks, names in hosts.items())
    return "; ".join(f"{lacks} on {', '.join(names)}" for names, lacks in groups)
