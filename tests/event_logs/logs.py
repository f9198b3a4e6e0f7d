"""The event logs of this folder, and what is read of them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reconciler.event_logs.application import ApplicationEvents
from reconciler.event_logs.predicate_text import write_predicate
from reconciler.event_logs.workload import ScanRun
from tests.event_logs.asked import NOTHING, UNKNOWN

HERE = Path(__file__).parent
#: 20 November 2026
_FIRST = 1_795_132_800_000
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")


@cache
def load_log(version: str) -> bytes:
    with zipfile.ZipFile(HERE / f"{version}.zip") as archive:
        (name,) = archive.namelist()
        return archive.read(name)


def read_runs(lines: Iterable[bytes]) -> list[list[ScanRun]]:
    """Return the scans of each query of a log, in the order in which the queries ended."""
    found: list[list[ScanRun]] = []
    application = ApplicationEvents(lambda runs, _: found.append(runs))
    for line in lines:
        application.read_line(line)
    application.finish()
    return found


def describe(run: ScanRun) -> str:
    """Return what was asked, as ``asked.py`` has it."""
    if run.is_unknown:
        return UNKNOWN
    return NOTHING if run.predicate is None else write_predicate(run.predicate)


@dataclass(frozen=True)
class Asked:
    """A query to write into a log. ``filters``: as Spark's plans write them."""

    filters: str
    columns: str
    times: int = 1
    bytes: int = 400_000


def write_log(log: Path, table: str, asked: Iterable[Asked], *, days: float = 2.0) -> None:
    """Write a log in which queries read a table, spread evenly over some days."""
    queries = [query for query in asked for _ in range(query.times)]
    step = days * 86_400_000 / max(len(queries) - 1, 1)
    lines = [{"Event": "SparkListenerLogStart", "Spark Version": "3.5.5"}]
    for nth, query in enumerate(queries):
        lines += write_query(nth, table, query, _FIRST + round(nth * step))
    log.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def write_query(number: int, table: str, query: Asked, time: int) -> Iterator[dict]:
    metrics = [
        {"name": name, "accumulatorId": 10 * number + nth, "metricType": "size"}
        for nth, name in enumerate(("number of files read", "size of files read"))
    ]
    metadata = {
        "Location": f"HoodieFileIndex(1 paths)[file:{table}]",
        "ReadSchema": f"struct<{query.columns}>",
        "Format": "Parquet",
        "PartitionFilters": "[]",
        "DataFilters": query.filters,
    }
    scan = {
        "nodeName": "Scan parquet spark_catalog.sales.orders",
        "simpleString": "FileScan parquet",
        "children": [],
        "metadata": metadata,
        "metrics": metrics,
    }
    sql = "org.apache.spark.sql.execution.ui.SparkListener"
    yield {
        "Event": f"{sql}SQLExecutionStart",
        "executionId": number,
        "physicalPlanDescription": "",
        "sparkPlanInfo": scan,
        "time": time,
    }
    updates = [[10 * number, 8], [10 * number + 1, query.bytes]]
    yield {
        "Event": f"{sql}DriverAccumUpdates",
        "executionId": number,
        "accumUpdates": updates,
    }
    yield {"Event": f"{sql}SQLExecutionEnd", "executionId": number, "time": time + 1}
