"""An interruption while Spark's workers write the files of a clustering."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.rewrite import spark as module
from reconciler.rewrite.spark import SparkRewriter
from tests.crash.clustering_drill import list_leftovers, make_clustering_drill
from tests.crash.drill import list_data_files
from tests.spark.frames import PYSPARK

pytestmark = PYSPARK
TABLES = Path(__file__).parents[1] / "tables"


class Lingers(module._WriteTask):
    """A worker that has brought its file to the table, and takes its time to tell of it."""

    def __call__(self, index, runs):
        for made in module._WriteTask.__call__(self, index, runs):
            Path(self.table.ref.location).with_name("there").touch()
            time.sleep(120)
            yield made


@contextmanager
def interrupted_when_there_is(path):
    """SIGINT for this process as soon as there is such a file; gives whether that was so."""
    sent = threading.Event()

    def wait():
        until = time.monotonic() + 120
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.05)
        sent.set()
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield sent
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


def nothing_runs(spark):
    """Whether no job runs, long before the worker wakes up; Spark tells of an end a little late."""
    until = time.monotonic() + 30
    while spark.sparkContext.statusTracker().getActiveJobsIds():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def test_the_workers_end_and_everything_is_taken_back(spark, tmp_path, monkeypatch):
    it = make_clustering_drill(TABLES / "v9_keygen.zip", tmp_path / "t")
    rows, files, plan = it.rows(), list_data_files(it.table), it.plan()
    there = it.table.with_name("there")
    monkeypatch.setattr(module, "_WriteTask", Lingers)
    began = time.monotonic()
    with interrupted_when_there_is(there) as sent, pytest.raises(KeyboardInterrupt):
        it.apply(plan, rewriter=SparkRewriter(spark))

    assert sent.is_set()
    assert there.exists()
    assert time.monotonic() - began < 110
    assert nothing_runs(spark)
    assert (rows, files) == (it.rows(), list_data_files(it.table))
    assert [] == list_leftovers(it.table)

    monkeypatch.undo()
    again = it.apply(plan, rewriter=SparkRewriter(spark))
    assert 0 == again.exit_code
    assert rows == it.rows()
    assert [] == list_leftovers(it.table)
