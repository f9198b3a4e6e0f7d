"""Do one small piece of work with real Hudi in a process: ``small_work_peer WORK TABLE ROWS``.

WORK is ``make``, ``clean``, ``cluster``, ``upsert`` or ``read``. The process is what somebody runs
who has a script for it: it starts Spark, does the work and ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from reconciler.cli.java import use_java
from tests.bench.sessions import start_session
from tests.bench.trip_files import KEY
from tests.bench.write_rows import ORDERING, PARTITION

#: writes of all rows that make the table: all but the last version of a file can be cleaned
VERSIONS: Final = 4
#: what a point read and both clusterings ask for
POINT: Final = f"{KEY} = 4711"
CLUSTERED_BY: Final = ("pu_lon", "pu_lat")
_NOTHING_ELSE: Final = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.compression.codec": "snappy",
}


def make(spark: SparkSession, table: Path, rows: Path) -> None:
    for _ in range(VERSIONS):
        upsert(spark, table, rows)


def upsert(spark: SparkSession, table: Path, rows: Path) -> None:
    options = _NOTHING_ELSE | {
        "hoodie.table.name": "small",
        "hoodie.datasource.write.recordkey.field": KEY,
        "hoodie.datasource.write.partitionpath.field": PARTITION,
        "hoodie.table.ordering.fields": ORDERING,
        "hoodie.datasource.write.operation": "upsert",
    }
    source = spark.read.parquet(f"file://{rows}")
    source.write.format("hudi").options(**options).mode("append").save(f"file://{table}")


def clean(spark: SparkSession, table: Path, _: Path) -> None:
    spark.sql(f"create table small using hudi location 'file://{table}'")
    spark.sql(
        "call run_clean(table => 'small', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', "
        "file_versions_retained => 1)"
    ).collect()


def cluster(spark: SparkSession, table: Path, _: Path) -> None:
    options = ",".join(f"{name}={value}" for name, value in _NOTHING_ELSE.items())
    spark.sql(
        f"call run_clustering(path => 'file://{table}', order => '{','.join(CLUSTERED_BY)}', "
        f"order_strategy => 'z-order', op => 'scheduleAndExecute', options => '{options}')"
    ).collect()


def read(spark: SparkSession, table: Path, _: Path) -> None:
    found = spark.read.format("hudi").load(f"file://{table}").where(POINT).collect()
    if len(found) != 1:
        raise SystemExit(f"{len(found)} rows have {POINT}")
    print(found)


WORK: Final[Mapping[str, Callable[[SparkSession, Path, Path], None]]] = {
    "make": make,
    "clean": clean,
    "cluster": cluster,
    "upsert": upsert,
    "read": read,
}


def main() -> None:
    work, table, rows = sys.argv[1:]
    use_java()
    spark = start_session("hudi", "1g", table)
    WORK[work](spark, Path(table), Path(rows))
    spark.stop()


if __name__ == "__main__":
    main()
