"""The Spark session of a command."""

from __future__ import annotations

import logging
import re
import shlex
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler import runtime
from reconciler.cli import interruption
from reconciler.cli.error_reports import DEBUG
from reconciler.cli.java import find_java_need, use_java
from reconciler.cli.logs import redirect_child_output
from reconciler.cli.options import Executor, SparkOptions, SparkSettings
from reconciler.cli.pandas_import import allow_pandas
from reconciler.cli.spark_connectors import (
    NO_STORES,
    StoreNeeds,
    add_connectors,
    find_hadoop_version,
)
from reconciler.cli.spark_master import check_master, check_own_settings
from reconciler.cli.spark_properties import (
    DEFAULT_REDACTION,
    PROPERTIES_FILE,
    REDACTION,
    adapt_to_submit,
    extend_redaction,
    find_exposed_settings,
    find_private_settings,
    format_properties,
    open_private_file,
    read_defaults,
    split_submit_arguments,
)
from reconciler.cli.terminal import log_message
from reconciler.errors import ReconcilerError, UsageError
from reconciler.spark.executor_wait import report_waits
from reconciler.spark.sessions import find_running_session
from reconciler.storage.hadoop_settings import PROFILE_SETTING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEY: Final = re.compile(r"([A-Za-z][\w.-]*)=[^=]")  # not Base64, which ends with equals signs
_SUBMIT_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
#: where PySpark 4 repeats the errors that it raises, as JSON
_ERROR_LOGS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
#: where spark-submit has started Java already, with settings of its own
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
#: only the fast compiler: the other one takes half the CPU of a short job, and is of no use where
#: Python does the work
_FAST_START: Final = "-XX:TieredStopAtLevel=1"
_LOG_CONFIG: Final = """\
rootLogger.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
logger.workers.name = org.apache.spark.sql.execution.python
logger.workers.level = off
logger.worker.name = org.apache.spark.api.python.PythonRunner
logger.worker.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n%ex
"""


@contextmanager
def open_spark_session(
    master: str | None,
    conf: Mapping[str, str],
    *,
    in_python: bool = False,
    from_variables: Collection[str] = (),
    needs: StoreNeeds = NO_STORES,
) -> Iterator[SparkSession]:
    """Open a session for the block: that of this process if it has one, else a new one.

    ``master`` is Spark's; the default is local[*] unless Spark is configured otherwise. Settings of
    spark-submit win over all. ``from_variables``: the settings that environment variables hold.
    ``in_python``: tasks leave Java little to do. ``needs``: the stores that Spark itself reads.
    Raises ReconcilerError if there is no Java or Spark does not start, or for a store's client that
    cannot be fetched, and UsageError for an invalid master or setting of reconciler's own.
    """
    check_master(master, conf)
    check_own_settings(conf)
    allow_pandas()
    from pyspark.sql import SparkSession  # noqa: PLC0415 (slow to import)

    running = find_running_session()
    if running is not None:
        yield running
        return
    _announce(master, from_variables)
    use_java()
    with (
        tempfile.TemporaryDirectory(prefix="reconciler-spark-") as folder,
        interruption.watch_interrupts() as watch,
    ):
        made = _make_settings(master, conf, Path(folder), in_python=in_python)
        made = _add_connectors(made, needs)
        with _explain_failed_start(made.get("spark.master")):
            made = _prepare_java(made, Path(folder))
            made[REDACTION] = _find_redaction(
                find_private_settings(made, from_variables), made.get(REDACTION)
            )
            session = _start_session(SparkSession.builder, made)
            _quiet_java(session, Path(folder))
        watch()  # Spark's own handler would call Java in the middle of another call
        try:
            with _report_from_spark():
                yield session
        finally:
            _stop_session(session)


@contextmanager
def _report_from_spark() -> Iterator[None]:
    """Report waits for executors and shipments of the block."""
    from reconciler.cli.shipments import ShipmentLog  # noqa: PLC0415 (with Spark only)
    from reconciler.spark.shipping import listen_to_shipments  # noqa: PLC0415

    with (
        report_waits(_report_wait, interruption.is_interrupted),
        listen_to_shipments(ShipmentLog()),
    ):
        yield


def _announce(master: str | None, from_variables: Collection[str]) -> None:
    """Say that Spark starts, and which secrets its Java would show to others."""
    for name in find_exposed_settings(from_variables):
        log_message(f"warning: {name}: everybody on this host can read it", level="warning")
    log_message("starting Spark")
    log_message(f"Spark's master: {master or 'as configured'}", level="debug")


def _add_connectors(settings: dict[str, str], needs: StoreNeeds) -> dict[str, str]:
    """Return settings with the clients that Spark lacks for stores, if its Java starts here."""
    from pyspark import SparkContext  # noqa: PLC0415 (slow to import)

    runs = _GATEWAY in runtime.environment() or SparkContext._gateway is not None  # noqa: SLF001
    if runs or not needs.stores:
        return settings
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 (slow to import)

    home, defaults = Path(_find_spark_home()), read_defaults(_find_default_settings())
    return add_connectors(settings, needs, home, defaults)


def find_hadoop() -> str:
    """Return the version of Hadoop in the Spark that would start here; "" if it brings none."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 (slow to import)

    return find_hadoop_version(Path(_find_spark_home())) or ""


def _report_wait(text: str) -> None:
    log_message(text, level="warning", event="wait")


def has_active_session() -> bool:
    """Return whether this process has a Spark session, which commands then use."""
    return find_running_session() is not None


def is_spark_running() -> bool:
    """Return whether this process has Spark already: a session, or the Java of spark-submit."""
    return _GATEWAY in runtime.environment() or has_active_session()


def _stop_session(session: SparkSession) -> None:
    with suppress(Exception):  # the signal may have ended Java too
        session.stop()


def _make_settings(
    master: str | None, conf: Mapping[str, str], folder: Path, *, in_python: bool = False
) -> dict[str, str]:
    """Return the settings of a session: those that are given, and ours where none is given.

    Under spark-submit only those that are given: it has chosen all others. ``folder`` gets the
    configuration of Java's log.
    """
    if _GATEWAY in runtime.environment():
        return {**({} if master is None else {"spark.master": master}), **conf}
    ours = {
        "spark.app.name": "reconciler",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={_write_log_config(folder)}",
    }
    if master is not None or "SPARK_CONF_DIR" not in runtime.environment():
        ours["spark.master"] = master or "local[*]"
    if ours.get("spark.master", "").startswith("local"):
        ours["spark.driver.host"] = "localhost"
        ours["spark.driver.bindAddress"] = "127.0.0.1"
        # the workers are on this machine: use the Python with this package, not the first on PATH
        runtime.set_default_variable("PYSPARK_PYTHON", sys.executable)
        if in_python:
            ours[_JAVA_OPTIONS] += f" {_FAST_START}"
    given = dict(conf)
    if _JAVA_OPTIONS in given:  # given options come last, so that they win
        given[_JAVA_OPTIONS] = f"{ours[_JAVA_OPTIONS]} {given[_JAVA_OPTIONS]}"
    return ours | given


def _write_log_config(folder: Path) -> str:
    """Write the configuration of a quiet log, and return its URI."""
    file = folder / "log4j2.properties"
    file.write_text(_LOG_CONFIG, encoding="ascii")
    return file.as_uri()


def _prepare_java(settings: dict[str, str], folder: Path) -> dict[str, str]:
    """Start Spark's Java, and return the settings of its session.

    The Java of spark-submit runs already: its own settings win, and a warning names the others.
    """
    if _GATEWAY not in runtime.environment():
        _start_java(settings, folder)
        return settings
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 (slow to import)

    SparkContext._ensure_initialized()  # noqa: SLF001 (PySpark has no public name for it)
    made, warnings = adapt_to_submit(settings, dict(SparkConf().getAll()))
    for warning in warnings:
        log_message(f"warning: {warning}", level="warning")
    return made


def _quiet_java(session: SparkSession, folder: Path) -> None:
    """Leave only errors in the log of a Java that spark-submit started, if nobody configured it.

    Spark reads its default configuration when a session starts, so this comes after it. A Java that
    logs by other means than Log4j's core stays as it is.
    """
    if _GATEWAY not in runtime.environment():
        return
    from py4j.protocol import Py4JError  # type: ignore[import-untyped] # noqa: PLC0415

    jvm: Any = session.sparkContext._jvm  # noqa: SLF001 (PySpark has no public name for it)
    with suppress(Py4JError, TypeError):  # TypeError: a class that is not there
        context = jvm.org.apache.logging.log4j.LogManager.getContext(False)
        used = context.getConfiguration().getConfigurationSource().getLocation() or ""
        if used.endswith("/org/apache/spark/log4j2-defaults.properties"):
            uri = jvm.java.net.URI(_write_log_config(folder))
            jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(uri)


def _start_java(settings: Mapping[str, str], folder: Path) -> None:
    """Start Spark's Java for these settings, unless this process has one already.

    ``folder``: where the file of settings is made if the system has no files in memory. The file
    is gone when this returns.
    """
    from pyspark import SparkContext  # noqa: PLC0415 (slow to import)

    if SparkContext._gateway is not None:  # noqa: SLF001
        return
    given = runtime.environment().get(_SUBMIT_ARGUMENTS, "pyspark-shell")
    arguments, defaults = split_submit_arguments(given)
    if defaults is None:
        defaults = str(_find_default_settings())
    text = f"{read_defaults(Path(defaults))}\n\n{format_properties(settings)}"
    with open_private_file(text, folder) as path:
        arguments = [PROPERTIES_FILE, path, *arguments]
        with (
            runtime.temporary_variable(_SUBMIT_ARGUMENTS, shlex.join(arguments)),
            _name_profile(settings),
        ):
            SparkContext._ensure_initialized()  # noqa: SLF001 (PySpark has no public name for it)


def _name_profile(settings: Mapping[str, str]) -> AbstractContextManager[None]:
    """Let a Java that starts in the block have AWS's profile of its executors."""
    profile = settings.get(PROFILE_SETTING)
    return runtime.temporary_variable("AWS_PROFILE", profile) if profile else nullcontext()


def _find_redaction(private: Iterable[str], given: str | None) -> str:
    """Return the regular expression of settings that Spark hides in its pages and event logs.

    It covers what Spark is configured to hide, and these settings. ``given``: what the settings
    say of it themselves. Spark's Java runs already.
    """
    from pyspark import SparkConf  # noqa: PLC0415 (slow to import)

    known = given or SparkConf().get(REDACTION, DEFAULT_REDACTION)
    return extend_redaction(str(known), private)


def _find_default_settings() -> Path:
    """Return the file of settings that Spark reads if no other is given."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 (slow to import)

    folder = runtime.environment().get("SPARK_CONF_DIR")
    return Path(folder or f"{_find_spark_home()}/conf") / "spark-defaults.conf"


def _start_session(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def _explain_failed_start(master: str | None) -> Iterator[None]:
    """Raise what goes wrong in the block as a ReconcilerError; what Java says is no result."""
    from reconciler.spark.failures import explain_failed_start  # noqa: PLC0415 (with Spark only)

    if not DEBUG.get():
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it also raises what it logs
        logging.getLogger().addFilter(_is_not_from_py4j)  # it uses the root logger too
        _quiet_pyspark()
    try:
        with redirect_child_output(drops_notice=find_java_need().spark == "Spark 4"):
            yield
    except Exception as error:
        interruption.raise_if_interrupted()
        reason = explain_failed_start(error, master)
        raise ReconcilerError(f"Spark did not start, see above: {reason}") from error


def _quiet_pyspark() -> None:
    """Keep PySpark 4 from writing the errors that it raises to standard error, as JSON."""
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415 (slow to import)
    except ImportError:  # of PySpark 3.5
        return
    for name in _ERROR_LOGS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def parse_spark_settings(
    options: SparkOptions, executor: Executor = Executor.AUTO
) -> SparkSettings:
    """Return the master, and the key and value of every ``--spark-conf``, with that of ``--ship``.

    Any of them asks for Spark. Raises UsageError for invalid text, and for options that contradict
    each other. Text may be a secret: only a certain key is repeated.

    >>> parse_spark_settings(SparkOptions(spark_conf=["spark.executor.memory=2g"])).conf
    {'spark.executor.memory': '2g'}
    """
    conf = {}
    for text in options.spark_conf or ():
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            named = _KEY.match(text)
            what = f"--spark-conf {named[1]}" if named else "--spark-conf"
            raise UsageError(f"{what}: write it as spark.some.key=value")
        conf[key] = value
    if options.ship:
        from reconciler.spark.shipping import SHIP  # noqa: PLC0415 (with --ship only)

        conf[SHIP] = "true"
    if given := _find_given_option(options):
        if executor is Executor.LOCAL:
            raise UsageError(
                f"--executor local and {given} contradict each other; give one of them"
            )
        executor = Executor.SPARK
    return SparkSettings(master=options.master, conf=conf, executor=executor)


def _find_given_option(options: SparkOptions) -> str | None:
    """Return the name of an option about Spark that is given."""
    named = {
        "--master": options.master is not None,
        "--spark-conf": bool(options.spark_conf),
        "--ship": options.ship,
    }
    return next((name for name, is_given in named.items() if is_given), None)
