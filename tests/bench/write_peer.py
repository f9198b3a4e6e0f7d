"""Run one writer in a process: ``python -m tests.bench.write_peer SYSTEM HEAP FOLDER``.

A line on stdin is a JSON object: ``do`` (``write``) and what it needs: ``table``, the folder of the
``rows``, ``operation``, and the sizes of files. The answer is a JSON line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import reconciler
from tests.bench.peer_server import Handlers, serve
from tests.bench.trip_files import KEY
from tests.bench.write_rows import ORDERING, PARTITION, ROW_BYTES


def by_hudi(rows: DataFrame, request: dict[str, Any]) -> None:
    """Write with Hudi's defaults, except sizes and codec, and without cleaning or archiving."""
    options = {
        "hoodie.table.name": "bench",
        "hoodie.datasource.write.recordkey.field": KEY,
        "hoodie.datasource.write.partitionpath.field": PARTITION,
        "hoodie.table.ordering.fields": ORDERING,
        "hoodie.datasource.write.operation": request["operation"],
        "hoodie.parquet.compression.codec": "snappy",
        "hoodie.parquet.max.file.size": request["target"],
        "hoodie.parquet.small.file.limit": request["small"],
        "hoodie.copyonwrite.record.size.estimate": ROW_BYTES,
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
    }
    if request["index"]:
        options["hoodie.index.type"] = request["index"]
    rows.write.format("hudi").options(**options).mode("append").save(f"file://{request['table']}")


def by_us(rows: DataFrame, request: dict[str, Any]) -> None:
    """Write with ``reconciler.write`` and the declared sizes."""
    (loaded,) = reconciler.load_specs(write_spec(request))
    outcome = reconciler.write(rows, loaded, request["operation"])
    if outcome.status != "completed" or outcome.warnings:
        raise SystemExit(f"the write is not as it should be: {outcome}")


def write_spec(request: dict[str, Any]) -> Path:
    """Write the spec of our side beside its table."""
    spec = {
        "path": request["table"],
        "timezone": "UTC",
        "files": {
            "target": f"{request['target']}B",
            "small": f"{request['small']}B",
            "recordSize": ROW_BYTES,
            "assign": request.get("assign", "steady"),
        },
        "concurrency": {"lock": {"provider": "filesystem", "path": ".hoodie", "expire": 0}},
    }
    whole = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "bench"}}
    file = Path(f"{request['table']}.spec.yaml")
    file.write_text(json.dumps(whole | {"spec": spec}))  # YAML has JSON in it
    return file


def handlers(system: str, spark: SparkSession) -> Handlers:
    write = {"hudi": by_hudi, "ours": by_us}[system]
    return {
        "write": lambda request: write(spark.read.parquet(f"file://{request['rows']}"), request)
    }


if __name__ == "__main__":
    serve(handlers)
