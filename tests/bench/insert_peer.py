"""Append batches with one system in a process: ``python -m tests.bench.insert_peer SYSTEM ...``.

Requests are ``write`` (``rows``, a folder of Parquet files, into ``table``) and ``files``, which
answers with the data files of the newest state. The first write makes a table. All systems have the
same partitions and the same size of files, and write Snappy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.bench.peer_server import Handlers, Request, serve
from tests.bench.sessions import family
from tests.bench.write_peer import by_hudi, by_us
from tests.bench.write_rows import PARTITION
from tests.bench.write_tables import newest_base_files

#: small files from which on Delta compacts, where it is not left at its default of 50
FEW_FILES = 4


def by_delta(rows: DataFrame, request: Request) -> None:
    """Append with optimised writes and auto-compaction, as table properties ask for."""
    conf = rows.sparkSession.conf
    conf.set("spark.databricks.delta.optimizeWrite.binSize", f"{request['target']}b")
    conf.set("spark.databricks.delta.autoCompact.maxFileSize", str(request["target"]))
    if request["few"]:
        conf.set("spark.databricks.delta.autoCompact.minNumFiles", str(FEW_FILES))
    properties = {
        "delta.autoOptimize.optimizeWrite": "true",
        "delta.autoOptimize.autoCompact": "true",
    }
    writer = rows.write.format("delta").partitionBy(PARTITION).mode("append")
    writer.options(**properties).save(f"file://{request['table']}")


def by_iceberg(rows: DataFrame, request: Request) -> None:
    name = iceberg_name(request)
    if Path(request["table"]).is_dir():
        rows.writeTo(name).append()
        return
    rows.sparkSession.sql(f"create namespace if not exists {name.rpartition('.')[0]}")
    made = rows.writeTo(name).using("iceberg").partitionedBy(PARTITION)
    made = made.tableProperty("write.parquet.compression-codec", "snappy")
    made.tableProperty("write.target-file-size-bytes", str(request["target"])).create()


def by_spark(rows: DataFrame, request: Request) -> None:
    writer = rows.write.partitionBy(PARTITION).mode("append")
    writer.parquet(f"file://{request['table']}")


def iceberg_name(request: Request) -> str:
    return f"ice.{Path(request['table']).name}.rows"


def live_files(system: str, spark: SparkSession, request: Request) -> list[str]:
    """Return the paths of the data files that a reader of the newest state opens."""
    table = Path(request["table"])
    match family(system):
        case "delta":
            found = spark.read.format("delta").load(f"file://{table}").inputFiles()
        case "iceberg":
            rows = spark.sql(f"select file_path from {iceberg_name(request)}.files").collect()
            found = [row[0] for row in rows]
        case "spark":
            found = [str(file) for file in table.glob("*/*.parquet")]
        case _:
            found = [str(file) for file in newest_base_files(table)]
    return ["/" + file.removeprefix("file:").lstrip("/") for file in found]


WRITERS: Mapping[str, Callable[[DataFrame, Request], None]] = {
    "hudi": by_hudi,
    "delta": by_delta,
    "iceberg": by_iceberg,
    "spark": by_spark,
    "ours": by_us,
}


def handlers(system: str, spark: SparkSession) -> Handlers:
    def write(request: Request) -> None:
        rows = spark.read.parquet(f"file://{request['rows']}")
        WRITERS[family(system)](rows, request)

    return {"write": write, "files": partial(live_files, system, spark)}


if __name__ == "__main__":
    serve(handlers)
