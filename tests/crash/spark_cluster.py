"""A Spark cluster on this machine whose executors die as they are told; applies run on it.

Driver and executors are processes of their own, and the executors' Python has no package of ours:
they have what the apply sends them. In a test:

    with Cluster(folder) as cluster:
        cluster.order(table, Orders(at=3, how="executor"))
        done = cluster.apply(plan)          # the command line's own exit code, result and words
        assert cluster.deaths() == 1
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import psutil
import pyspark

from reconciler.plans.document import dump_plan
from reconciler.plans.plan import Plan

MASTER = "local-cluster[2,1,1024]"
#: for processes that do not live long
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
#: of a worker whose task has ended, on a busy machine
_LIFE_S = 60
_DAEMON = Path(__file__).parent / "dying_daemon.py"


@dataclass(frozen=True, kw_only=True)
class Orders:
    """At which delete to die, counted over all workers, retries included; 0 for never.

    ``always``: at every later one too. ``how``: ``kill`` (SIGKILL) and ``exit`` end the Python of
    the task, ``executor`` its whole Java. Nobody dies of a file in ``slow``; the first delete of
    one takes ``slow_s``, and nobody dies before that has begun.
    """

    at: int = 0
    when: Literal["before", "after"] = "before"
    how: Literal["kill", "exit", "executor"] = "kill"
    always: bool = False
    slow: tuple[str, ...] = ()
    slow_s: float = 0


@dataclass(frozen=True, kw_only=True)
class Done:
    """What the command said: its exit code, its result, the lines for people."""

    code: int
    result: dict[str, Any]
    said: list[str]

    @property
    def table(self) -> dict[str, Any]:
        (table,) = self.result["tables"]
        return table

    @property
    def counts(self) -> tuple[int, int, int]:
        """Of the first step: files that went, their bytes, files that were gone before."""
        step = self.table["outcomes"][0]
        return step["filesRemoved"], step["bytesRemoved"], step["filesGone"]


class Cluster:
    """Two executors with a core each, of Spark's own; one driver for all applies.

    ``master`` may be ``local[2]``, where the driver is the executor and its Python is ours.
    ``hosts``: addresses of this machine that the executors live at instead of one of Spark's
    choice: it never runs two attempts at a task on one host at a time.
    """

    def __init__(
        self,
        folder: Path,
        conf: Mapping[str, str] | None = None,
        *,
        master: str = MASTER,
        hosts: Sequence[str] = (),
    ) -> None:
        self._folder, self._conf, self._master, self._hosts = folder, conf or {}, master, hosts

    def __enter__(self) -> Self:
        python, self._orders = self._folder / "python", self._folder / "orders"
        for path in (python, self._orders, self._folder / "spark"):
            path.mkdir(parents=True)
        shutil.copy(_DAEMON, python)
        for part in ("bin", "jars", "python"):  # Spark keeps its executors' folders in its home
            (self._folder / "spark" / part).symlink_to(Path(pyspark.__file__).parent / part)
        local = self._master.startswith("local[")
        conf = {
            "spark.executor.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "512m",
            **dict.fromkeys(_JAVA_OPTIONS, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
            "spark.executorEnv.PYTHONPATH": str(python),
            "spark.executorEnv.DEADLY": str(self._orders),
            "spark.python.daemon.module": "dying_daemon",
            "spark.python.worker.reuse": "false",  # so that wait_for_workers sees an end
            **self._conf,
        }
        self._log = tempfile.TemporaryFile()
        self._driver = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.crash.spark_cluster"),
                *(self._master, json.dumps(conf), *self._hosts),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=Path(__file__).parents[2],
            env={
                **os.environ,
                "SPARK_HOME": str(self._folder / "spark"),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": sys.executable if local else sys._base_executable,
            },
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._driver.stdin.close()
        try:
            self._driver.wait(30)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        self._driver.stdout.close()
        self._log.close()

    def order(self, table: Path, orders: Orders | None) -> None:
        """From now on, obey these orders over this table, or none."""
        for path in self._orders.iterdir():
            path.unlink()
        if orders is not None:
            said = json.dumps({"table": f"{table}/", **asdict(orders)})
            (self._orders / "orders.json").write_text(said)

    def log(self) -> list[list[str]]:
        """``pid, what, name`` of everything that happened since the orders, in order."""
        path = self._orders / "log"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def deaths(self) -> int:
        return sum(what == "died" for _, what, _ in self.log())

    def wait_for_workers(self) -> None:
        """Wait until no Python of an executor lives that was started since the orders."""
        path = self._orders / "started"
        pids = [int(pid) for pid in path.read_text().split()] if path.exists() else []
        until = time.monotonic() + _LIFE_S
        while living := [pid for pid in pids if _lives(pid)]:
            assert time.monotonic() < until, f"processes {living} do not end"
            time.sleep(0.1)

    def apply(self, plan: Plan) -> Done:
        """``reconciler apply PLAN --format json`` on the cluster."""
        path = self._folder / "plan.json"
        path.write_bytes(dump_plan(plan))
        answer = self._ask(["apply", str(path), "--format", "json"])
        return Done(
            code=answer["code"],
            result=json.loads(answer["out"] or "{}"),
            said=answer["err"].splitlines(),
        )

    def _ask(self, arguments: Sequence[str]) -> dict[str, Any]:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._driver.stdin.write(json.dumps(list(arguments)) + "\n")
        self._driver.stdin.flush()
        line = self._driver.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"the driver is gone: {self._log.read()[-3000:].decode()}")
        return json.loads(line)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _drive(master: str, conf: Mapping[str, str], hosts: Sequence[str]) -> None:
    """The driver: one session, and a command line of ours for every line of standard input."""
    from reconciler.cli import app  # noqa: PLC0415 (the tests' end needs none of it)
    from reconciler.cli.spark import open_spark_session  # noqa: PLC0415

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    with open_spark_session(_standalone(hosts) if hosts else master, conf):
        for line in sys.stdin:
            out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = app.run(json.loads(line))
            said = {"out": out.buffer.getvalue().decode(), "err": err.buffer.getvalue().decode()}
            answers.write(json.dumps({"code": code, **said}) + "\n")


def _standalone(hosts: Sequence[str]) -> str:
    """A master of Spark's in this process, as ``local-cluster`` has one, and a worker per host."""
    from pyspark import SparkContext  # noqa: PLC0415

    SparkContext._ensure_initialized()
    jvm, gateway = SparkContext._jvm, SparkContext._gateway
    spark, scala = jvm.org.apache.spark, jvm.scala.Option
    conf = spark.SparkConf().set("spark.master.rest.enabled", "false")
    started = spark.deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)
    masters = gateway.new_array(jvm.java.lang.String, 1)
    masters[0] = f"spark://127.0.0.1:{started._1().address().port()}"
    for number, host in enumerate(hosts):
        work = f"{os.environ['SPARK_HOME']}/{host}"
        spark.deploy.worker.Worker.startRpcEnvAndEndpoint(
            host, 0, 0, 1, 1024, masters, work, scala.apply(number), conf, scala.empty()
        )
    return masters[0]


if __name__ == "__main__":
    _drive(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:])
