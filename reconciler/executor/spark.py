"""Delete the files of cleans with the executors of a Spark session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reconciler.executor.deletion import DeletionBatch, DeletionOutcome, delete_share, split_shares
from reconciler.spark.jobs import report_progress, run_job_group
from reconciler.spark.workers import set_up_workers
from reconciler.storage.api import Advance, StorageRef
from reconciler.storage.open import find_bulk_size, list_client_packages
from reconciler.storage.redaction import redact_secrets
from reconciler.storage.requests import OF_THIS_PROCESS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: from so many files on, shares are made smaller so that progress is seen
_MANY_FILES: Final = 50_000
_SHARES_PER_SLOT: Final = 4


class SparkFileDeleter:
    """Deletes files on a session's executors; each task opens its own storage.

    The cluster's slots bound the tasks at a time, for several tables together. Spark repeats a task
    that dies, and what its earlier attempt removed counts as deleted. When Spark gives up, a
    ReconcilerError says why, and no task deletes any more.
    """

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext

    def delete_files(
        self, ref: StorageRef, batches: Sequence[DeletionBatch], *, progress: Advance
    ) -> list[DeletionOutcome]:
        files = sum(len(batch.names) for batch in batches)
        slots = self._context.defaultParallelism
        shares = slots * (_SHARES_PER_SLOT if files > _MANY_FILES else 1)
        work = split_shares(batches, shares, call=find_bulk_size(ref.location))
        if not work:
            return []
        set_up_workers(self._context, list_client_packages(ref.location))
        done, requests = self._context.accumulator(0), self._context.accumulator(0)
        task = _DeletionTask(ref, done, requests, speculates=self._speculates())
        described = f"reconciler: delete {files} files of {ref.location}"
        with (
            run_job_group(self._context, described, lambda text: redact_secrets(text, ref.secrets)),
            report_progress(done, progress),
        ):
            outcomes: list[DeletionOutcome] = (
                self._context.parallelize(work, len(work)).mapPartitions(task).collect()
            )
        OF_THIS_PROCESS.add("delete", requests.value)
        return outcomes

    def _speculates(self) -> bool:
        setting: str = self._context.getConf().get("spark.speculation", "false")
        return setting.lower() == "true"


class _DeletionTask:
    """Deletes the files of one task; picklable."""

    def __init__(self, ref: StorageRef, done: Any, requests: Any, *, speculates: bool) -> None:
        self._ref, self._speculates = ref, speculates
        self._done, self._requests = done, requests

    def __call__(self, work: Iterable[list[DeletionBatch]]) -> Iterator[DeletionOutcome]:
        from pyspark import TaskContext  # noqa: PLC0415 (on the worker)

        from reconciler.storage.open import open_storage  # noqa: PLC0415

        before = OF_THIS_PROCESS.copy()["delete"]
        context = TaskContext.get()
        # the driver has just seen every file: what is gone, another attempt at this task took
        repeats = self._speculates or (context is not None and context.attemptNumber() > 0)
        storage = open_storage(self._ref)
        for share in work:
            for outcome in delete_share(storage, share):
                self._done += outcome.deleted + len(outcome.gone) + len(outcome.failed)
                taken = outcome.deleted + len(outcome.gone)
                yield replace(outcome, deleted=taken, gone=()) if repeats else outcome
        self._requests += OF_THIS_PROCESS.copy()["delete"] - before
