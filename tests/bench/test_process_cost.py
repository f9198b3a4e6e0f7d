"""Tests of measuring whole commands."""

from __future__ import annotations

import sys

import pytest

from tests.bench.process_cost import measure_command

#: leaves a process behind that works on, as PySpark leaves its JVM
LEAVES_WORK = """
import subprocess, sys
subprocess.Popen([sys.executable, "-S", "-c", '''
import time
while time.process_time() < 0.3: pass
'''])
"""


def test_the_cpu_of_a_process_that_outlives_its_command_counts(tmp_path):
    cost = measure_command([sys.executable, "-S", "-c", LEAVES_WORK], cwd=tmp_path)

    assert 0.3 <= cost.cpu
    assert 5 < cost.megabytes < 200


def test_a_command_that_fails_ends_the_bench_with_what_it_said(tmp_path):
    with pytest.raises(SystemExit, match=r"(?s)ended with 3:\nno such table"):
        measure_command(["sh", "-c", "echo no such table; exit 3"], cwd=tmp_path)
