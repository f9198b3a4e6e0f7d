"""Deletes spread over a Spark cluster."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import reconciler
from reconciler.apply.executor import Batch, Outcome, delete_share, shares
from reconciler.storage.api import StorageRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: from so many files on, shares are made smaller so that progress is seen
_MANY_FILES: Final = 50_000
_SHARES_PER_SLOT: Final = 4
_REPORT_EVERY_S: Final = 0.5


class SparkExecutor:
    """Runs on a session's executors; each task opens its own storage.

    ``parallelism`` counts tasks at a time; by default the cluster's slots.
    """

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self._shipped = self._context.master.startswith("local")

    def delete_files(
        self,
        ref: StorageRef,
        batches: Sequence[Batch],
        *,
        parallelism: int | None,
        progress: Callable[[int], None],
    ) -> list[Outcome]:
        self._ship()
        files = sum(len(batch.names) for batch in batches)
        slots = parallelism or self._context.defaultParallelism
        work = shares(batches, slots * (_SHARES_PER_SLOT if files > _MANY_FILES else 1))
        if not work:
            return []
        done = self._context.accumulator(0)
        self._context.setJobDescription(f"reconciler: delete {files} files of {ref.location}")
        try:
            with _reporting(done, progress):
                outcomes: list[Outcome] = (
                    self._context.parallelize(work, len(work))
                    .mapPartitions(_Task(ref, done))
                    .collect()
                )
        finally:
            self._context.setJobDescription(None)
        return outcomes

    def _ship(self) -> None:
        """Send this package to the workers once, unless they share our disk."""
        if self._shipped:
            return
        package = Path(reconciler.__file__).parent
        with tempfile.TemporaryDirectory() as folder:
            archive = shutil.make_archive(
                f"{folder}/reconciler", "zip", root_dir=package.parent, base_dir=package.name
            )
            self._context.addPyFile(archive)
        self._shipped = True


class _Task:
    """What one task does; picklable."""

    def __init__(self, ref: StorageRef, done: Any) -> None:
        self._ref, self._done = ref, done

    def __call__(self, work: Iterable[list[Batch]]) -> Iterator[Outcome]:
        from reconciler.storage.open import open_storage  # noqa: PLC0415 (on the worker)

        storage = open_storage(self._ref)
        for share in work:
            for outcome in delete_share(storage, share):
                self._done += outcome.deleted + len(outcome.gone) + len(outcome.failed)
                yield outcome


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
