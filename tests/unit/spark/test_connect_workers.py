from __future__ import annotations

import zipfile
from types import SimpleNamespace

import pyarrow as pa
import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark import connect_workers
from reconciler.spark.connect_workers import set_up_connect_workers


class PySparkException(Exception):  # noqa: N818 (PySpark's)
    """What a server refuses."""


class Remote:
    """A session of Spark Connect whose one worker is this process."""

    def __init__(self, refusal=None, failure=None):
        self.refusal, self.failure = refusal, failure
        self.sent, self.tasks = [], 0

    def addArtifacts(self, path, *, pyfile):  # noqa: N802 (Spark's)
        assert pyfile
        if self.refusal:
            raise self.refusal
        with zipfile.ZipFile(path) as archive:
            self.sent.append((path.rpartition("/")[2], archive.namelist()))

    def range(self, *_):
        return self

    def mapInArrow(self, task, _schema):  # noqa: N802 (Spark's)
        self.tasks += 1

        def collect():
            if self.failure:
                raise self.failure
            batches = task(iter([pa.RecordBatch.from_arrays([pa.array([0])], ["id"])]))
            return [row for batch in batches for row in batch.to_pylist()]

        return SimpleNamespace(collect=collect)


def test_the_package_is_sent_once_and_what_is_known_is_not_checked_again():
    remote = Remote()
    for packages in (["numpy"], ["numpy"], ["numpy", "pyarrow"], ["pyarrow"]):
        set_up_connect_workers(remote, packages)
    [(name, files)] = remote.sent

    assert 2 == remote.tasks
    assert name.startswith("reconciler-")
    assert "reconciler/reader/slice_rows.py" in files
    assert any(file.endswith(".avsc") for file in files)
    assert not any(file.endswith(".pyc") for file in files)


def test_the_same_files_have_the_same_name_for_every_session():
    """A server may refuse another file of a name, but takes the same file again."""
    one, other = Remote(), Remote()
    for remote in (one, other):
        set_up_connect_workers(remote, [])

    assert one.sent == other.sent


def test_what_a_worker_lacks_is_one_error_and_is_looked_for_again():
    """The package is not sent again: a server may refuse a file that it has."""
    remote = Remote()
    for _ in range(2):
        with pytest.raises(
            ReconcilerError,
            match=r"^the workers of the Spark Connect server lack no_such_package on \S+; install",
        ):
            set_up_connect_workers(remote, ["numpy", "no_such_package"])

    assert (1, 2) == (len(remote.sent), remote.tasks)


def test_workers_of_another_python_are_named():
    failure = PySparkException(
        "Traceback (most recent call last):\nPySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python "
        "in worker has different version: 3.12 than that in driver: 3.11"
    )
    with pytest.raises(
        ReconcilerError,
        match=r"cannot do the work: they run Python 3\.12, and the driver runs 3\.11; hudi-rec",
    ):
        set_up_connect_workers(Remote(failure=failure), [])


def test_a_server_that_takes_no_files_is_named():
    with pytest.raises(ReconcilerError, match=r"does not take the package .*: no artifacts$"):
        set_up_connect_workers(Remote(refusal=PySparkException("no artifacts\nat x")), [])


def test_other_errors_are_not_hidden(monkeypatch):
    monkeypatch.setattr(connect_workers, "_send_package", lambda _: None)
    with pytest.raises(ZeroDivisionError):
        set_up_connect_workers(Remote(failure=ZeroDivisionError()), [])
