"""Commands on a real standalone master without workers end, and leave the table as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from tests.oracle.bundles import java
from tests.servers.programs import find_free_port
from tests.trees import unpack

pytestmark = pytest.mark.spark
REPOSITORY = Path(__file__).parents[2]
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: v9_cow_part
  timezone: UTC
  retention: {commits: 1}
  concurrency: {lock: {provider: filesystem}}
"""


@pytest.fixture
def master(tmp_path) -> Iterator[str]:
    """The URL of a master of Spark's own jars, which no worker joins."""
    port, log = find_free_port(), tmp_path / "master.log"
    jars = Path(pyspark.__file__).parent / "jars"
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    command += ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--webui-port", "0"]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream)
    wait_for(log, "elected leader")
    yield f"spark://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)


def wait_for(log: Path, text: str, times: int = 1) -> None:
    until = time.monotonic() + 60
    while log.read_text().count(text) < times:
        assert time.monotonic() < until
        time.sleep(0.1)


def start(folder: Path, master: str, timeout: str, *command: str) -> subprocess.Popen[str]:
    """Start a command, an apply if none is given."""
    settings = [f"spark.reconciler.executorTimeout={timeout}", "spark.driver.host=127.0.0.1"]
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "reconciler", *(command or ("apply", "plan.json"))),
            *("--master", master),
            *(part for setting in settings for part in ("--spark-conf", setting)),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_apply_without_executors_ends_at_its_limit_and_when_it_is_stopped(tmp_path, master):
    unpack(REPOSITORY / "tests/tables/v9_cow_part.zip", tmp_path)
    (tmp_path / "orders.yaml").write_text(SPEC)
    command = [sys.executable, "-m", "reconciler", "plan", "orders.yaml", "-o", "plan.json"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    before = sorted(str(path) for path in (tmp_path / "v9_cow_part").rglob("*"))

    limited, stopped = start(tmp_path, master, "2s"), start(tmp_path, master, "0s")
    _, said = limited.communicate(timeout=120)
    wait_for(tmp_path / "master.log", "Registered app", times=2)
    time.sleep(3)  # so that the job that checks the workers waits; a stop before it ends too
    stopped.send_signal(signal.SIGTERM)
    _, ended = stopped.communicate(timeout=60)

    assert 1 == limited.returncode
    assert f"error: Spark's master {master} has given no executors after 2s" in said
    assert "Traceback" not in said
    assert 128 + signal.SIGTERM == stopped.returncode
    assert "terminated; run the same apply again" in ended
    assert "Py4J" not in said + ended
    assert before == sorted(str(path) for path in (tmp_path / "v9_cow_part").rglob("*"))


@pytest.mark.long
def test_a_read_and_the_files_of_a_write_wait_no_longer_either(tmp_path, master):
    unpack(REPOSITORY / "tests/tables/v9_cow_part.zip", tmp_path)
    (tmp_path / "orders.yaml").write_text(SPEC)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "rows.parquet")
    commands = (("read", "v9_cow_part", "--limit", "1"), ("write", "orders.yaml", "rows.parquet"))
    for process in [start(tmp_path, master, "2s", *command) for command in commands]:
        _, said = process.communicate(timeout=120)

        assert 1 == process.returncode
        assert f"error: Spark's master {master} has given no executors after 2s" in said
        assert "Traceback" not in said
