# ruff: noqa: N802, N815 (the names of PySpark)
from __future__ import annotations

import sys

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark.workers import set_up_workers


class Session:
    """A SparkContext whose jobs run here."""

    defaultParallelism = 2

    def __init__(self, master="local[2]", python="python3"):
        self.master, self.pythonExec, self.jobs = master, python, 0

    def getLocalProperty(self, _):
        return None

    def setLocalProperty(self, *_):
        pass

    def setJobGroup(self, *_):
        self.jobs += 1

    def getConf(self):
        return {}

    def parallelize(self, values, _):
        self.values = values
        return self

    def mapPartitions(self, work):
        self.found = [result for value in self.values for result in work([value])]
        return self

    def collect(self):
        return self.found


def test_workers_on_this_host_run_the_interpreter_of_the_driver():
    session = Session()
    set_up_workers(session, ["no_such_package"])

    assert sys.executable == session.pythonExec
    assert 0 == session.jobs


def test_an_interpreter_that_the_user_chose_stays_and_is_checked_once():
    session = Session(python="/opt/other/python")
    set_up_workers(session, ["json"])
    set_up_workers(session, [])
    set_up_workers(session, ["json"])

    assert "/opt/other/python" == session.pythonExec
    assert 1 == session.jobs
    set_up_workers(session, ["csv"])
    assert 2 == session.jobs


def test_packages_that_workers_lack_are_named_with_what_to_do():
    session = Session(python="/opt/other/python")
    for _ in range(2):  # a failed check is no check
        with pytest.raises(ReconcilerError) as raised:
            set_up_workers(session, ["json", "no_such_package", "nor_this"])

        assert str(raised.value).startswith("Spark's workers (/opt/other/python on ")
        assert str(raised.value).endswith(
            " lack no_such_package, nor_this; install hudi-reconciler and no_such_package, "
            "nor_this there, or set PYSPARK_PYTHON to a Python that has them"
        )
