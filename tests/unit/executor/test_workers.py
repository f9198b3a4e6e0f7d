"""What workers are checked for before an apply changes anything."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reconciler.executor import workers
from reconciler.executor.deletion import DELETED_HERE
from reconciler.executor.workers import set_up_executors
from reconciler.index.build import MIN_FILES_FOR_JOB
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.decode import empty_named_files, empty_removed_files
from reconciler.plans.model import (
    ClusterStep,
    IndexStep,
    OrphanFiles,
    OrphansStep,
    ResumeStep,
    RollbackStep,
    TablePlan,
)
from reconciler.plans.rewrites import Rewrites
from reconciler.plans.savepoint_step import SavepointStep
from tests.unit.executor.rows import make_clean_step


class Session:
    sparkContext = None  # noqa: N815 (the name of PySpark)


def make_groups(*logs):
    """One group of slices with these log files."""
    return Rewrites(
        partition=pa.array(["a"]).dictionary_encode(),
        outputs=np.ones(1, np.int64),
        bytes=np.ones(1, np.int64),
        because=pa.array(["b"]).dictionary_encode(),
        starts=np.array([0, len(logs)]),
        file_id=pa.array([f"g{n}" for n in range(len(logs))]),
        base=pa.array(["base"] * len(logs)),
        logs=pa.array(logs, pa.list_(pa.string())),
    )


def cluster(*logs):
    return ClusterStep(columns=(), curve=None, mapping=None, groups=make_groups(*logs))


def index(files):
    return IndexStep(targets=("zindex",), columns=("a",), files=files, because="b")


def make_orphans(files):
    return OrphansStep(
        files=OrphanFiles(
            partition=pa.array([""] * files).dictionary_encode(),
            name=pa.array([f"f{number}" for number in range(files)]),
            bytes=np.ones(files, np.int64),
            kind=np.zeros(files, np.int8),
            because=pa.array(["b"] * files).dictionary_encode(),
        )
    )


READING, WRITING = {"numpy", "pyarrow"}, {"numpy", "pyarrow", "xxhash"}
STEPS = {
    "clean": (make_clean_step("a/f"), set()),
    "rollback": (
        RollbackStep(instant="1", action="commit", files=empty_named_files(), because="b"),
        None,
    ),
    "savepoint": (
        SavepointStep(
            change="create", name="q", instant="4", until=None, files=1, bytes=1, because="b"
        ),
        None,
    ),
    "base files": (cluster([], []), WRITING),
    "log files": (cluster([], ["log"]), {*WRITING, "fastavro"}),
    "compaction": (
        CompactStep(order="oldest", groups=make_groups(["log"]), expected=()),
        {*WRITING, "fastavro"},
    ),
    "resumed": (
        ResumeStep(
            instant="1", action="clustering", files=empty_removed_files(), groups=make_groups(["l"])
        ),
        {*WRITING, "fastavro"},
    ),
    "few orphans": (make_orphans(DELETED_HERE), None),
    "orphans": (make_orphans(DELETED_HERE + 1), set()),
    "small index": (index(1), None),
    "index": (index(MIN_FILES_FOR_JOB), READING),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(
    ("path", "client"), [("/lake/t", set()), ("s3a://lake/t", {"fsspec", "s3fs"})]
)
def test_workers_need_what_the_steps_import_and_the_client_of_the_store(
    name, path, client, monkeypatch
):
    step, packages = STEPS[name]
    checked = []
    monkeypatch.setattr(workers, "set_up_workers", lambda _, packages: checked.append(packages))
    set_up_executors(
        Session(), [TablePlan(name="t", path=path, spec={}, spec_digest="", steps=(step,))]
    )

    assert [sorted(set() if packages is None else packages | client)] == checked
