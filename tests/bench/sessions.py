"""Open the Spark session of a system of the benches: two cores, and its jars and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from tests.bench.versions import DELTA_PACKAGE, HUDI_VERSION, ICEBERG_PACKAGE
from tests.oracle.bundles import bundle

_COMMON: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.shuffle.partitions": "8",  # of 200, for two cores
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
}
#: settings of each family of systems; ``iceberg``'s catalog is a folder
_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "hudi": {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    },
    "delta": {
        "spark.jars.packages": DELTA_PACKAGE,
        "spark.databricks.delta.snapshotPartitions": "2",  # of 50, for two cores
        # it orders by columns without statistics, too: it collects those of the first 32
        "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.jars.packages": ICEBERG_PACKAGE,
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
    },
    "spark": {},
    "ours": {},
}


def family(system: str) -> str:
    """Return what a variant such as ``delta-vectors`` is a variant of."""
    return system.split("-", 1)[0]


def start_session(system: str, heap: str, folder: str) -> SparkSession:
    """Start a session; ``folder``: of Iceberg's tables."""
    kind = family(system)
    settings = {**_COMMON, **_SETTINGS[kind], "spark.driver.memory": heap}
    settings["spark.sql.catalog.ice.warehouse"] = f"file://{folder}"
    if kind == "hudi":
        settings["spark.driver.extraClassPath"] = str(bundle(HUDI_VERSION))
    building = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        building = building.config(name, value)
    spark = building.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def open_session(system: str, heap: str, folder: str) -> SparkSession:
    """Start a session, and let it run something."""
    spark = start_session(system, heap, folder)
    spark.range(1000).selectExpr("sum(id)").collect()
    return spark
