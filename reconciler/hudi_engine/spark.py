"""Execute plans with real Hudi in the JVM of Spark's driver, through PySpark's gateway."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunningError
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import PartialError, ReconcilerError
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.slice_reader import SliceSource
from reconciler.hudi_engine.bundles import explain_how_to_add
from reconciler.hudi_engine.table_options import to_hadoop_path
from reconciler.rewrite.group_columns import GroupColumns, tally_hashes
from reconciler.rewrite.model import RewriteGroup, RewriteJob, Tally
from reconciler.rewrite.slice_parts import SlicePart, split_into_parts
from reconciler.spark.failures import JVM_ENDED
from reconciler.spark.java_api import read_spark_version
from reconciler.spark.jobs import run_job_group
from reconciler.spark.workers import MERGING_PACKAGES, set_up_workers
from reconciler.storage.api import StorageRef
from reconciler.storage.open import list_client_packages
from reconciler.storage.redaction import redact_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLIENT: Final = "org.apache.hudi.client.SparkRDDWriteClient"
_KRYO: Final = "org.apache.spark.serializer.KryoSerializer"
_SERIALIZER: Final = "spark.serializer"
#: seconds that Hudi gets to stop after its jobs are cancelled
_END_TIMEOUT_S: Final = 60


class SparkHudiExecutor:
    """Hudi's own client on a session's context; Hudi allows one table at a time per thread."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: Any = session._jvm  # noqa: SLF001 (the only way to Java)

    def read_version(self) -> str:
        return str(self._find_client().getPackage().getImplementationVersion())

    def has_class(self, name: str) -> bool:
        return self._load_class(name) is not None

    def read_spark_version(self) -> tuple[int, int]:
        return read_spark_version(self._session)

    def clean(self, ref: StorageRef, instant: str, options: Mapping[str, str]) -> None:
        """Execute a clean without Hudi's client, which would first roll back failed writes."""
        with _translate_errors(ref, f"executing clean {instant}"):
            engine = self._make_engine_context()
            table = self._jvm.org.apache.hudi.table.HoodieSparkTable.create(
                self._make_config(ref, options), engine
            )
            self._call_and_wait(partial(table.clean, engine, instant))

    def cluster(
        self, ref: StorageRef, instant: str, options: Mapping[str, str], *, outputs: int
    ) -> None:
        with (
            _translate_errors(ref, f"executing clustering {instant}"),
            self._shuffle_settings(outputs),
        ):
            client = self._jvm.org.apache.hudi.client.SparkRDDWriteClient(
                self._make_engine_context(), self._make_config(ref, options)
            )
            try:
                self._call_and_wait(partial(client.cluster, instant, True))
            finally:
                client.close()

    def tally_groups(
        self, ref: StorageRef, work: RewriteJob, groups: Sequence[RewriteGroup]
    ) -> list[Tally]:
        context = self._session.sparkContext
        parts = split_groups(groups)
        tallies = {group.number: Tally() for group in groups}
        if parts:
            set_up_workers(context, (*MERGING_PACKAGES, *list_client_packages(ref.location)))
            task = partial(_tally_parts, ref, work)
            description = f"reconciler: count the rows of {len(groups)} groups"
            with run_job_group(
                context, description, lambda reason: redact_secrets(reason, ref.secrets)
            ):
                results = context.parallelize(parts, len(parts)).mapPartitions(task).collect()
            for number, tally in results:
                tallies[number] = tallies[number].add(tally)
        return [tallies[group.number] for group in groups]

    def _call_and_wait(self, call: Callable[[], Any]) -> None:
        """Call Java; an interruption cancels its jobs and waits until it has stopped."""
        pool = ThreadPoolExecutor(1, "reconciler-hudi")
        future: Future[Any] = pool.submit(self._call_in_session, call)
        pool.shutdown(wait=False)
        try:
            future.result()
        except BaseException:
            if not future.done():
                self._session.sparkContext.cancelAllJobs()
                _wait_for_end(future)
            raise

    def _call_in_session(self, call: Callable[[], Any]) -> Any:
        """Call in a new thread, where Java knows no active session yet."""
        java = self._session._jsparkSession  # noqa: SLF001
        self._jvm.org.apache.spark.sql.SparkSession.setActiveSession(java)
        return call()

    def _find_client(self) -> Any:
        """Return Hudi's client class."""
        client = self._load_class(_CLIENT)
        if client is None:
            raise ReconcilerError(
                "--executor hudi needs a Hudi bundle on Spark's class path, and there is none: "
                f"{explain_how_to_add(read_spark_version(self._session))}"
            )
        if self._session.sparkContext.getConf().get(_SERIALIZER) != _KRYO:
            raise ReconcilerError(
                f"Hudi needs another serializer of Spark: add --spark-conf {_SERIALIZER}={_KRYO}"
            )
        return client

    def _load_class(self, name: str) -> Any:
        """Return a class, from the loader that knows jars added to the session; None if absent."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # noqa: PLC0415

        java = self._jvm.java.lang
        try:
            loader = java.Thread.currentThread().getContextClassLoader()
            return getattr(java, "Class").forName(name, True, loader)  # noqa: B009
        except Py4JJavaError:
            return None

    def _make_engine_context(self) -> Any:
        context = self._session.sparkContext._jsc  # noqa: SLF001
        return self._jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(context)

    def _make_config(self, ref: StorageRef, options: Mapping[str, str]) -> Any:
        properties = self._jvm.java.util.Properties()
        for key, value in options.items():
            properties.setProperty(key, value)
        builder = self._jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder()
        return builder.withPath(to_hadoop_path(ref.location)).withProperties(properties).build()

    @contextlib.contextmanager
    def _shuffle_settings(self, outputs: int) -> Iterator[None]:
        """Shuffle into ``outputs`` partitions; Hudi's linear order has no own option for it."""
        conf = self._session.conf
        settings = {
            "spark.sql.shuffle.partitions": str(
                max(outputs, int(conf.get("spark.sql.shuffle.partitions") or 1))
            ),
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
        }
        before = {key: conf.get(key) for key in settings}
        try:
            for key, value in settings.items():
                conf.set(key, value)
            yield
        finally:
            with contextlib.suppress(Exception):  # the JVM may be gone
                for key, old in before.items():
                    conf.set(key, old or "")


@contextlib.contextmanager
def _translate_errors(ref: StorageRef, action: str) -> Iterator[None]:
    """Raise Hudi's innermost reason as a ReconcilerError without secrets."""
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # noqa: PLC0415

    try:
        yield
    except Py4JJavaError as error:
        reason = redact_secrets(_find_root_cause(error.java_exception), ref.secrets)
        raise ReconcilerError(f"Hudi stopped {action}: {reason}") from error
    except (Py4JNetworkError, ConnectionError) as error:
        raise ReconcilerError(JVM_ENDED) from error
    except Py4JError as error:
        reason = redact_secrets(str(error).partition("\n")[0], ref.secrets)
        raise ReconcilerError(f"Hudi stopped {action}: {reason}") from error


def _wait_for_end(future: Future[Any]) -> None:
    try:
        future.exception(_END_TIMEOUT_S)
    except StillRunningError:
        raise PartialError(
            "Hudi still runs although its jobs were cancelled; check the table when it has "
            "stopped, and run apply again"
        ) from None


def _tally_parts(
    ref: StorageRef, job: RewriteJob, parts: Iterable[SlicePart]
) -> Iterator[tuple[int, Tally]]:
    from reconciler.storage.open import open_storage  # noqa: PLC0415 (on the worker)

    storage = open_storage(ref)
    for part in parts:
        yield part.group.number, tally_part(part, job, storage)


def _find_root_cause(error: Any) -> str:
    while (cause := error.getCause()) is not None:
        error = cause
    return str(error.toString()).partition("\n")[0]


def split_groups(groups: Sequence[RewriteGroup]) -> list[SlicePart]:
    """Return what tasks read, one part each."""
    return [part for group in groups for part in split_into_parts(group)]


def tally_part(part: SlicePart, job: RewriteJob, source: SliceSource) -> Tally:
    """Count rows and keys of a part, log files merged. Raises as ``read_slice`` does."""
    columns = _select_key_columns(GroupColumns.from_job(job, part.group))
    tallies = Tally()
    for rows in columns.read(part, source, _ignore_footer):
        tallies = tallies.add(tally_hashes(columns.hash_keys(rows)))
    return tallies


def _select_key_columns(columns: GroupColumns) -> GroupColumns:
    """Restrict a reading to the key columns, if rows have a key."""
    key_columns = {RECORD_KEY} if columns.key == (RECORD_KEY,) else _top_level_names(columns.key)
    if not key_columns:
        return columns
    settings = tuple(name for name in columns.reading.columns or () if name in key_columns)
    return replace(columns, reading=replace(columns.reading, columns=settings))


def _top_level_names(key_columns: Sequence[str]) -> set[str]:
    return {name.partition(".")[0] for name in key_columns}


def _ignore_footer(_footer: Any) -> None:
    """Ignore the footers of base files."""
