"""Give a task on a Spark worker its numbers and a folder for temporary files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reconciler.spark.temporary_folders import make_temporary_folder


def get_task_number() -> int:
    """Return the number of the task's partition in its stage."""
    number: int = _get_context().partitionId()
    return number


def get_task_attempt() -> int:
    """Return a number that no other attempt at any task of the session has."""
    number: int = _get_context().taskAttemptId()
    return number


def use_one_core() -> None:
    """Keep Arrow to one thread, because a task has one core."""
    import pyarrow as pa  # noqa: PLC0415 (workers that only delete import nothing heavy)

    pa.set_cpu_count(1)


@contextmanager
def make_local_folder() -> Iterator[Path]:
    """Make a folder on the disks of Spark's spilled data; it is removed after the block."""
    from pyspark.shuffle import _get_local_dirs  # noqa: PLC0415 (on the worker)

    parent = Path(_get_local_dirs("reconciler")[0])
    parent.mkdir(parents=True, exist_ok=True)
    with make_temporary_folder(parent) as folder:
        yield folder


def _get_context() -> Any:
    from pyspark import TaskContext  # noqa: PLC0415 (on the worker)

    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    return context
