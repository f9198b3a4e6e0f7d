"""Real Hudi in the JVM of Spark's driver, through the gateway that PySpark has to it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunningError
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from reconciler.cluster.spark import job, ship
from reconciler.delegate.bundles import how_to_add
from reconciler.delegate.options import hadoop_path
from reconciler.delegate.tally import parts_of_all, tally_of_part
from reconciler.errors import PartialError, ReconcilerError
from reconciler.rewrite.model import Group, Rewrite, Tally
from reconciler.rewrite.parts import Part
from reconciler.storage.api import StorageRef
from reconciler.storage.redaction import redacted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLIENT: Final = "org.apache.hudi.client.SparkRDDWriteClient"
_KRYO: Final = "org.apache.spark.serializer.KryoSerializer"
_SERIALIZER: Final = "spark.serializer"
#: seconds that Hudi gets to end when its jobs are cancelled
_TO_END_S: Final = 60


class HudiOnSpark:
    """Hudi's own client on a session's context; one table at a time a thread, as Hudi allows."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: Any = session._jvm  # noqa: SLF001 (the only way to Java)

    def version(self) -> str:
        return str(self._found().getPackage().getImplementationVersion())

    def clean(self, ref: StorageRef, instant: str, options: Mapping[str, str]) -> None:
        """Past Hudi's client, which would first roll back what it takes for failed writes."""
        with _said_plainly(ref, f"executing clean {instant}"):
            engine = self._engine()
            table = self._jvm.org.apache.hudi.table.HoodieSparkTable.create(
                self._config(ref, options), engine
            )
            self._to_its_end(partial(table.clean, engine, instant))

    def cluster(
        self, ref: StorageRef, instant: str, options: Mapping[str, str], *, outputs: int
    ) -> None:
        with _said_plainly(ref, f"executing clustering {instant}"), self._shuffling(outputs):
            client = self._jvm.org.apache.hudi.client.SparkRDDWriteClient(
                self._engine(), self._config(ref, options)
            )
            try:
                self._to_its_end(partial(client.cluster, instant, True))
            finally:
                client.close()

    def tallies(self, ref: StorageRef, work: Rewrite, groups: Sequence[Group]) -> list[Tally]:
        context = self._session.sparkContext
        parts = parts_of_all(groups)
        found = {group.number: Tally() for group in groups}
        if parts:
            ship(context)
            task = partial(_tallies, ref, work)
            described = f"reconciler: count the rows of {len(groups)} groups"
            with job(context, described, lambda said: redacted(said, ref.secrets)):
                told = context.parallelize(parts, len(parts)).mapPartitions(task).collect()
            for number, tally in told:
                found[number] = found[number].plus(tally)
        return [found[group.number] for group in groups]

    def _to_its_end(self, call: Callable[[], Any]) -> None:
        """Call Java so that an interruption cancels its jobs and waits until it has given up."""
        pool = ThreadPoolExecutor(1, "reconciler-hudi")
        future: Future[Any] = pool.submit(self._here, call)
        pool.shutdown(wait=False)
        try:
            future.result()
        except BaseException:
            if not future.done():
                self._session.sparkContext.cancelAllJobs()
                _wait(future)
            raise

    def _here(self, call: Callable[[], Any]) -> Any:
        """In a thread of its own, which Java takes to be of no session."""
        java = self._session._jsparkSession  # noqa: SLF001
        self._jvm.org.apache.spark.sql.SparkSession.setActiveSession(java)
        return call()

    def _found(self) -> Any:
        """Hudi's client as Java has it, by the loader that knows what was added to a session."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # noqa: PLC0415

        java = self._jvm.java.lang
        try:
            loader = java.Thread.currentThread().getContextClassLoader()
            client = getattr(java, "Class").forName(_CLIENT, True, loader)  # noqa: B009
        except Py4JJavaError:
            raise ReconcilerError(
                "--executor hudi needs a Hudi bundle on Spark's class path, and there is none: "
                f"{how_to_add()}"
            ) from None
        if self._session.sparkContext.getConf().get(_SERIALIZER) != _KRYO:
            raise ReconcilerError(
                f"Hudi needs another serializer of Spark: add --spark-conf {_SERIALIZER}={_KRYO}"
            )
        return client

    def _engine(self) -> Any:
        context = self._session.sparkContext._jsc  # noqa: SLF001
        return self._jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(context)

    def _config(self, ref: StorageRef, options: Mapping[str, str]) -> Any:
        properties = self._jvm.java.util.Properties()
        for key, value in options.items():
            properties.setProperty(key, value)
        builder = self._jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder()
        return builder.withPath(hadoop_path(ref.location)).withProperties(properties).build()

    @contextlib.contextmanager
    def _shuffling(self, outputs: int) -> Iterator[None]:
        """Sorts that end in so many files: Hudi's linear order has none of its own to say it."""
        conf = self._session.conf
        wanted = {
            "spark.sql.shuffle.partitions": str(
                max(outputs, int(conf.get("spark.sql.shuffle.partitions") or 1))
            ),
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
        }
        before = {key: conf.get(key) for key in wanted}
        try:
            for key, value in wanted.items():
                conf.set(key, value)
            yield
        finally:
            with contextlib.suppress(Exception):  # Java itself may be gone
                for key, old in before.items():
                    conf.set(key, old or "")


@contextlib.contextmanager
def _said_plainly(ref: StorageRef, doing: str) -> Iterator[None]:
    """Hudi's own reason, the innermost of those that it wraps; and no secret in it."""
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # noqa: PLC0415

    try:
        yield
    except Py4JJavaError as error:
        said = redacted(_reason(error.java_exception), ref.secrets)
        raise ReconcilerError(f"Hudi stopped {doing}: {said}") from error
    except (Py4JNetworkError, ConnectionError) as error:
        raise ReconcilerError("the Java process of Spark's driver has ended") from error
    except Py4JError as error:
        said = redacted(str(error).partition("\n")[0], ref.secrets)
        raise ReconcilerError(f"Hudi stopped {doing}: {said}") from error


def _wait(future: Future[Any]) -> None:
    try:
        future.exception(_TO_END_S)
    except StillRunningError:
        raise PartialError(
            "Hudi goes on although its jobs were cancelled; look at the table when it has ended, "
            "and run apply again"
        ) from None


def _tallies(ref: StorageRef, work: Rewrite, parts: Iterable[Part]) -> Iterator[tuple[int, Tally]]:
    from reconciler.storage.open import open_storage  # noqa: PLC0415 (on the worker)

    storage = open_storage(ref)
    for part in parts:
        yield part.group.number, tally_of_part(part, work, storage)


def _reason(thrown: Any) -> str:
    while (cause := thrown.getCause()) is not None:
        thrown = cause
    return str(thrown.toString()).partition("\n")[0]
