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
from tests.trees import unpack

pytestmark = [pytest.mark.spark, pytest.mark.long]

MERGED = Path(__file__).parents[1] / "tables/merging/event_1.2.0.zip"
_OTHER_PYTHON = "import sys\nsys.version_info = (3, 8, 1, 'final', 0)\n"
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


def find_hosts(cluster, *numbers):
    """Return the workers as messages name them."""
    assert cluster.has_host_names, "unshare cannot give the workers host names here"
    return ", ".join(f"worker-{number}" for number in numbers)


def test_workers_without_packages_get_the_drivers_for_a_write_and_an_apply(project, cluster):
    (project / "home").unlink()  # an archive of another test may be there
    (project / "home").mkdir()
    hosts = find_hosts(cluster, 0, 1)
    insert = ("write", "orders.yaml", "rows.parquet", "--operation", "insert")
    refused = run(project, cluster, *insert)
    written = [run(project, cluster, *insert, "--ship") for _ in range(2)]
    applied = run(project, cluster, "apply", "orders.yaml", "--auto-approve", "--ship")

    assert 1 == refused.code
    assert (
        f"error: Spark's workers (python3) lack numpy, pyarrow, xxhash on {hosts}; send the "
        "driver's with --ship (spark.reconciler.ship=true), install these packages there, or set "
    ) in refused.err
    assert [0, 0] == [done.code for done in written], written
    assert "packing 6 packages of the driver for Spark's workers" in written[0].err
    assert " MiB, packed in " in written[0].err
    assert " MiB, packed by an earlier run" in written[1].err
    assert "Spark's workers have the packages after " in written[1].err
    assert 0 == applied.code, applied
    assert "rewrote" in applied.out


def test_workers_without_packages_merge_log_files_with_the_drivers(project, cluster):
    unpack(MERGED, project / "merged")
    (properties,) = (project / "merged").rglob("hoodie.properties")
    read = ("read", str(properties.parents[1]), "--format", "csv")
    refused = run(project, cluster, *read)
    done = run(project, cluster, *read, "--ship")
    here = wait_for(start_command(project, "local[1]", *read))

    assert (1, True) == (refused.code, f" on {find_hosts(cluster, 0, 1)}; " in refused.err)
    assert [0, 0] == [done.code, here.code], done.err + here.err
    assert len(here.out.splitlines()) > 2
    assert sorted(here.out.splitlines()) == sorted(done.out.splitlines())


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


def test_hosts_with_another_python_or_none_are_named_in_one_line(project, cluster):
    (library,) = (cluster.folder / "worker-1/python/lib").glob("python*")
    customised = library / "site-packages" / "sitecustomize.py"
    insert = ("write", "orders.yaml", "rows.parquet")
    customised.write_text(_OTHER_PYTHON)
    try:
        other = run(project, cluster, *insert, "--ship")
        plain = run(project, cluster, *insert)
    finally:
        customised.unlink()
    none = run(project, cluster, *insert, "--ship", PYSPARK_PYTHON="/no/such/python")

    second, both = find_hosts(cluster, 1), find_hosts(cluster, 0, 1)
    assert [1, 1, 1] == [other.code, plain.code, none.code]
    for done in (other, plain):
        (error,) = (line for line in done.err.splitlines() if line.startswith("error: "))
        assert "error: Spark's workers (python3) need the driver's Python, CPython 3." in error
        assert " and have CPython 3.8 on " in error
        assert f" on {second}; set PYSPARK_PYTHON to a Python 3." in error
    assert f" and have no such program on {both}; set PYSPARK_PYTHON to" in none.err


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
