"""What every use of a Spark cluster shares: this package on its workers, and why a job failed."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

import reconciler

#: no name that somebody would give ``--py-files``
_ARCHIVE: Final = "reconciler-of-the-driver.zip"
_ABORTED: Final = "Job aborted due to stage failure: "
_TRACEBACK: Final = "Traceback (most recent call last):"
_SHIPPING: Final = threading.Lock()


def ship(context: Any) -> None:
    """Send this package to a SparkContext's workers, once, unless they share our process's host."""
    master = context.master
    if master == "local" or master.startswith("local["):  # not local-cluster
        return
    with _SHIPPING:
        _ship(context)


def _ship(context: Any) -> None:
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


def why(message: str) -> str:
    r"""The line of Spark's message that says why a job failed; of a Python error, its last.

    >>> why("Job aborted due to stage failure: Task 0 failed\nDriver stacktrace:")
    'Task 0 failed'
    >>> why("Lost task 0.0: E: Traceback (most recent call last):\n  f\nOSError: no\n\n\tat x")
    'Lost task 0.0: OSError: no'
    """
    first, _, rest = message.strip().partition("\n")
    first = first.removeprefix(_ABORTED)
    if not first.endswith(_TRACEBACK):
        return first
    where = first.removesuffix(_TRACEBACK).rstrip(": ").rpartition(": ")[0]
    lines = [line for line in rest.partition("\n\n")[0].splitlines() if line[:1].strip()]
    return f"{where}: {lines[-1]}" if where and lines else first
