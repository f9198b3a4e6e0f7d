"""An apply on a standalone cluster of two workers, which have no home in common."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.drill import CASES, make_drill
from tests.servers.standalone import StandaloneCluster, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.long]

TABLE = CASES / "cow_basic__1.2.0" / "table.zip"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  path: {path}
  timezone: UTC
  retention: {{commits: 1}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def test_apply_completes_though_the_executor_of_a_worker_is_killed(tmp_path):
    drill = make_drill(TABLE, tmp_path / "lake", retention="commits: 1")
    (tmp_path / "orders.yaml").write_text(SPEC.format(path=drill.table))
    before = {file for file in drill.table.rglob("*.parquet") if ".hoodie" not in file.parts}
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "reconciler", "apply", "orders.yaml", "--auto-approve"),
                *("--master", cluster.master, "--spark-conf", "spark.executor.memory=512m"),
            ],
            cwd=tmp_path,
            env=os.environ
            | {
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: len(cluster.executors()) == 2 or process.poll() is not None)
        is_running = process.poll() is None
        if is_running:
            cluster.kill_executor()
        out, err = process.communicate(timeout=300)

    assert is_running, out + err
    assert process.returncode == 0, out + err
    after = {file for file in drill.table.rglob("*.parquet") if ".hoodie" not in file.parts}
    assert after < before
