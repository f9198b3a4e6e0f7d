"""Start a real Spark Connect server on the loopback address, of the Spark that is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.oracle.bundles import class_path
from tests.servers.programs import find_free_port, start_server
from tests.servers.standalone import SPARK_HOME, find_scala_version

#: of Spark 3.5, which has no server of its own; it runs in every 3.5
_JAR_VERSION = "3.5.5"
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def run_connect_server(
    folder: Path, settings: Mapping[str, str] | None = None, python: str = sys.executable
) -> Iterator[str]:
    """Run a server with two cores until the block ends; yield its address, ``sc://...``.

    ``python``: what its workers run. Raises BundleUnavailableError and ServerUnavailableError.
    """
    port = find_free_port()
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        **(settings or {}),
    }
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", "--class", _SERVER]
    if jar := _find_jar():
        command += ["--jars", jar]
    command += [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    own = {"SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    log = folder / "connect.log"
    # Spark 4 keeps what clients send below the folder that it works in
    process = start_server([*command, "spark-internal"], port, log, own, folder)
    try:
        yield f"sc://127.0.0.1:{port}"
    finally:
        family = [*psutil.Process(process.pid).children(recursive=True), process]
        for one in family:
            one.kill()
        process.wait(30)


def connect(address: str) -> Any:
    """Return a new session of a server, whatever else this process has."""
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 (heavy)

    return SparkSession.builder.remote(address).create()


def _find_jar() -> str | None:
    """Return the server's jar; None if it is among Spark's own, as in Spark 4."""
    if any((SPARK_HOME / "jars").glob("spark-connect_*.jar")):
        return None
    module = f"spark-connect_{find_scala_version()}"
    return class_path("org.apache.spark", module, _JAR_VERSION, alone=True)
