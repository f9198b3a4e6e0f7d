"""Executors that come, go, stand still and die in the middle of a clustering."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconciler
from tests.crash.drill import list_newest_files
from tests.servers.standalone import StandaloneCluster, wait_until
from tests.spark.clusters import (
    SPEC,
    make_project,
    start_command,
    wait_for,
)

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROWS = 400_000
_DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.initialExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
}
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "500ms",
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A project with a table of two partitions that a clustering has not seen."""
    folder = tmp_path_factory.mktemp("lake")
    make_project(folder, rows=ROWS)
    insert = ("write", "orders.yaml", "rows.parquet", "--operation", "insert")
    done = wait_for(start_command(folder, "local[2]", *insert))
    assert 0 == done.code, done
    return folder


@dataclass(frozen=True)
class Work:
    """A project folder, its table, and the cluster that applies run on."""

    folder: Path
    cluster: StandaloneCluster
    rows: Counter[tuple[int, int]]

    @property
    def table(self) -> Path:
        return self.folder / "lake" / "orders"

    def start_apply(self, **conf: str) -> subprocess.Popen[str]:
        """Start an apply, and return when its tasks rewrite files."""
        process = start_command(
            self.folder,
            self.cluster.master,
            *("apply", "orders.yaml", "--auto-approve"),
            conf=conf,
            log=self.folder / "log",
            PYSPARK_PYTHON=sys.executable,
        )
        wait_until(lambda: "rewriting files" in self.log() or process.poll() is not None)
        wait_until(lambda: self.list_tasks() or process.poll() is not None)
        assert process.poll() is None, self.log()
        return process

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def list_tasks(self, executor: int | None = None) -> list[psutil.Process]:
        """Return the Python processes of tasks, of all executors or of one."""
        found = self.cluster.executors()
        chosen = found if executor is None else found[executor : executor + 1]
        tasks = []
        for java in chosen:
            with contextlib.suppress(psutil.Error):
                tasks += [task for each in java.children() for task in each.children()]
        return tasks

    def assert_done(self) -> None:
        """Assert that the table has its rows, nothing that is stray, and nothing to do."""
        assert [] == list_stray_files(self.table)
        assert self.rows == count_rows(self.folder)
        specs = reconciler.load_specs(self.folder / "orders.yaml")
        assert [()] == [table.steps for table in reconciler.plan(specs).tables]
        assert len(list(self.table.glob(".hoodie/timeline/*.replacecommit"))) == 1


@pytest.fixture
def work(lake, tmp_path):
    shutil.copytree(lake / "lake", tmp_path / "lake")
    (tmp_path / "orders.yaml").write_text(
        SPEC.format(path=tmp_path / "lake/orders", type="COPY_ON_WRITE").replace(
            "when: always", "when: {overlapAbove: 1.5}"
        )
    )
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        yield Work(tmp_path, cluster, count_rows(tmp_path))


def count_rows(folder: Path) -> Counter[tuple[int, int]]:
    """Return the rows of the newest files by key and value, as no code of ours reads them."""
    table = folder / "lake" / "orders"
    (spec,) = reconciler.load_specs(folder / "orders.yaml")
    names = list_newest_files(reconciler.observe(spec))
    rows = pa.concat_tables(pq.read_table(table / name, columns=["id", "v"]) for name in names)
    return Counter(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


def list_stray_files(table: Path) -> list[str]:
    """Return files of attempts that do not count, pending instants, markers and heartbeats.

    Attempts at a file have its id and instant in common.
    """
    files = [file.name for file in table.rglob("*.parquet") if ".hoodie" not in file.parts]
    counted = Counter(re.sub(r"_[^_]*_(\d+\.parquet)$", r"_\1", name) for name in files)
    stray = [name for name, count in counted.items() if count > 1]
    hoodie = table / ".hoodie"
    left = [*hoodie.glob(".temp/*"), *hoodie.glob(".heartbeat/*")]
    requested = {file.name.split(".")[0] for file in hoodie.glob("timeline/*.requested")}
    done = {file.name.split("_")[0] for file in hoodie.glob("timeline/*_*")}
    return [*stray, *map(str, left), *(requested - done)]


def test_executors_come_when_there_is_work_and_go_when_there_is_none(work):
    done = wait_for(work.start_apply(**_DYNAMIC))

    assert 0 == done.code, work.log()
    work.assert_done()


def test_a_task_that_stands_still_is_done_by_another_attempt(work):
    process = work.start_apply(**_SPECULATION)
    stopped = work.list_tasks(executor=0)[:1]
    for task in stopped:
        task.suspend()
    done = wait_for(process)
    for task in stopped:
        with contextlib.suppress(psutil.Error):
            task.resume()

    assert stopped
    assert 0 == done.code, work.log()
    work.assert_done()


def test_a_worker_that_dies_is_replaced_by_the_other(work):
    process = work.start_apply()
    work.cluster.kill_worker()
    done = wait_for(process)

    assert 0 == done.code, work.log()
    work.assert_done()


def test_work_goes_on_when_the_master_has_died(work):
    process = work.start_apply()
    work.cluster.kill_master()
    done = wait_for(process)

    assert 0 == done.code, work.log()
    work.assert_done()


@pytest.mark.parametrize("how", ["limit", "SIGTERM", "SIGINT"])
def test_an_apply_that_loses_all_workers_ends_and_the_next_one_completes(work, how):
    limit = "30s" if how == "limit" else "0s"  # executors may take seconds to start
    process = work.start_apply(**{"spark.reconciler.executorTimeout": limit})
    for _ in range(2):
        work.cluster.kill_worker()
    if how != "limit":
        time.sleep(3)  # Spark has noticed
        process.send_signal(signal.Signals[how])
    done = wait_for(process, 120)
    said = work.log()
    meanwhile = count_rows(work.folder)
    work.cluster.start_worker(7)
    again = wait_for(
        start_command(
            work.folder,
            work.cluster.master,
            *("apply", "orders.yaml", "--auto-approve"),
            PYSPARK_PYTHON=sys.executable,
        )
    )

    codes = {"limit": 1, "SIGTERM": 128 + signal.SIGTERM, "SIGINT": 128 + signal.SIGINT}
    assert codes[how] == done.code, said
    assert "Traceback" not in said
    assert "Py4J" not in said + done.out
    if how == "limit":
        assert "executors" in done.out
    assert work.rows == meanwhile
    assert 0 == again.code, again
    work.assert_done()
