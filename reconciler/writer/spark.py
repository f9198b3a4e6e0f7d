"""Write on a Spark cluster; rows travel between tasks as Arrow data, never decoded.

A task may run again or twice at once: one attempt's blocks and results count, and every attempt
writes files with other names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reconciler.errors import UnsupportedError, UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.spark import translate_spark_errors
from reconciler.spark.connect import refuse_connect
from reconciler.spark.failures import explain_failure
from reconciler.spark.jobs import run_job_group
from reconciler.spark.sessions import find_running_session
from reconciler.spark.staged_rows import RowSource
from reconciler.spark.staging import (
    StagingOpener,
    choose_staging,
    open_driver_source,
    open_session_folder,
)
from reconciler.spark.tasks import get_task_attempt, make_local_folder, use_one_core
from reconciler.spark.workers import (
    MERGING_PACKAGES,
    RECORD_INDEX_PACKAGES,
    WRITING_PACKAGES,
    is_single_host,
    set_up_workers,
)
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.open import list_client_packages, open_storage
from reconciler.storage.parallel import MOST_THREADS
from reconciler.storage.redaction import redact_secrets, redact_urls
from reconciler.writer.job import TaskContext, TaskRunner, WriteAssignment, WriteJob, WrittenFiles
from reconciler.writer.local import LocalTaskContext, run_on_threads
from reconciler.writer.request import WriteRequest, check_request, parse_mode
from reconciler.writer.stages import write_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: bytes per shuffle partition by Spark's estimate; in Arrow's memory they may be several times that
_BYTES: Final = 32 * 1024 * 1024
#: Spark's estimate is far above this if it knows nothing
_KNOWN: Final = 1 << 50
_MAX_PARTITIONS: Final = 10_000
#: shuffle partitions per core if Spark knows no size; its default of 200 is many for two cores
_UNKNOWN_PER_SLOT: Final = 8
_SEARCHES_PER_SLOT: Final = 2
#: types of Spark 4 that travel as structs in Arrow, and would be written as such
_STRUCTS_IN_ARROW: Final = frozenset({"variant", "geometry", "geography"})
#: where types of arrays and maps have others
_PARTS_OF_TYPES: Final = ("elementType", "keyType", "valueType")


def find_session(rows: DataFrame | None) -> SparkSession:
    """Return the session of rows, or that of this process; raise UsageError if it has none."""
    if rows is not None:
        return rows.sparkSession
    if running := find_running_session():
        refuse_connect(running, "reconcile=True")
        return running
    raise UsageError("reconcile=True needs a Spark session: start one before the write")


def open_writer(session: SparkSession) -> Callable[[StorageRef], SparkWriter]:
    """Return how a session writes into tables; raise ReconcilerError if its workers cannot."""
    set_up_workers(session.sparkContext, WRITING_PACKAGES)
    return partial(SparkWriter, session)


class SparkWriter:
    """Writes on a session's executors; every task opens its own storage.

    ``shuffle_partitions``: over how many partitions rows are spread by their keys, None for a
    number by their size. Without ``staging``, a local master with few cores only reads the rows,
    and threads of this process do everything else.
    """

    def __init__(
        self,
        session: SparkSession,
        ref: StorageRef,
        *,
        shuffle_partitions: int | None = None,
        staging: StagingOpener | None = None,
    ) -> None:
        self._context, self._ref = session.sparkContext, ref
        self._partitions = shuffle_partitions
        self._staging = staging

    def write(
        self, rows: DataFrame, job: WriteJob, *, assigned: Callable[[WriteAssignment], None]
    ) -> WrittenFiles:
        """Write the rows of a DataFrame, as in ``RowWriter``; the DataFrame is evaluated once."""
        packages = (
            *WRITING_PACKAGES,
            *(() if job.index is None else RECORD_INDEX_PACKAGES),
            *(() if job.log_targets is None else MERGING_PACKAGES),
        )
        set_up_workers(self._context, (*packages, *list_client_packages(self._ref.location)))
        ref = self._ref
        description = f"reconciler: {job.row_job.operation.value} into {ref.location}"
        with ExitStack() as stack:
            shared = stack.enter_context(_open_broadcasts(self._context))
            staged = stack.enter_context(self._open_staging())
            stack.enter_context(translate_spark_errors(ref))
            # files of an abandoned write are removed by their markers, so none may appear later
            stack.enter_context(
                run_job_group(
                    self._context,
                    description,
                    lambda message: redact_urls(redact_secrets(message, ref.secrets)),
                    waits_for_all_attempts=True,
                    explain=explain_failure,
                )
            )
            slots = self._context.defaultParallelism
            runner = TaskRunner(
                context=staged.tasks,
                broadcast=shared,
                partitions=self._partitions or _count_shuffle_partitions(rows, slots),
                search_tasks=_SEARCHES_PER_SLOT * slots,
            )
            return write_files(staged.open_source(rows), job, runner, assigned=assigned)

    @contextmanager
    def _open_staging(self) -> Iterator[_Staging]:
        """Choose where the tasks run that follow the reading of the rows."""
        context = self._context
        if self._staging is None and runs_here(context):
            with open_session_folder() as folder:
                run = partial(run_on_threads, context.defaultParallelism)
                here = partial(open_driver_source, folder, run)
                yield _Staging(here, LocalTaskContext(open_storage(self._ref), folder))
            return
        with (self._staging or choose_staging(context))(context) as open_source:
            yield _Staging(open_source, _SparkTaskContext(self._ref))


def runs_here(context: Any) -> bool:
    """True if threads of this process do what Spark's workers would do on the same cores.

    Not for ``local[2,4]``, which repeats a task that fails, and not for more cores than threads
    can use.
    """
    repeats = "," in context.master
    few = context.defaultParallelism <= MOST_THREADS
    return is_single_host(context) and few and not repeats


@dataclass(frozen=True, slots=True)
class _Staging:
    """How rows come to the first stage, and what the tasks of all stages work with."""

    open_source: Callable[[Any], RowSource]
    tasks: TaskContext


def make_arrow_schema(frame: DataFrame) -> Any:
    """Return a DataFrame's columns as an Arrow schema; UnsupportedError for other types."""
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415 (heavy)

    fields = []
    for field in frame.schema.fields:
        problem = (
            f"column {field.name}: rows of type {field.dataType.simpleString()} cannot be "
            "written; cast it"
        )
        if not _STRUCTS_IN_ARROW.isdisjoint(_list_type_names(field.dataType)):
            raise UnsupportedError(problem)
        try:
            kind = to_arrow_type(field.dataType)
        except Exception as error:  # PySpark raises different errors in its versions
            raise UnsupportedError(problem) from error
        fields.append(pa.field(field.name, kind, nullable=field.nullable))
    return pa.schema(fields)


def _list_type_names(kind: Any) -> Iterator[str]:
    """Yield the names of a type of Spark and of those in it."""
    yield kind.typeName()
    parts = [field.dataType for field in getattr(kind, "fields", ())]
    parts += [getattr(kind, name) for name in _PARTS_OF_TYPES if hasattr(kind, name)]
    for part in parts:
        yield from _list_type_names(part)


def make_write_request(
    frame: DataFrame | None,
    operation: str,
    *,
    dedupes: bool = False,
    fills_missing: bool = False,
    partitions: Sequence[str] | None = None,
) -> WriteRequest:
    """Return a request for a DataFrame's rows; UsageError for contradictions.

    Raises UnsupportedError for a DataFrame of Spark Connect.
    """
    refuse_connect(frame, "write")
    mode = parse_mode(operation)
    check_request(mode, has_rows=frame is not None, dedupes=dedupes, partitions=partitions)
    schema = pa.schema([]) if frame is None else make_arrow_schema(frame)
    return WriteRequest(
        mode=mode,
        rows=frame,
        schema=schema,
        dedupes=dedupes,
        fills_missing=fills_missing,
        partitions=partitions,
    )


@contextmanager
def _open_broadcasts(context: Any) -> Iterator[Callable[[Any], Any]]:
    """Broadcast values until the block ends. Disks may hold them, so none has secrets."""
    broadcasts = []

    def shared(value: Any) -> Any:
        broadcasts.append(context.broadcast(value))
        return broadcasts[-1]

    try:
        yield shared
    finally:
        for broadcast in broadcasts:
            broadcast.unpersist()


def _count_shuffle_partitions(rows: DataFrame, slots: int) -> int:
    """Return a number by the rows' size, as far as Spark knows it before reading them."""
    plan = rows._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 (no public name)
    expected = int(plan.stats().sizeInBytes())
    if expected >= _KNOWN:
        configured = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 0)
        return max(slots, min(configured, _UNKNOWN_PER_SLOT * slots))
    return max(slots, min(-(-expected // _BYTES), _MAX_PARTITIONS))


@dataclass(frozen=True, slots=True)
class _SparkTaskContext:
    """A task's own context; secrets are in ``ref``."""

    ref: StorageRef

    def open_storage(self) -> Storage:
        use_one_core()
        return open_storage(self.ref)

    def get_attempt(self) -> int:
        return get_task_attempt()

    def make_folder(self) -> AbstractContextManager[Path]:
        return make_local_folder()
