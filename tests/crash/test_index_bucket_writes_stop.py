"""A write to a table with a bucket index that stops anywhere leaves one file group a bucket."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.writer.request import WriteMode
from tests.crash.drill import Killed
from tests.crash.write_drill import copy_table, list_leftovers
from tests.selection import long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

BEFORE = [(1, "a", 1, "one"), (2, "b", 1, "two"), (3, "b", 1, "three")]
#: changes a row, adds one to a bucket that has files, and others to buckets that have none
BATCH = make_rows((1, "a", 2, "ONE"), (5, "b", 1, "five"), (6, "b", 1, "six"), (4, "c", 1, "four"))
AFTER = [
    (1, "a", 2, "ONE"),
    *BEFORE[1:],
    (4, "c", 1, "four"),
    (5, "b", 1, "five"),
    (6, "b", 1, "six"),
]
CASES = [
    (6, "MERGE_ON_READ", WriteMode.UPSERT),
    (9, "COPY_ON_WRITE", WriteMode.UPSERT),
    long(6, "COPY_ON_WRITE", WriteMode.UPSERT),
    long(8, "MERGE_ON_READ", WriteMode.UPSERT),
    long(9, "MERGE_ON_READ", WriteMode.UPSERT),
]


def count_buckets(runs):
    """Count the file groups that readers see, by partition and bucket."""
    state = observe(open_storage(runs.spec.path), None, observed_ms=runs.clock.now_ms())
    view, files = state.view, state.files
    ids = files.group_id.to_pylist()
    live = {int(view.group[at]) for at in (view.is_live & view.is_visible).nonzero()[0]}
    return Counter((int(files.group_partition[one]), ids[one][:8]) for one in live)


@pytest.mark.parametrize(("version", "kind", "way"), CASES)
def test_wherever_a_write_by_buckets_stops_the_next_one_goes_on(tmp_path, version, kind, way):
    (tmp_path / "t").mkdir()
    it = WriteRuns(write_spec(tmp_path / "t", version=version, kind=kind, buckets=2))
    it.write(make_rows(*BEFORE))
    whole, record = copy_table(it, tmp_path / "whole"), []
    whole.write(BATCH, way, around=lambda s: record.append(RecordingStorage(s)) or record[-1])
    assert (sorted(AFTER), []) == (whole.read_rows(), list_leftovers(whole))
    buckets = count_buckets(whole)
    assert {1} == set(buckets.values())

    for at, call in take_turn(enumerate(record[0].mutations, 1), of=40, turn=version):
        run = copy_table(it, tmp_path / f"{at}")
        with pytest.raises(Killed):
            run.write(
                BATCH,
                way,
                around=lambda s, at=at: FaultyStorage(
                    s, StorageFault(at=at, mode="before"), Killed()
                ),
            )

        assert run.read_rows() in (sorted(BEFORE), sorted(AFTER)), (at, call)
        run.write(BATCH, way)
        assert (sorted(AFTER), []) == (run.read_rows(), list_leftovers(run)), (at, call)
        assert buckets == count_buckets(run), (at, call)
        shutil.rmtree(tmp_path / f"{at}")
