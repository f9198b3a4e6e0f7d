"""Commands whose Spark reads a real S3 itself, and real Hudi there before and after."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.oracle.bundles import BundleUnavailableError, bundle
from tests.oracle.faulty_runs import S3_ENVIRONMENT, find_s3a_jars
from tests.servers.s3 import KEY, SECRET

pytestmark = [pytest.mark.oracle, pytest.mark.spark, pytest.mark.long]

SPARK = """\
  spark:
    executor: spark
    master: local[2]
    conf: {{spark.driver.extraClassPath: "{jars}"}}
"""
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  table:
    {type: COPY_ON_WRITE, version: 9, recordKey: [id], partitionBy: [p], ordering: [ts]}
  files: {target: 1MiB, small: 512KiB}
  clustering: {columns: [v], when: always}
  index: {columns: [v]}
  retention: {commits: 1}
  concurrency: {lock: {provider: storage}}
"""
HUDI = """
import json, sys
from pyspark.sql import SparkSession
jars, endpoint, key, secret, path, work = sys.argv[1:]
prefix = "spark.hadoop.fs.s3a."
session = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.extraClassPath", jars)
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    .config(prefix + "endpoint", endpoint).config(prefix + "access.key", key)
    .config(prefix + "secret.key", secret).config(prefix + "path.style.access", "true")
    .config(prefix + "endpoint.region", "us-east-1")
    .config(prefix + "directory.marker.retention", "keep")
    .config(prefix + "connection.maximum", "2000").getOrCreate())
if work == "upsert":
    rows = session.createDataFrame([(0, "a", 999, 9)], "id long, p string, v long, ts long")
    rows.write.format("hudi").mode("append").options(**{
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.clean.automatic": "false",
        "hoodie.embed.timeline.server": "false",
    }).save(path)
found = session.read.format("hudi").load(path).selectExpr("count(1)", "sum(v)").first()
print("ANSWER " + json.dumps(list(found)))
"""


@pytest.fixture(scope="module")
def jars():
    try:
        return find_s3a_jars()
    except BundleUnavailableError as problem:
        pytest.fail(str(problem))


@pytest.fixture
def project(tmp_path, s3_bucket, jars):
    (tmp_path / ".git").mkdir()
    (tmp_path / "environments").mkdir()
    text = (S3_ENVIRONMENT + SPARK).format(
        name="prod", url=s3_bucket.url, endpoint=s3_bucket.endpoint, jars=jars
    )
    (tmp_path / "environments" / "prod.yaml").write_text(text)
    (tmp_path / "orders.yaml").write_text(SPEC)
    return tmp_path


def run(project, *arguments):
    """Run a command in a process of its own; return its output and code, after a look for secrets.

    Every command line of the machine is read while it runs.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler", *map(str, arguments)],
        cwd=project,
        env=os.environ
        | {
            "LAKE_KEY": KEY,
            "LAKE_SECRET": SECRET,
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen, ended = [], threading.Event()

    def watch():
        while not ended.wait(0.2):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = file.read_bytes()
                except OSError:
                    continue
                if SECRET.encode() in line:
                    seen.append(line)

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, err = process.communicate(timeout=300)
    ended.set()
    watcher.join()
    assert seen == []
    assert SECRET not in out + err
    assert "Traceback" not in err
    return process.returncode, out, err


def ask_hudi(version, jars, bucket, work):
    done = subprocess.run(
        [
            *(sys.executable, "-c", HUDI, f"{bundle(version)}:{jars}", bucket.endpoint),
            *(KEY, SECRET, f"s3a://{bucket.name}/orders", work),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stderr[-3000:]
    return json.loads(answers[0].removeprefix("ANSWER "))


def put_rows(bucket, name, first, count):
    ids = list(range(first, first + count))
    rows = pa.table(
        {"id": ids, "p": ["ab"[i % 2] for i in ids], "v": [i * 7 % 1000 for i in ids], "ts": ids}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    key = f"in/{name}.parquet"
    bucket.client().put_object(Bucket=bucket.name, Key=key, Body=sink.getvalue().to_pybytes())
    return sum(rows["v"].to_pylist())


def test_a_table_lives_on_s3_from_its_first_write_to_a_read_by_hudi(project, s3_bucket, jars):
    total = put_rows(s3_bucket, "one", 0, 4000) + put_rows(s3_bucket, "two", 4000, 4000)
    env = ("--env", "prod")
    for name in ("one", "two"):
        source = f"{s3_bucket.url}/in/{name}.parquet"
        written = run(project, "write", "orders.yaml", source, "--operation", "insert", *env)
        assert written[0] == 0, written
    planned = run(project, "plan", "orders.yaml", "-o", "plan.json", *env)
    assert planned[0] == 0, planned
    assert SECRET not in (project / "plan.json").read_text()
    applied = run(project, "apply", "plan.json", *env)
    assert applied[0] == 0, applied
    assert "cluster" in applied[1]

    table = f"{s3_bucket.url}/orders"
    read = run(project, "read", table, "--where", "v >= 0", "--format", "csv", *env)
    assert read[0] == 0, read
    assert len(read[1].splitlines()) == 8001
    explained = run(project, "read", table, "--where", "v = 7", "--explain", *env)
    assert explained[0] == 0, explained
    assert "after the index" in explained[1]

    assert ask_hudi("1.2.0", jars, s3_bucket, "read") == [8000, total]
    assert ask_hudi("1.2.0", jars, s3_bucket, "upsert") == [8000, total + 999]
    again = run(project, "plan", "orders.yaml", "-o", "plan.json", *env)
    assert again[0] == 0, again
    applied = run(project, "apply", "plan.json", *env)
    assert applied[0] == 0, applied
    assert ask_hudi("1.2.0", jars, s3_bucket, "read") == [8000, total + 999]
    for key in s3_bucket.object_keys():
        stored = s3_bucket.client().get_object(Bucket=s3_bucket.name, Key=key)["Body"].read()
        assert SECRET.encode() not in stored
