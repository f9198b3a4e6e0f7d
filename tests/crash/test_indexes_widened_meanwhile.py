"""Hudi's column_stats gets more columns after a write read which ones it has."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.index_definitions import DEFINITIONS, add_column_stats_definition
from reconciler.hudi.metadata.indexed_columns import read_indexed_columns
from reconciler.storage.open import open_storage
from tests.built_column_stats import build
from tests.column_stats import find_gaps, load_metadata
from tests.crash.drill import TestClock
from tests.crash.write_drill import BEFORE, act_after
from tests.storage_wrappers import RecordingStorage
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

INDEXES = {"column_stats", "partition_stats"}
#: values of the column x beyond the bounds of their partitions
BATCH = make_rows((1, "a", 2, "zzz"), (5, "b", 2, "zzz"))
WRITTEN = [(1, "a", 2, "zzz"), (2, "b", 1, "two"), (3, "b", 1, "three"), (5, "b", 2, "zzz")]


@pytest.fixture
def it(tmp_path, version, monkeypatch):
    """Runs on a table whose index lacks the column x."""
    (tmp_path / "it").mkdir()
    found = WriteRuns(write_spec(tmp_path / "it", version=version))
    found.clock = TestClock(int(time.time() * 1000) - 60_000)  # the build takes the time that it is
    found.write(make_rows(*BEFORE))
    with monkeypatch.context() as patch:
        patch.setattr("reconciler.planners.index.column_stats.MAX_COLUMNS", 3)
        build(Path(found.spec.path), ["id"])
    assert "x" not in read_columns(found)
    return found


def read_columns(it):
    return read_indexed_columns(load_metadata(it.spec.path)[0])


def list_new_files(it, instant):
    return [path.name for path in Path(it.spec.path).glob(f"p=*/*_{instant}.parquet")]


def check_index_is_dropped(it, result):
    """Check that no reader skips the new rows by an index that lacks them."""
    assert not INDEXES & set(load_properties(open_storage(it.spec.path)).metadata_partitions)
    assert [] == find_gaps(it.spec.path, list_new_files(it, result.instant))
    assert INDEXES == set(re.findall(r"partition (\w+) was dropped", str(result.warnings)))
    assert WRITTEN == it.read_rows()


@pytest.mark.parametrize("version", [8, 9])
def test_an_index_that_an_apply_widens_before_the_write_has_the_lock_is_dropped(it):
    built = []

    class Widens(RecordingStorage):
        def create(self, path, data):
            if path == ".hoodie/lock" and not built:
                built.append(build(Path(it.spec.path), ["x"]))
            super().create(path, data)

    result = it.write(BATCH, around=Widens)

    assert "x" in built[0].columns
    check_index_is_dropped(it, result)


@pytest.mark.parametrize("version", [8, 9])
def test_an_index_that_another_writer_widens_during_the_work_is_dropped(it, version):
    storage = open_storage(it.spec.path)

    def widen():
        data = storage.read(DEFINITIONS)
        columns = [*read_columns(it), "x"]
        storage.replace(DEFINITIONS, add_column_stats_definition(data, columns, version))

    result = it.write(BATCH, around=act_after(r"\.parquet$", widen))

    check_index_is_dropped(it, result)


@pytest.mark.parametrize("version", [8, 9])
def test_an_index_that_stays_as_it_is_gets_the_ranges_of_a_write(it):
    result = it.write(BATCH)

    assert () == result.warnings
    assert [] == find_gaps(it.spec.path, list_new_files(it, result.instant))
    assert INDEXES <= set(load_properties(open_storage(it.spec.path)).metadata_partitions)
