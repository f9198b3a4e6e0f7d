"""Run one clustering system in a process: ``python -m tests.bench.peer SYSTEM HEAP FOLDER``.

Requests (``peer_server``) are ``load``, ``cluster`` and ``files`` of a ``table`` below FOLDER.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pyspark.sql import DataFrame, SparkSession

import reconciler
from tests.bench.peer_server import Handlers, Request, serve

#: more than any file or group here
WHOLE = 10**12


class System(Protocol):
    """The interface of a system; ``table`` is a folder."""

    def __init__(self, spark: SparkSession) -> None: ...
    def load(self, rows: DataFrame, table: Path, key: str) -> None:
        """Create the table with a file per partition of the rows."""

    def cluster(
        self, table: Path, columns: Sequence[str], target: int, *, exact: bool, queries: list[str]
    ) -> None:
        """Rewrite the table to files of the given bytes; ``exact``: no more than planned."""

    def files(self, table: Path) -> list[str]:
        """Return the data files of the newest state."""


class Hudi:
    """Real Hudi 1.2.0: ``run_clustering``."""

    CURVE = "z-order"
    QUIET: ClassVar = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def load(self, rows: DataFrame, table: Path, key: str) -> None:
        settings = self.QUIET | {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.recordkey.field": key,
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": (
                "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            ),
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.bulkinsert.sort.mode": "NONE",
            "hoodie.parquet.compression.codec": "snappy",
        }
        rows.write.format("hudi").options(**settings).mode("overwrite").save(f"file://{table}")

    def cluster(
        self, table: Path, columns: Sequence[str], target: int, *, exact: bool, queries: list[str]
    ) -> None:
        del queries
        settings = self.QUIET | {
            "hoodie.clustering.plan.strategy.target.file.max.bytes": target,
            "hoodie.parquet.max.file.size": target,
            "hoodie.clustering.plan.strategy.small.file.limit": WHOLE,
            "hoodie.clustering.plan.strategy.max.bytes.per.group": WHOLE,
            "hoodie.clustering.plan.strategy.max.num.groups": 4096,
            "hoodie.parquet.compression.codec": "snappy",
        }
        if not exact:
            self._call(table, columns, "scheduleAndExecute", settings)
            return
        self._call(table, columns, "schedule", settings)
        for name in ("clustering.plan.strategy.target.file.max.bytes", "parquet.max.file.size"):
            settings[f"hoodie.{name}"] = 10 * target  # else a task makes several files
        self._call(table, columns, "execute", settings)

    def _call(self, table: Path, columns: Sequence[str], op: str, settings: dict[str, Any]) -> None:
        options = ",".join(f"{name}={value}" for name, value in settings.items())
        self.spark.sql(
            f"call run_clustering(path => 'file://{table}', order => '{','.join(columns)}', "
            f"order_strategy => '{self.CURVE}', op => '{op}', options => '{options}')"
        ).collect()

    def files(self, table: Path) -> list[str]:
        return _local(self.spark.read.format("hudi").load(f"file://{table}").inputFiles())


class HudiHilbert(Hudi):
    CURVE = "hilbert"


class Delta:
    """``OPTIMIZE ZORDER BY``."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def load(self, rows: DataFrame, table: Path, key: str) -> None:
        del key
        rows.write.format("delta").save(f"file://{table}")

    def cluster(
        self, table: Path, columns: Sequence[str], target: int, *, exact: bool, queries: list[str]
    ) -> None:
        del exact, queries
        for name in ("maxFileSize", "minFileSize"):
            self.spark.conf.set(f"spark.databricks.delta.optimize.{name}", str(target))
        statement = f"optimize delta.`file://{table}` zorder by ({','.join(columns)})"
        self.spark.sql(statement).collect()

    def files(self, table: Path) -> list[str]:
        return _local(self.spark.read.format("delta").load(f"file://{table}").inputFiles())


class Iceberg:
    """``rewrite_data_files`` with a zorder; the folder's name is the table's in the catalog."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @staticmethod
    def _name(table: Path) -> str:
        return f"ice.{table.name}.rows"

    def load(self, rows: DataFrame, table: Path, key: str) -> None:
        del key
        name = self._name(table)
        self.spark.sql(f"create namespace if not exists ice.{table.name}")
        made = rows.writeTo(name).using("iceberg")
        made = made.tableProperty("write.parquet.compression-codec", "snappy")
        made.tableProperty("write.distribution-mode", "none").create()

    def cluster(
        self, table: Path, columns: Sequence[str], target: int, *, exact: bool, queries: list[str]
    ) -> None:
        del queries
        settings = {
            "rewrite-all": "true",
            "target-file-size-bytes": target,
            "max-file-group-size-bytes": WHOLE,
        }
        if exact:
            settings["max-file-size-bytes"] = 10 * target  # else a task makes several files
        options = ",".join(f"'{name}','{value}'" for name, value in settings.items())
        self.spark.sql(
            f"call ice.system.rewrite_data_files(table => '{self._name(table)[4:]}', "
            f"strategy => 'sort', sort_order => 'zorder({','.join(columns)})', "
            f"options => map({options}))"
        ).collect()

    def files(self, table: Path) -> list[str]:
        found = self.spark.sql(f"select file_path from {self._name(table)}.files").collect()
        return _local([row[0] for row in found])


class Ours:
    """``reconciler.plan`` and ``reconciler.apply`` on a table that Hudi made."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.before = spark, set[Path]()

    def load(self, rows: DataFrame, table: Path, key: str) -> None:
        del rows, table, key
        raise SystemExit("real Hudi makes our tables")

    def cluster(
        self, table: Path, columns: Sequence[str], target: int, *, exact: bool, queries: list[str]
    ) -> None:
        del exact
        self.before = set(table.glob("*.parquet"))
        clustering = {"columns": list(columns), "when": "always"}
        spec = {
            "path": str(table),
            "timezone": "UTC",
            "files": {"target": f"{target}B", "small": f"{WHOLE}B"},
            "clustering": clustering,
            "queries": [
                {"name": f"query {nth}", "where": where} for nth, where in enumerate(queries)
            ],
            "concurrency": {"lock": {"provider": "filesystem", "path": ".hoodie", "expire": 0}},
        }
        whole = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "bench"}}
        file = table.with_name(f"{table.name}.spec.yaml")
        file.write_text(json.dumps(whole | {"spec": spec}))  # YAML has JSON in it
        plan = reconciler.plan(reconciler.load_specs(file))
        if [step.kind for step in plan.tables[0].steps] != ["cluster"]:
            raise SystemExit(f"planned is not one clustering: {plan.tables[0]}")
        result = reconciler.apply(plan, spark=self.spark)
        if result.exit_code:
            raise SystemExit(f"the clustering was not applied: {result}")

    def files(self, table: Path) -> list[str]:
        return [str(file) for file in set(table.glob("*.parquet")) - self.before]


class SortedWrite:
    """Plain Spark: the rows of a Hudi table's base files, sorted into Parquet files.

    A range partition of the columns decides a row's file, and a sort its place in the file. There
    are as many files as the bytes of the base files need.
    """

    FOLDER = "sorted"

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def load(self, rows: DataFrame, table: Path, key: str) -> None:
        del rows, table, key
        raise SystemExit("real Hudi makes this table")

    def cluster(
        self, table: Path, columns: Sequence[str], target: int, *, exact: bool, queries: list[str]
    ) -> None:
        del exact, queries
        base = list(table.glob("*.parquet"))
        count = max(1, round(sum(file.stat().st_size for file in base) / target))
        rows = self.spark.read.parquet(*(f"file://{file}" for file in base))
        rows = rows.repartitionByRange(count, *columns).sortWithinPartitions(*columns)
        rows.write.parquet(f"file://{table / self.FOLDER}")

    def files(self, table: Path) -> list[str]:
        return [str(file) for file in (table / self.FOLDER).glob("*.parquet")]


SYSTEMS: dict[str, type[System]] = {
    "hudi": Hudi,
    "hudi-hilbert": HudiHilbert,
    "delta": Delta,
    "iceberg": Iceberg,
    "ours": Ours,
    "spark": SortedWrite,
}


def _local(found: Sequence[str]) -> list[str]:
    return ["/" + file.removeprefix("file:").lstrip("/") for file in found]


def load_rows(spark: SparkSession, system: System, request: Request) -> None:
    """Create the table with a file for every file of ``rows``."""
    biggest = max(file.stat().st_size for file in Path(request["rows"]).glob("*.parquet"))
    for name in ("maxPartitionBytes", "openCostInBytes"):
        spark.conf.set(f"spark.sql.files.{name}", str(biggest))
    rows = spark.read.parquet(f"file://{request['rows']}")
    system.load(rows, Path(request["table"]), request["key"])


def handlers(name: str, spark: SparkSession) -> Handlers:
    system = SYSTEMS[name](spark)

    def cluster(request: Request) -> None:
        more = {"exact": request["exact"], "queries": request["queries"]}
        system.cluster(Path(request["table"]), request["columns"], request["target"], **more)

    return {
        "load": partial(load_rows, spark, system),
        "cluster": cluster,
        "files": lambda request: system.files(Path(request["table"])),
    }


if __name__ == "__main__":
    serve(handlers)
