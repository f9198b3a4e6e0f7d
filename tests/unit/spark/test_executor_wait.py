"""Waiting for executors that a cluster does not give; the context is a stand-in for Spark's."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark import executor_wait
from reconciler.spark.jobs import run_job_group
from reconciler.spark.workers import set_up_workers

MASTER = "spark://127.0.0.1:7077"


class Context:
    """A context of a cluster with so many executors; ``cancelled`` is set when its jobs are."""

    master, pythonExec = MASTER, "python3"  # noqa: N815 (Spark's)
    listFiles = ("spark://x/reconciler-of-the-driver.zip",)  # noqa: N815
    defaultParallelism = 2  # noqa: N815

    def __init__(self, executors: int, timeout: str) -> None:
        self.executors = executors
        status = SimpleNamespace(size=lambda: self.executors + 1)
        spark = SimpleNamespace(getExecutorMemoryStatus=lambda: status)
        self._jsc = SimpleNamespace(sc=lambda: spark)
        self._conf = {executor_wait.EXECUTOR_TIMEOUT: timeout, "spark.executor.memory": "9g"}
        self.cancelled = threading.Event()

    def getConf(self):  # noqa: N802
        return self._conf

    def getLocalProperty(self, _key):  # noqa: N802
        return None

    def setLocalProperty(self, _key, _value):  # noqa: N802
        pass

    def setJobGroup(self, _group, _described):  # noqa: N802
        pass

    def cancelJobGroup(self, _group):  # noqa: N802
        self.cancelled.set()

    def statusTracker(self):  # noqa: N802
        return SimpleNamespace(getJobIdsForGroup=lambda _group: [])

    def parallelize(self, *_arguments):
        return self

    def mapPartitions(self, _function):  # noqa: N802
        return self

    def collect(self):
        assert self.cancelled.wait(30)
        raise RuntimeError("Job 0 cancelled part of cancelled job group")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Let a declared second last a fifth of one."""
    parse = executor_wait.parse_timeout

    def parse_shorter(text):
        seconds = parse(text)
        return None if seconds is None else seconds / 5

    monkeypatch.setattr(executor_wait, "parse_timeout", parse_shorter)
    monkeypatch.setattr(executor_wait, "_CHECK_EVERY_S", 0.02)
    monkeypatch.setattr(executor_wait, "_REPORT_AFTER_S", 0.06)


def test_a_wait_is_reported_once_and_ends_at_its_limit():
    context, said = Context(0, "1s"), []
    with (
        pytest.raises(ReconcilerError) as caught,
        executor_wait.report_waits(said.append),
        run_job_group(context, "it", str),
    ):
        context.collect()

    lack = f"Spark's master {MASTER} has given no executors (spark.executor.memory=9g)"
    assert 1 == len(said)
    assert said[0].startswith(lack)
    assert str(caught.value).startswith(f"{lack} after 1s (spark.reconciler.executorTimeout)")


def test_executors_that_were_there_are_said_to_be_lost():
    context = Context(2, "1s")
    threading.Timer(0.1, setattr, (context, "executors", 0)).start()
    with pytest.raises(ReconcilerError) as caught, run_job_group(context, "it", str):
        context.collect()

    assert f"Spark's master {MASTER} has lost all executors (" in str(caught.value)
    assert "after 1s (spark.reconciler.executorTimeout)" in str(caught.value)


def test_a_check_of_the_workers_names_what_the_cluster_lacks_alone():
    with pytest.raises(ReconcilerError) as caught:
        set_up_workers(Context(0, "1s"))

    assert "PYSPARK_PYTHON" not in str(caught.value)
    assert "has given no executors" in str(caught.value)


@pytest.mark.parametrize(("executors", "timeout"), [(1, "1s"), (0, "0s")])
def test_nothing_is_cancelled_with_executors_or_without_a_limit(executors, timeout):
    context = Context(executors, timeout)
    with run_job_group(context, "it", str):
        assert not context.cancelled.wait(0.4)


def test_a_timeout_that_is_no_duration_is_named():
    with (
        pytest.raises(ReconcilerError, match=r"executorTimeout=soon: write it as 90s, 15m or 1h"),
        run_job_group(Context(1, "soon"), "it", str),
    ):
        pass


def test_a_stop_cancels_a_job_from_another_thread():
    context = Context(0, "0s")
    with (
        pytest.raises(RuntimeError, match="cancelled"),
        executor_wait.report_waits(lambda _: None, is_stopped=lambda: True),
        run_job_group(context, "it", str),
    ):
        context.collect()

    assert context.cancelled.is_set()
