"""The newest writes of tables that real Hudi wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.observe import observe
from reconciler.state.write_history import add_recent_writes
from reconciler.storage.open import open_storage
from tests.storage_wrappers import RecordingStorage
from tests.trees import unpack

CASES = Path(__file__).parents[1] / "cases" / "clean"


@pytest.fixture
def unpacked(tmp_path):
    return lambda case: open_storage(str(unpack(CASES / case / "table.zip", tmp_path / case)))


def spec(**files):
    return TableSpec(name="t", path="/t", timezone="UTC", files=FileSizes(**files))


def seen(storage, asked):
    return add_recent_writes(storage, observe(storage, asked, observed_ms=0))


@pytest.mark.parametrize("case", ["cow_basic__0.15.0", "cow_basic__1.2.0"])
def test_new_rows_are_counted_in_what_hudi_wrote(unpacked, case):
    state = seen(unpacked(case), spec())

    first, *_ = state.recent_writes.newest
    assert {"a": 1, "b": 1} == first.inserts


def test_no_more_than_the_newest_commits_are_read(unpacked):
    storage = unpacked("cow_basic__1.2.0")
    state = observe(storage, spec(), observed_ms=0)
    recording = RecordingStorage(storage)
    add_recent_writes(recording, state)

    read = [call.paths[0] for call in recording.calls if call.method.startswith("read")]
    assert len(state.timeline.commits) == sum(path.endswith(".commit") for path in read)
    assert len(read) == len(state.timeline.commits) + 1
