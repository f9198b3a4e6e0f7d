"""With ``--log-format json`` Java's own words on standard error are JSON lines too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: orders
  timezone: UTC
  retention: {commits: 2}
  concurrency: {lock: {provider: filesystem}}
"""


@pytest.mark.spark
def test_every_line_of_an_apply_is_one_object(tmp_path):
    packed = ROOT / "tests/cases/clean/cow_basic__1.2.0/table.zip"
    subprocess.run(["unzip", "-q", packed, "-d", tmp_path / "orders"], check=True)
    (tmp_path / "orders.yaml").write_text(SPEC)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "reconciler", "apply", "orders.yaml", "--auto-approve"),
            *("--master", "local[1]", "--log-format", "json", "--format", "json"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAVA_TOOL_OPTIONS": "-Dsome=option"},
        capture_output=True,
        text=True,
        check=False,
    )
    records = [json.loads(line) for line in done.stderr.splitlines()]

    assert 0 == done.returncode, done.stderr
    assert 0 == json.loads(done.stdout)["exitCode"]
    assert "Picked up JAVA_TOOL_OPTIONS: -Dsome=option" in [
        record["message"] for record in records if record.get("event") == "spark"
    ]
    assert {"orders"} == {record.get("table") for record in records if "deleting" in str(record)}


@pytest.mark.spark
def test_a_source_that_cannot_be_read_is_one_line_and_no_trace_of_java(tmp_path):
    table = "table: {type: COPY_ON_WRITE, version: 9, recordKey: [id]}"
    (tmp_path / "orders.yaml").write_text(f"{SPEC}  {table}\n")
    (tmp_path / "day.csv").write_text("id,x\n1,a,more\n")
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", "write", "orders.yaml", "day.csv"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]

    assert (1, 1) == (done.returncode, len(said))
    assert "day.csv: a line cannot be read: [MALFORMED_CSV_RECORD]" in said[0]
    assert "\tat " not in done.stderr
    assert "spark: " not in done.stderr
