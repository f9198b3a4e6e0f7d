"""Set up the Python workers behind a session of Spark Connect: this package and what it needs."""

from __future__ import annotations

import hashlib
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import pyarrow as pa

from reconciler.errors import ReconcilerError
from reconciler.spark.failures import is_spark_error
from reconciler.spark.package_checks import WorkerPackages, describe_lacks, find_lacks
from reconciler.spark.workers import explain_check

_LACK: Final = "host string, lack string"
#: every file of the archive has this time, so that its bytes depend on the files alone
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_REMEDY: Final = "install it in the Python that the server starts (its PYSPARK_PYTHON)"
_SETTING_UP: Final = threading.Lock()
#: the sessions whose workers have this package
_SENT: WeakSet[Any] = WeakSet()
#: per session, the packages that its workers are known to have
_CHECKED: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()


def set_up_connect_workers(session: Any, packages: Sequence[str]) -> None:
    """Send this package to the workers of a session, and check once that they can run it.

    ``packages``: what the work imports. Raises ReconcilerError if workers lack something, or run
    another version of Python.
    """
    with _SETTING_UP:
        if session not in _SENT:
            _send_package(session)
            _SENT.add(session)
        known = _CHECKED.get(session)
        if known is None or not known.issuperset(packages):
            _check_workers(session, sorted(packages))
            _CHECKED[session] = frozenset(packages) | (known or frozenset())


def _send_package(session: Any) -> None:
    """Add this package to the path of the session's workers.

    The name of the archive has a digest, because a server may refuse a second file of a name.
    """
    with tempfile.TemporaryDirectory(prefix="reconciler-connect-") as folder:
        archive = Path(folder) / "reconciler.zip"
        _write_archive(archive, Path(__file__).parents[1])
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
        archive = archive.rename(archive.with_name(f"reconciler-{digest}.zip"))
        try:
            session.addArtifacts(str(archive), pyfile=True)
        except Exception as error:
            if not is_spark_error(error):
                raise
            raise ReconcilerError(
                f"the Spark Connect server does not take the package for its workers: "
                f"{_first_line(error)}"
            ) from error


def _write_archive(archive: Path, package: Path) -> None:
    """Write a package without compiled files into an archive, the same bytes each time."""
    with zipfile.ZipFile(archive, "w") as made:
        for file in sorted(package.rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                name = file.relative_to(package.parent).as_posix()
                info = zipfile.ZipInfo(name, _TIME)
                made.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED)


def _check_workers(session: Any, packages: Sequence[str]) -> None:
    """Run a task that looks for packages on a worker."""
    task = partial(_find_lacks_in_batches, packages)
    try:
        found = session.range(0, 1, 1, 1).mapInArrow(task, _LACK).collect()
    except Exception as error:
        if not is_spark_error(error):
            raise
        reason = explain_check(str(error))
        raise ReconcilerError(
            f"the workers of the Spark Connect server cannot do the work: {reason}; "
            f"hudi-reconciler needs there what it needs here, and the same Python"
        ) from error
    if found:
        lacks = describe_lacks(WorkerPackages(row["host"], "", (row["lack"],)) for row in found)
        raise ReconcilerError(f"the workers of the Spark Connect server lack {lacks}; {_REMEDY}")


def _find_lacks_in_batches(
    packages: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield a row for each package that this worker lacks."""
    for _ in batches:
        for worker in find_lacks(packages, False, ()):
            hosts = pa.array([worker.host] * len(worker.lacks), pa.string())
            lacks = pa.array(worker.lacks, pa.string())
            yield pa.RecordBatch.from_arrays([hosts, lacks], ["host", "lack"])


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
