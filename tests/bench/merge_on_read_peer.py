"""Run one writer of a merge-on-read table in a process.

``python -m tests.bench.merge_on_read_peer SYSTEM HEAP FOLDER``. A line on stdin is a JSON object:
``do`` (``load``, ``upsert`` or ``compact``) and what it needs: ``table``, the folder of the
``rows``, and ``index``. The answer is a JSON line.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import reconciler
from tests.bench.peer_server import Handlers, serve
from tests.bench.trip_files import KEY
from tests.bench.write_rows import ORDERING, PARTITION

#: due after any deltacommit
COMPACTION = {
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.parquet.compression.codec": "snappy",
}


class Hudi:
    """Hudi's defaults, with its table services asked for alone."""

    def load(self, spark: SparkSession, request: dict[str, Any]) -> None:
        self._write(spark, request, "bulk_insert")

    def upsert(self, spark: SparkSession, request: dict[str, Any]) -> None:
        self._write(spark, request, "upsert")

    def compact(self, spark: SparkSession, request: dict[str, Any]) -> None:
        options = (
            "hoodie.compact.inline.max.delta.commits=1,hoodie.parquet.compression.codec=snappy"
        )
        done = spark.sql(
            f"call run_compaction(op => 'scheduleAndExecute', path => 'file://{request['table']}', "
            f"options => '{options}')"
        ).collect()
        if len(done) != 1:
            raise SystemExit(f"not one compaction: {done}")

    def _write(self, spark: SparkSession, request: dict[str, Any], operation: str) -> None:
        options = {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.partitionpath.field": PARTITION,
            "hoodie.table.ordering.fields": ORDERING,
            "hoodie.datasource.write.operation": operation,
            "hoodie.parquet.compression.codec": "snappy",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.compact.inline": "false",
            "hoodie.datasource.compaction.async.enable": "false",
        }
        if request["index"]:
            options["hoodie.index.type"] = request["index"]
        rows = spark.read.parquet(f"file://{request['rows']}")
        rows.write.format("hudi").options(**options).mode("append").save(
            f"file://{request['table']}"
        )


class Ours:
    """``reconciler.write``, and a plan and its apply."""

    def upsert(self, spark: SparkSession, request: dict[str, Any]) -> None:
        rows = spark.read.parquet(f"file://{request['rows']}")
        outcome = reconciler.write(rows, *self._specs(request), "upsert")
        if outcome.status != "completed" or outcome.warnings:
            raise SystemExit(f"the write is not as it should be: {outcome}")

    def compact(self, spark: SparkSession, request: dict[str, Any]) -> None:
        plan = reconciler.plan(self._specs(request))
        if [step.kind for step in plan.tables[0].steps] != ["compact"]:
            raise SystemExit(f"planned is not one compaction: {plan.tables[0]}")
        result = reconciler.apply(plan, spark=spark)
        if result.exit_code:
            raise SystemExit(f"the compaction was not applied: {result}")

    @staticmethod
    def _specs(request: dict[str, Any]) -> list[Any]:
        spec = {
            "path": request["table"],
            "timezone": "UTC",
            "compaction": {"afterDeltaCommits": 1},
            "concurrency": {"lock": {"provider": "filesystem", "path": ".hoodie", "expire": 0}},
        }
        whole = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "bench"}}
        file = Path(f"{request['table']}.spec.yaml")
        file.write_text(json.dumps(whole | {"spec": spec}))  # YAML has JSON in it
        return list(reconciler.load_specs(file))


def handlers(system: str, spark: SparkSession) -> Handlers:
    side = {"hudi": Hudi, "ours": Ours}[system]()
    names = [name for name in ("load", "upsert", "compact") if hasattr(side, name)]
    return {name: partial(getattr(side, name), spark) for name in names}


if __name__ == "__main__":
    serve(handlers)
