"""The tests of this folder under other releases of Spark, in Pythons that this test makes.

The usual environment has PySpark 3.5, because real Hudi of every table version runs on it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.programs import CACHE

pytestmark = [pytest.mark.spark, pytest.mark.oracle, pytest.mark.long]

ROOT = Path(__file__).parents[2]
RELEASES = ("4.0.5", "4.1.4")
#: what runs together: of every kind of work all tests that the usual run has, and Spark Connect
PARTS = {
    "reading": (
        "test_frames.py", "test_read.py", "test_read_tables.py", "test_rows_that_hudi_loses.py",
        "test_local_read.py",
    ),
    "conditions": (
        "test_condition_grammar.py", "test_plain_conditions.py", "test_random_conditions.py",
        "test_sessions_and_conditions.py", "test_skipping.py", "test_spark_4.py",
    ),
    "applying": (
        "test_deletes.py", "test_index.py", "test_rewrite.py", "test_several_tables.py",
        "test_interruption.py", "test_compaction.py",
    ),
    "writing": (
        "test_write.py", "test_write_command.py", "test_local_write.py", "test_demo.py",
    ),
    "sessions": (
        "test_executor_hudi.py", "test_logs.py", "test_private_settings.py", "test_secrets.py",
        "test_submitted.py",
    ),
    "cluster": ("test_standalone.py",),
    "connect": ("test_spark_connect.py",),
}  # fmt: skip
#: what runs on the usual release alone: it takes minutes, and a cluster of another release is
#: started by test_standalone.py
USUAL_ALONE = ("test_cluster_loss.py", "test_ship.py")
#: parts whose tests are all long
LONG_PARTS = ("cluster", "connect")


@pytest.fixture(scope="module", params=RELEASES)
def python(request):
    """Return a Python with the packages of this one, but another PySpark."""
    folder = CACHE / f"pyspark-{request.param}"
    program = folder / "bin" / "python"
    if not (folder / "complete").is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        (site,) = folder.glob("lib/python3*/site-packages")
        install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run([program, *install, f"pyspark=={request.param}"], check=True)
        inherited = [path for path in sys.path if path.endswith("site-packages")]
        lines = [f"import site; site.addsitedir({path!r})\n" for path in inherited]
        (site / "inherited.pth").write_text("".join(lines))
        (folder / "complete").touch()
    found = subprocess.run(
        [program, "-c", "import pyspark; print(pyspark.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{request.param}\n" == found.stdout
    return program


@pytest.mark.parametrize("part", PARTS)
def test_the_tests_of_this_folder_pass(part, python):
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "ALL_TESTS" and not name.startswith(("PYTEST", "SPARK", "PYSPARK"))
    }
    environment |= {"ALL_TESTS": "1"} if part in LONG_PARTS else {}
    files = [f"tests/spark/{name}" for name in PARTS[part]]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "spark", *files],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
    )

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout.splitlines()[-1]
