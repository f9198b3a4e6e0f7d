"""Commands at a real S3 server of whose requests a few per cent fail, and real Hudi after each."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.oracle, pytest.mark.spark, pytest.mark.long]


@pytest.mark.usefixtures("s3_server", "needs_java")
def test_runs_complete_or_end_with_one_error_and_the_next_completes():
    """In a process of its own, whose Java has Hadoop's client for S3 from its start."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.faulty_s3", "--stories", "1"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr[-9000:]
    told = re.search(r"(\d+) runs, (\d+) .*, (\d+) faults, 0 stories failed\n$", done.stdout)
    assert told, done.stdout
    assert int(told[1]) >= 10
    assert int(told[3]) > 10
