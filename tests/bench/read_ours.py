"""Run our reader in a process, driven by lines on stdin: ``python -m tests.bench.read_ours HEAP``.

A line on stdin is ``read TABLE`` or ``sum TABLE``; the answer is a JSON line: what reading it all
cost, or how many rows there are and the sum of their hashes.
"""

from __future__ import annotations

import json
import sys
import time

import psutil

import reconciler
from reconciler.cli.spark import open_spark_session
from tests.oracle.worker import SUM

SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, its JVM and its Python workers, ended ones too."""
    own = psutil.Process()
    every = [own.cpu_times(), *(child.cpu_times() for child in own.children(recursive=True))]
    return sum(t.user + t.system + t.children_user + t.children_system for t in every)


def main() -> None:
    heap = {"spark.driver.memory": sys.argv[1], "spark.driver.extraJavaOptions": sys.argv[2]}
    with open_spark_session("local[2]", SETTINGS | heap) as spark:
        for line in sys.stdin:
            what, table = line.strip().split(" ", 1)
            cpu, wall = cpu_seconds(), time.perf_counter()
            frame = reconciler.read(spark, table)
            if what == "sum":
                answer: object = [str(value) for value in frame.selectExpr(*SUM).first() or ()]
            else:
                frame.write.format("noop").mode("overwrite").save()
                answer = {"cpu": cpu_seconds() - cpu, "wall": time.perf_counter() - wall}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
