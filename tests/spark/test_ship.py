"""Workers whose Python has no package, and no disk in common with the driver's home."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pyspark
import pytest

from reconciler.spark.driver_packages import find_distributions, list_files
from tests.servers.standalone import StandaloneCluster
from tests.spark.clusters import make_environment, make_project, start_command, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.long]

_IN_PYTHON = """\
import sys
import reconciler
from pyspark.sql import SparkSession
session = (SparkSession.builder.master(sys.argv[1]).config("spark.reconciler.ship", "true")
    .config("spark.executor.memory", "512m").config("spark.ui.enabled", "false").getOrCreate())
specs = reconciler.load_specs("orders.yaml")
result = reconciler.apply(reconciler.plan(specs), spark=session)
print("EXIT", result.exit_code)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with StandaloneCluster(tmp_path_factory.mktemp("cluster") / "c", bare=True) as found:
        yield found


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory):
    """The driver's home of all tests, where archives are kept."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def project(tmp_path, shared_home):
    make_project(tmp_path)
    (tmp_path / "home").symlink_to(shared_home)
    return tmp_path


def run(project, cluster, *arguments, **more):
    done = wait_for(start_command(project, cluster.master, *arguments, **more))
    assert "Traceback" not in done.err
    return done


def test_a_session_of_the_python_api_asks_by_its_setting(project, cluster):
    assert 0 == run(project, cluster, "write", "orders.yaml", "rows.parquet", "--ship").code
    done = subprocess.run(
        [sys.executable, "-c", _IN_PYTHON, cluster.master],
        cwd=project,
        env=make_environment(project / "home"),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert "EXIT 0" in done.stdout, done.stderr[-3000:]
    assert list((project / "lake/orders/.hoodie/timeline").glob("*.replacecommit"))


def test_spark_submit_asks_by_its_setting_too(project, cluster):
    assert 0 == run(project, cluster, "write", "orders.yaml", "rows.parquet", "--ship").code
    (project / "reconciler_app.py").write_text("from reconciler.cli.entry import main; main()")
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        [
            *(f"{home}/bin/spark-submit", "--master", cluster.master, "--deploy-mode", "client"),
            *("--conf", "spark.reconciler.ship=true", "--conf", "spark.executor.memory=512m"),
            *("reconciler_app.py", "apply", "orders.yaml", "--auto-approve"),
        ],
        cwd=project,
        # the driver's Python; that of the workers is the first on their path
        env=make_environment(
            project / "home",
            SPARK_HOME=str(home),
            PYSPARK_DRIVER_PYTHON=sys.executable,
            PYSPARK_PYTHON="python3",
        ),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr[-3000:]
    assert "sending " in done.stdout + done.stderr
    assert "rewrote" in done.stdout


def test_a_packed_environment_is_an_archive_of_spark(project, cluster):
    packed = project / "packed"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(packed)], check=True)
    (library,) = packed.glob("lib/python*/site-packages")
    names = ("numpy", "pyarrow", "fastavro", "xxhash", "google_crc32c")
    for file in list_files(find_distributions(names)):
        (library / file.name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file.path, library / file.name)
    with tarfile.open(project / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(packed, ".")
    done = run(
        project,
        cluster,
        *("write", "orders.yaml", "rows.parquet"),
        conf={"spark.archives": "environment.tar.gz#environment"},
        PYSPARK_PYTHON="./environment/bin/python",
    )

    assert 0 == done.code, done.err
    assert "sending" not in done.err
