"""Run one writer in a process: ``python -m tests.bench.write_peer SYSTEM HEAP FOLDER``.

A line on stdin is a JSON object: ``do`` (``write``) and what it needs: ``table``, the folder of the
``rows``, ``operation``, and the sizes of files. The answer is a JSON line.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

import reconciler
from reconciler.cli.java import use_java
from tests.bench.peer import open_session
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
    spec = {
        "path": request["table"],
        "timezone": "UTC",
        "files": {
            "target": request["target"],
            "small": request["small"],
            "recordSize": ROW_BYTES,
        },
        "concurrency": {"lock": {"provider": "filesystem", "path": ".hoodie", "expire": 0}},
    }
    whole = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "bench"}}
    file = Path(f"{request['table']}.spec.yaml")
    file.write_text(json.dumps(whole | {"spec": spec}))  # YAML has JSON in it
    (loaded,) = reconciler.load_specs(file)
    outcome = reconciler.write(rows, loaded, request["operation"])
    if outcome.status != "completed" or outcome.warnings:
        raise SystemExit(f"the write is not as it should be: {outcome}")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Java talks there
    use_java()
    spark = open_session(*sys.argv[1:])
    write = {"hudi": by_hudi, "ours": by_us}[sys.argv[1]]
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        write(spark.read.parquet(f"file://{request['rows']}"), request)
        print("{}", file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
