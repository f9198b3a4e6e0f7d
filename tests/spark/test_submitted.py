"""``spark-submit`` of a command: its master, name and settings count."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.crash.drill import CASES, make_drill

pytestmark = [pytest.mark.spark, pytest.mark.long]

TABLE = CASES / "cow_basic__1.2.0" / "table.zip"
SCRIPT = """\
import sys
from reconciler.cli.entry import main
from pyspark.sql import SparkSession
stop = SparkSession.stop
def tell(session):
    context = session.sparkContext
    print("RAN", context.master, context.appName, context.getConf().get("spark.x"), flush=True)
    stop(session)
SparkSession.stop = tell
sys.argv[0] = "reconciler"
main()
"""
ENVIRONMENT = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {name: prod}
spec:
  spark:
    conf: {spark.x: other, spark.jars.packages: "a:b:1", spark.executor.memory: 1g}
"""
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


def test_apply_takes_what_spark_submit_was_told(tmp_path):
    drill = make_drill(TABLE, tmp_path / "lake", retention="commits: 1")
    (tmp_path / "orders.yaml").write_text(SPEC.format(path=drill.table))
    (tmp_path / "reconciler_app.py").write_text(SCRIPT)
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "prod.yaml").write_text(ENVIRONMENT)
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    submit = [home / "bin" / "spark-submit", "--master", "local[1]", "--name", "nightly"]
    done = subprocess.run(
        [
            *map(str, submit),
            *("--conf", "spark.x=given", "reconciler_app.py", "apply", "orders.yaml"),
            *("--auto-approve", "--env", "prod", "--master", "local[2]"),
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "RAN local[1] nightly given" in done.stdout
    assert "removed" in done.stdout
    # spark-submit writes both of Python's streams to its standard output
    warnings = [line for line in done.stdout.splitlines() if line.startswith("warning: spark")]
    assert [
        "warning: spark-submit has set spark.master, spark.x otherwise, and its values are used",
        "warning: spark.jars.packages: give it to spark-submit; Java runs already",
    ] == warnings, done.stdout
    assert " INFO DAGScheduler" not in done.stderr
    assert " INFO ShutdownHookManager" not in done.stderr
