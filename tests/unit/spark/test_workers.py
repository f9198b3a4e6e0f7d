# ruff: noqa: N802, N815 (the names of PySpark)
from __future__ import annotations

import importlib.metadata
import re
import socket
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark import package_checks, workers
from reconciler.spark.workers import set_up_workers


class Session:
    """A SparkContext whose jobs run here."""

    defaultParallelism = 2

    def __init__(self, master="local[2]", python="python3", executors=0):
        self.master, self.pythonExec, self.jobs = master, python, 0
        status = SimpleNamespace(size=lambda: executors + 1)  # the driver counts too
        java = SimpleNamespace(getExecutorMemoryStatus=lambda: status)
        self._jsc = SimpleNamespace(sc=lambda: java)

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

        assert (
            f"Spark's workers (/opt/other/python) lack no_such_package, nor_this on "
            f"{socket.gethostname()}; install hudi-reconciler and these packages there, or set "
            "PYSPARK_PYTHON to a Python that has them"
        ) == str(raised.value)


def test_all_hosts_are_named_and_what_each_has_too_old(monkeypatch):
    hosts, versions = iter("ba"), iter(("16.1", "4.0"))
    monkeypatch.setattr(package_checks.socket, "gethostname", lambda: next(hosts))
    monkeypatch.setattr(package_checks.importlib.metadata, "version", lambda _: next(versions))
    with pytest.raises(ReconcilerError) as raised:
        set_up_workers(Session(python="/p"), ["pyarrow"])

    assert "lack pyarrow 17 (they have 4.0) on a; pyarrow 17 (they have 16.1) on b; " in str(
        raised.value
    )


def test_a_package_without_a_description_counts_as_new_enough(monkeypatch):
    def fail(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(package_checks.importlib.metadata, "version", fail)
    session = Session(python="/p")
    set_up_workers(session, ["pyarrow"])

    assert 1 == session.jobs


def test_workers_with_another_python_are_told_by_both_versions():
    message = (
        "E: Traceback (most recent call last):\npyspark.errors.PySparkRuntimeError: "
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version (3, 9) than that in "
        "driver 3.11, PySpark cannot run with different minor versions.\n"
    )

    assert "they run Python 3.9, and the driver runs 3.11" == workers.explain_check(message)


class TestOfACluster:
    """Its executors answer from the folders of this process, those of other hosts not at all."""

    @pytest.fixture(autouse=True)
    def asked(self, monkeypatch):
        """The masters that were asked for the Pythons of their workers."""
        found = []

        def refuse(context, **_):
            found.append(context.master)
            raise ReconcilerError("Spark's workers (python3) have Python 3 on b")

        monkeypatch.setattr(workers, "_ship_archive", lambda _: None)
        monkeypatch.setattr(workers, "check_interpreters", refuse)
        return found

    def test_the_python_of_a_host_that_ran_no_task_is_said_and_not_what_others_lack(self):
        for packages in (["json"], ["no_such_package"]):
            with pytest.raises(ReconcilerError, match="Python 3 on b"):
                set_up_workers(Session(master="spark://m:7077", executors=2), packages)

    def test_the_pythons_are_asked_for_where_packages_lack(self):
        with pytest.raises(ReconcilerError, match="Python 3 on b"):
            set_up_workers(Session(master="spark://m:7077", executors=1), ["no_such_package"])

    def test_the_pythons_are_not_asked_for_where_all_have_done_the_work(self, asked):
        set_up_workers(Session(master="spark://m:7077", executors=1), ["json"])

        assert not asked


class Py4JError(Exception):
    """An error of the name that Py4J's have."""


def test_an_application_that_the_master_removed_is_said_in_one_line(monkeypatch):
    def fail(_):
        raise Py4JError(
            "An error occurred while calling o29.addFile.\n: java.lang.IllegalStateException: "
            "Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was"
        )

    monkeypatch.setattr(workers, "_ship_archive", fail)
    with pytest.raises(ReconcilerError) as raised:
        set_up_workers(Session(master="spark://m:7077"), [])

    assert (
        "Spark on spark://m:7077 could not get what its workers need: Cannot call methods on a "
        "stopped SparkContext; see the log of the master, and run this again"
    ) == str(raised.value)


def test_minimum_versions_are_those_that_the_package_declares():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {}
    for requirement in (text for listed in lists for text in listed):
        if found := re.match(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement):
            declared[found[1].replace("-", "_")] = found[2]

    assert package_checks.MINIMUM_VERSIONS == {
        name: declared[name] for name in package_checks.MINIMUM_VERSIONS
    }
