"""Run one writer in a process: ``python -m tests.bench.upsert_peer SYSTEM HEAP FOLDER``.

Requests (``peer_server``): ``load`` the folder of ``rows`` into ``table``, ``upsert`` the file of
the ``batch``, ``sums`` of the rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession

import reconciler
from tests.bench.peer_server import Handlers, Request, serve
from tests.bench.trip_files import KEY
from tests.bench.upsert_rows import ORDERING, ROWS_A_FILE, SUMMED

#: bytes of a file of ours that has as many rows as those of the others
TARGET: Final = 28 * 2**20
ROW_BYTES: Final = TARGET // ROWS_A_FILE


class Writer(Protocol):
    """The interface of a system; ``table`` is a folder."""

    def load(self, rows: DataFrame, table: Path) -> None:
        """Create the table with a file per partition of the rows."""

    def upsert(self, batch: Path, table: Path) -> None:
        """Merge the batch's rows into the table by key."""

    def read(self, table: Path) -> DataFrame:
        """Return the table's rows."""


class Delta:
    """``MERGE INTO``, copy-on-write or with deletion vectors."""

    def __init__(self, spark: SparkSession, *, vectors: bool) -> None:
        self.spark, self.vectors = spark, vectors

    def load(self, rows: DataFrame, table: Path) -> None:
        option = "delta.enableDeletionVectors"
        rows.write.format("delta").option(option, self.vectors).save(f"file://{table}")

    def upsert(self, batch: Path, table: Path) -> None:
        _merge(self.spark, batch, f"delta.`file://{table}`")

    def read(self, table: Path) -> DataFrame:
        return self.spark.read.format("delta").load(f"file://{table}")


class Iceberg:
    """``MERGE INTO``, copy-on-write or merge-on-read."""

    def __init__(self, spark: SparkSession, *, mode: str) -> None:
        self.spark, self.mode = spark, mode

    @staticmethod
    def _name(table: Path) -> str:
        return f"ice.{table.name}.rows"

    def load(self, rows: DataFrame, table: Path) -> None:
        self.spark.sql(f"create namespace if not exists ice.{table.name}")
        made = rows.writeTo(self._name(table)).using("iceberg")
        properties = {
            "format-version": "2",
            "write.parquet.compression-codec": "snappy",
            "write.distribution-mode": "none",
            "write.merge.mode": self.mode,
        }
        for name, value in properties.items():
            made = made.tableProperty(name, value)
        made.create()

    def upsert(self, batch: Path, table: Path) -> None:
        _merge(self.spark, batch, self._name(table))

    def read(self, table: Path) -> DataFrame:
        return self.spark.table(self._name(table))


class Hudi:
    """Hudi's upsert with its global record index; ``plain``: without, as it is by default."""

    def __init__(self, spark: SparkSession, *, kind: str, plain: bool) -> None:
        self.spark, self.kind, self.plain = spark, kind, plain

    def load(self, rows: DataFrame, table: Path) -> None:
        self._write(rows, table, "bulk_insert", "overwrite")

    def upsert(self, batch: Path, table: Path) -> None:
        self._write(self.spark.read.parquet(f"file://{batch}"), table, "upsert", "append")

    def _write(self, rows: DataFrame, table: Path, operation: str, mode: str) -> None:
        options = {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.table.type": self.kind,
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": (
                "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            ),
            "hoodie.table.ordering.fields": ORDERING,
            "hoodie.datasource.write.operation": operation,
            "hoodie.bulkinsert.sort.mode": "NONE",
            "hoodie.parquet.compression.codec": "snappy",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.compact.inline": "false",
            "hoodie.datasource.compaction.async.enable": "false",
        }
        if not self.plain:
            options["hoodie.metadata.global.record.level.index.enable"] = "true"
            options["hoodie.index.type"] = "GLOBAL_RECORD_LEVEL_INDEX"
        rows.write.format("hudi").options(**options).mode(mode).save(f"file://{table}")

    def read(self, table: Path) -> DataFrame:
        return self.spark.read.format("hudi").load(f"file://{table}")


class Ours:
    """``reconciler.write`` of a DataFrame into a table that Hudi has made."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def load(self, rows: DataFrame, table: Path) -> None:
        del rows, table
        raise SystemExit("real Hudi makes our tables")

    def upsert(self, batch: Path, table: Path) -> None:
        (spec,) = reconciler.load_specs(declare(table))
        outcome = reconciler.write(self.spark.read.parquet(f"file://{batch}"), spec, "upsert")
        if outcome.status != "completed" or outcome.warnings:
            raise SystemExit(f"the write is not as it should be: {outcome}")

    def read(self, table: Path) -> DataFrame:
        return reconciler.read(self.spark, str(table), columns=[*SUMMED])


def declare(table: Path) -> Path:
    """Write the spec of a table beside it."""
    spec = {
        "path": str(table),
        "timezone": "UTC",
        "files": {"target": "28MiB", "small": "14MiB", "recordSize": ROW_BYTES},
        "concurrency": {"lock": {"provider": "filesystem", "path": ".hoodie", "expire": 0}},
    }
    whole = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "bench"}}
    file = table.with_name(f"{table.name}.spec.yaml")
    file.write_text(json.dumps(whole | {"spec": spec}))  # YAML has JSON in it
    return file


def _merge(spark: SparkSession, batch: Path, table: str) -> None:
    spark.read.parquet(f"file://{batch}").createOrReplaceTempView("batch")
    spark.sql(
        f"merge into {table} t using batch s on t.{KEY} = s.{KEY} "
        f"when matched and s.{ORDERING} >= t.{ORDERING} then update set * "
        "when not matched then insert *"
    ).collect()


COPY, MERGE = "COPY_ON_WRITE", "MERGE_ON_READ"


def open_writer(system: str, spark: SparkSession) -> Writer:
    """Return the writer of a system's name."""
    match system:
        case "delta" | "delta-vectors":
            return Delta(spark, vectors=system != "delta")
        case "iceberg" | "iceberg-mor":
            return Iceberg(spark, mode="copy-on-write" if system == "iceberg" else "merge-on-read")
        case "hudi" | "hudi-mor" | "hudi-plain" | "hudi-plain-mor":
            kind = MERGE if "mor" in system else COPY
            return Hudi(spark, kind=kind, plain="plain" in system)
        case _:
            return Ours(spark)


def read_sums(rows: DataFrame) -> list[int]:
    """Return the number of rows and the sums of columns."""
    sums = ", ".join(
        f"cast(sum(cast(round({name} * {times}) as decimal(30))) as string)"
        for name, times in SUMMED.items()
    )
    rows.createOrReplaceTempView("found")
    session = rows.sparkSession
    return [int(v) for v in session.sql(f"select count(*), {sums} from found").collect()[0]]


def open_handlers(system: str, spark: SparkSession) -> Handlers:
    """Return what answers the requests."""
    writer = open_writer(system, spark)

    def load(request: Request) -> None:
        most = max(file.stat().st_size for file in Path(request["rows"]).glob("*.parquet"))
        for option in ("maxPartitionBytes", "openCostInBytes"):
            spark.conf.set(f"spark.sql.files.{option}", str(most))
        writer.load(spark.read.parquet(f"file://{request['rows']}"), Path(request["table"]))

    return {
        "load": load,
        "upsert": lambda request: writer.upsert(Path(request["batch"]), Path(request["table"])),
        "sums": lambda request: read_sums(writer.read(Path(request["table"]))),
    }


if __name__ == "__main__":
    serve(open_handlers)
