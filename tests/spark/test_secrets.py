"""Credentials of a store reach Spark's tasks, and no file on the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.cli.spark import open_spark_session
from reconciler.executor.deletion import DeletionBatch
from reconciler.executor.spark import SparkFileDeleter
from reconciler.storage.api import StorageRef

SECRET = "hunter2-is-never-written"
#: PySpark leaves the sockets of ``collect`` to the garbage collector
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def holding(secret: str, folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if secret.encode() in path.read_bytes()]


def test_a_secret_is_in_no_file_of_spark(tmp_path, sessions, monkeypatch, capfd):
    sessions.stop()
    scratch, events, table = (tmp_path / name for name in ("scratch", "events", "table"))
    for folder in (scratch, events, table):
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    taken_back: list[bytes] = []
    unlink = os.unlink

    def keeping(path: str, **more: int) -> None:  # what is removed at once was written as well
        if str(path).startswith(places) and "dir_fd" not in more:
            taken_back.append(Path(path).read_bytes())
        unlink(path, **more)

    names = tuple(f"{number}.parquet" for number in range(100))
    for name in names:
        (table / name).write_bytes(b"x")
    ref = StorageRef(str(table), (("secret", SECRET),), (SECRET,))
    conf = {
        "spark.local.dir": str(scratch),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.logBlockUpdates.enabled": "true",
    }
    with open_spark_session("local[2]", conf) as session:
        # a Java that has run a session before keeps to its folder
        places = (str(tmp_path), session.sparkContext._temp_dir)
        monkeypatch.setattr(os, "unlink", keeping)
        outcomes = SparkFileDeleter(session).delete_files(
            ref, [DeletionBatch("", names)], progress=lambda _: None
        )
        monkeypatch.undo()
        found = holding(SECRET, events) + holding(SECRET, scratch)
        found += holding(SECRET, Path(session.sparkContext._temp_dir))
        for name in conf:  # a Java that this test started would give them to later sessions
            session.sparkContext._jvm.java.lang.System.clearProperty(name)

    assert sum(outcome.deleted for outcome in outcomes) == 100
    assert [] == found
    assert holding("reconciler: delete 100 files", events)
    assert any(b"parquet" in data for data in taken_back)
    assert not any(SECRET.encode() in data for data in taken_back)
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
