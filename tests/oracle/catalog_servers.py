"""Start real catalogs: a Hive Metastore of PySpark's own jars, and moto's server of Glue."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from tests.oracle.bundles import BundleUnavailableError, java

_HUDI_FORMAT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_TEXT_FORMAT = "org.apache.hadoop.mapred.TextInputFormat"
_START_S = 300
_LOCKING_METASTORE = Path(__file__).parent / "LockingMetastore.java"


def require_packages(*names):
    """Skip the test if a package is not installed; with CI=true it fails."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        _refuse(f"not installed: {', '.join(missing)}; pip install '.[test]'")


def _refuse(why):
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def _find_free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def _run_server(command, port, log):
    """Run a server until the block ends; it must listen at the port."""
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, cwd=log.parent)
    try:
        deadline = time.monotonic() + _START_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")
            time.sleep(0.2)
        yield
    finally:
        server.kill()
        server.wait()


class HiveServer:
    """A Hive Metastore with an embedded Derby."""

    type = "hive"

    def __init__(self, port):
        self.uri, self.address = f"thrift://127.0.0.1:{port}", f"hive://127.0.0.1:{port}"
        self.options = {"timeout": "60"}

    @classmethod
    @contextmanager
    def start(cls, folder, **settings):
        """Run a metastore until the block ends; ``settings``: Hive's, without ``hive.``.

        With settings it also has the tables of locks.
        """
        require_packages("pymetastore", "thrift")
        try:
            program = java()
        except BundleUnavailableError as problem:
            _refuse(str(problem))
        port = _find_free_port()
        jars = Path(pyspark.__file__).parent / "jars"
        # Hive 2.3 logs asynchronously by a library that Spark leaves out
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dhive.async.log.enabled=false"]
        command = [program, *options, "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
        properties = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:memory:m{port};create=true",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": folder / "warehouse",
        } | {f"hive.{key.replace('_', '.')}": value for key, value in settings.items()}
        command[1:1] = [f"-D{key}={value}" for key, value in properties.items()]
        server = "org.apache.hadoop.hive.metastore.HiveMetaStore"
        command += [str(_LOCKING_METASTORE) if settings else server, "-p", str(port)]
        with _run_server(command, port, folder / "metastore.log"):
            yield cls(port)

    @contextmanager
    def _connect(self):
        from reconciler.state.catalogs.hive import connect_hive  # noqa: PLC0415

        client = connect_hive(self.uri, {})
        yield client._client
        client.close()

    def create_table(self, name, location, keys=(), *, is_hudi=True):
        from pymetastore.hive_metastore import ttypes  # noqa: PLC0415

        database, _, table = name.partition(".")
        descriptor = ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("id", "bigint", "")],
            location=location,
            inputFormat=_HUDI_FORMAT if is_hudi else _TEXT_FORMAT,
            outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
            serdeInfo=ttypes.SerDeInfo(serializationLib="x", parameters={}),
            numBuckets=-1,
            bucketCols=[],
            sortCols=[],
            parameters={},
        )
        with self._connect() as client:
            if database not in client.get_all_databases():
                client.create_database(ttypes.Database(name=database, locationUri=location))
            client.create_table(
                ttypes.Table(
                    tableName=table,
                    dbName=database,
                    sd=descriptor,
                    partitionKeys=[ttypes.FieldSchema(key, "string", "") for key in keys],
                    parameters={"EXTERNAL": "TRUE"},
                    tableType="EXTERNAL_TABLE",
                )
            )


class GlueServer:
    """Glue's data catalog by moto."""

    type = "glue"
    uri, address = None, "glue://"

    def __init__(self, port):
        self.options = {
            "endpoint_url": f"http://127.0.0.1:{port}",
            "region_name": "eu-central-1",
            "aws_access_key_id": {"fromEnv": "GLUE_KEY"},
            "aws_secret_access_key": {"fromEnv": "GLUE_SECRET"},
        }

    @classmethod
    @contextmanager
    def start(cls, folder):
        require_packages("boto3", "moto", "flask", "flask_cors")
        port = _find_free_port()
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        with _run_server(command, port, folder / "moto.log"):
            yield cls(port)

    def create_table(self, name, location, keys=(), *, is_hudi=True):
        from reconciler.state.catalogs.glue import connect_glue  # noqa: PLC0415

        database, _, table = name.partition(".")
        secrets = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
        client = connect_glue(None, {**self.options, **secrets})._client
        if database not in [each["Name"] for each in client.get_databases()["DatabaseList"]]:
            client.create_database(DatabaseInput={"Name": database})
        client.create_table(
            DatabaseName=database,
            TableInput={
                "Name": table,
                "StorageDescriptor": {
                    "Columns": [{"Name": "id", "Type": "bigint"}],
                    "Location": location,
                    "InputFormat": _TEXT_FORMAT,
                },
                "PartitionKeys": [{"Name": key, "Type": "string"} for key in keys],
                "Parameters": {"spark.sql.sources.provider": "hudi"} if is_hudi else {},
            },
        )
        client.close()
