"""Write in this process: what is small, and all of it in tests and crash drills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from reconciler.lazy_dataclass import dataclass
from reconciler.spark.staged_rows import LocalRowSource, Receive
from reconciler.spark.temporary_folders import make_temporary_folder
from reconciler.storage.api import Storage
from reconciler.storage.parallel import run_parallel
from reconciler.writer.job import TaskRunner, WriteAssignment, WriteJob, WrittenFiles
from reconciler.writer.stages import write_files


@dataclass(frozen=True, slots=True)
class LocalWriter:
    """Reads and writes through one storage; blocks between stages are local spill files.

    ``write`` takes Arrow batches, in parts that stand for the tasks of a cluster.
    ``shuffle_partitions``: over how many partitions rows are spread. ``threads``: tasks at a time;
    with one, calls of the storage have an order.
    """

    storage: Storage
    shuffle_partitions: int = 1
    threads: int = 1

    def write(
        self,
        rows: Sequence[Iterable[Any]],
        job: WriteJob,
        *,
        assigned: Callable[[WriteAssignment], None],
    ) -> WrittenFiles:
        with make_temporary_folder() as made:
            folder = str(made)
            context = LocalTaskContext(self.storage, folder)
            runner = TaskRunner(
                context=context,
                broadcast=_LocalBroadcast,
                partitions=self.shuffle_partitions,
                search_tasks=self.shuffle_partitions,
            )
            source = LocalRowSource(rows, folder, partial(run_on_threads, self.threads))
            return write_files(source, job, runner, assigned=assigned)


@dataclass(frozen=True, slots=True)
class _LocalBroadcast:
    """A value of this process."""

    value: Any


@dataclass(frozen=True, slots=True)
class LocalTaskContext:
    """The context of tasks on threads; ``above``: a folder for theirs."""

    storage: Storage
    above: str

    def open_storage(self) -> Storage:
        return self.storage

    def get_attempt(self) -> int:
        return 0

    @contextmanager
    def make_folder(self) -> Iterator[Path]:
        with make_temporary_folder(self.above) as folder:
            yield folder


def run_on_threads(threads: int, task: Receive, count: int) -> list[Any]:
    """Run a task for each partition in this process; when one fails no other begins."""

    def run(partition: int) -> list[Any]:
        return list(task(partition, iter(())))

    done = run_parallel(run, range(count), parallelism=threads)
    return [result for results in done for result in results]
