"""Deletes on Spark's executors do what the ones in this process do."""

from __future__ import annotations

import itertools
import pickle

import pytest

from reconciler.errors import ReconcilerError
from reconciler.executor.deletion import DeletionBatch, DeletionOutcome
from reconciler.executor.spark import SparkFileDeleter
from reconciler.spark import jobs
from reconciler.storage.api import StorageRef

#: PySpark leaves the sockets of ``collect`` to the garbage collector
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def session(sessions):
    return sessions.with_conf(default_parallelism="4")


@pytest.fixture
def executor(session):
    return SparkFileDeleter(session)


def test_files_of_many_partitions_go_in_a_few_tasks(session, executor, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "_JOBS", itertools.count(4711))
    batches = []
    for number in range(30):
        names = tuple(f"{n}.parquet" for n in range(number + 1))
        folder = tmp_path / f"p={number}"
        folder.mkdir()
        for name in names:
            (folder / name).write_bytes(b"x")
        (folder / "stays").write_bytes(b"x")
        batches.append(DeletionBatch(f"p={number}", (*names, "gone")))
    told = []
    outcomes = executor.delete_files(StorageRef(str(tmp_path)), batches, progress=told.append)

    assert sum(outcome.deleted for outcome in outcomes) == 465
    assert sum(len(outcome.gone) for outcome in outcomes) == 30
    assert sum(told) == 495
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"stays"}
    tracker = session.sparkContext.statusTracker()
    (job,) = tracker.getJobIdsForGroup("reconciler-4711")
    (stage,) = tracker.getJobInfo(job).stageIds
    assert tracker.getStageInfo(stage).numTasks == 4


def test_what_a_session_calls_its_jobs_stays_as_it_was(session, executor, tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    context = session.sparkContext
    context.setJobGroup("theirs", "what they do", interruptOnCancel=True)
    executor.delete_files(
        StorageRef(str(tmp_path)), [DeletionBatch("", ("f",))], progress=lambda _count: None
    )
    kept = [context.getLocalProperty(f"spark.job{key}") for key in ("Group.id", ".description")]
    context.setLocalProperty("spark.jobGroup.id", None)
    context.setLocalProperty("spark.job.description", None)

    assert kept == ["theirs", "what they do"]


def test_a_file_that_cannot_go_is_an_outcome_not_an_exception(executor, tmp_path):
    (tmp_path / "p" / "a-folder").mkdir(parents=True)
    (tmp_path / "p" / "a-folder" / "f").write_bytes(b"x")
    (tmp_path / "p" / "f").write_bytes(b"x")
    outcomes = executor.delete_files(
        StorageRef(str(tmp_path)),
        [DeletionBatch("p", ("a-folder", "f"))],
        progress=lambda _count: None,
    )
    failed = [name for outcome in outcomes for name, _why in outcome.failed]

    assert (sum(outcome.deleted for outcome in outcomes), failed) == (1, ["a-folder"])


def test_nothing_to_delete_starts_no_job(executor, tmp_path):
    outcomes = executor.delete_files(StorageRef(str(tmp_path)), [], progress=lambda _count: None)

    assert outcomes == []


def test_a_name_that_leads_out_of_its_partition_stops_everything(executor, tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    with pytest.raises(Exception, match="is not a file name"):
        executor.delete_files(
            StorageRef(str(tmp_path / "t")),
            [DeletionBatch("p", ("../../f",))],
            progress=lambda _count: None,
        )
    assert (tmp_path / "f").exists()


def test_what_a_task_dies_of_is_told_in_one_line_without_secrets(executor, tmp_path):
    with pytest.raises(ReconcilerError) as raised:
        executor.delete_files(
            StorageRef(str(tmp_path), (("key", "hunter2-hunter2"),), ("hunter2-hunter2",)),
            [DeletionBatch("p", ("a/hunter2-hunter2",))],
            progress=lambda _count: None,
        )

    said = str(raised.value)
    assert said.startswith("Task 0 in stage ")
    assert said.endswith(" is not a file name; nothing is deleted by it")
    assert "hunter2" not in said
    assert "\n" not in said


def test_outcomes_and_batches_travel_as_they_are():
    for value in (DeletionBatch("p", ("a",)), DeletionOutcome("p", 1, ("b",), (("c", "why"),))):
        assert pickle.loads(pickle.dumps(value)) == value
