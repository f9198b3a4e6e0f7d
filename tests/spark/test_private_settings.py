"""Settings that a variable holds reach Spark's Java, and nothing that others can read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
SECRET = "hunter2-is-on-no-command-line"
REPOSITORY = Path(__file__).parents[2]
#: opens a session as a command does, prints what it has of the settings, and waits
DRIVER = """
import json, sys
from pathlib import Path
from reconciler.cli.environment import find_spark_options
from reconciler.cli.options import SparkSettings
from reconciler.cli.spark import open_spark_session

found = find_spark_options(sys.argv[1], [Path()], SparkSettings())
opened = open_spark_session(found.master, found.conf, from_variables=found.from_variables)
with opened as session:
    conf = session.sparkContext._jsc.hadoopConfiguration()
    said = [conf.get("fs.s3a.secret.key"), conf.get("plain"), conf.get("fs.s3a.proxy")]
    said += [session.conf.get("spark.of.the.defaults"), session.range(3).count()]
    print(json.dumps(said), flush=True)
    sys.stdin.read()
"""
ENVIRONMENT = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {{name: lake}}
spec:
  pattern: /lake/{{table}}
  spark:
    master: local[1]
    conf:
      spark.hadoop.fs.s3a.secret.key: {{fromEnv: LAKE_SECRET}}
      spark.hadoop.fs.s3a.proxy: {{fromEnv: LAKE_PROXY}}
      spark.hadoop.plain: in the file
      spark.eventLog.enabled: "true"
      spark.eventLog.compress: "false"
      spark.eventLog.rolling.enabled: "false"
      spark.eventLog.dir: {events}
"""


class Driver:
    """A process with a session; ``folder`` is its home and has all its temporary files."""

    def __init__(self, folder: Path) -> None:
        self.events, self.scratch, conf = (folder / name for name in ("events", "tmp", "conf"))
        for path in (self.events, self.scratch, conf):
            path.mkdir()
        (conf / "spark-defaults.conf").write_text("spark.of.the.defaults  kept\n")
        file = folder / "lake.yaml"
        file.write_text(ENVIRONMENT.format(events=self.events.as_uri()))
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONPATH": str(REPOSITORY),
                "SPARK_CONF_DIR": str(conf),
                "TMPDIR": str(self.scratch),
                "LAKE_SECRET": SECRET,
                "LAKE_PROXY": f"proxy-{SECRET}",
            },
        )

    def command_lines(self) -> dict[str, str]:
        """Those of the driver and of every process that it started, by the name of the program."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                group = os.getsid(int(folder.name))
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if group == self.process.pid:
                found[f"{Path(line.partition(' ')[0]).name} {folder.name}"] = line
        return found

    def watch(self) -> tuple[list[object], set[str]]:
        """What it printed, and every command line that there was until then."""
        lines: set[str] = set()
        os.set_blocking(self.process.stdout.fileno(), False)
        until = time.monotonic() + 120
        while not (said := self.process.stdout.readline()):
            assert self.process.poll() is None
            assert time.monotonic() < until
            lines |= set(self.command_lines().values())
            time.sleep(0.02)
        return json.loads(said), lines | set(self.command_lines().values())

    def end(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def holding(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if SECRET.encode() in path.read_bytes()]


def test_a_variable_of_the_settings_is_on_no_command_line_and_in_no_file(tmp_path):
    driver = Driver(tmp_path)
    try:
        said, lines = driver.watch()
        found = holding(tmp_path)
        driver.end()
    finally:
        driver.kill()
    events = "".join(path.read_text() for path in driver.events.iterdir())

    assert [SECRET, "in the file", f"proxy-{SECRET}", "kept", 3] == said
    assert any("PythonGatewayServer" in line or "SparkSubmit" in line for line in lines)
    assert [] == [line for line in lines if SECRET in line]
    assert [] == found + holding(tmp_path)
    assert '"spark.hadoop.plain":"in the file"' in events
    assert '"spark.hadoop.fs.s3a.proxy":"*********(redacted)"' in events


def test_a_killed_start_leaves_no_file_with_a_secret(tmp_path):
    driver = Driver(tmp_path)
    try:
        until = time.monotonic() + 60
        while not any("--properties-file" in line for line in driver.command_lines().values()):
            assert time.monotonic() < until
            time.sleep(0.02)
        os.killpg(driver.process.pid, signal.SIGKILL)
        driver.process.wait()
    finally:
        driver.kill()

    assert [] == holding(tmp_path)
