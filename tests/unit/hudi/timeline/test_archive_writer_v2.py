"""Write files of the history of layout 2, and choose what is merged and removed."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.codecs.avro_container import encode_container
from reconciler.hudi.timeline import archive_writer_v2
from reconciler.hudi.timeline.archivable_instant import ArchivableInstant
from reconciler.hudi.timeline.archive_writer_v2 import (
    encode_lsm_file,
    merge_lsm_files,
    name_lsm_file,
)
from reconciler.hudi.timeline.clean import CleanerPlan
from reconciler.hudi.timeline.history_manifest import HistoryFile, HistoryManifest
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.write_commit import WorkloadProfile, WriteCommit

COMMIT = WriteCommit(stats_by_partition={}, operation="UPSERT").encode(version=8)
REPLACE = WriteCommit(stats_by_partition={}, operation="CLUSTER", replaced={}).encode(version=8)
PROFILE = WorkloadProfile(operation="UPSERT", inserts={"p": 1}).encode(version=8)
CLEAN_PLAN = CleanerPlan(policy="KEEP_LATEST_COMMITS", earliest_instant="1").encode("/t")
COMPACTION = encode_container(
    "HoodieCompactionPlan.avsc", {"operations": [], "extraMetadata": {}, "version": 2}
)
CLUSTERING = encode_container(
    "HoodieRequestedReplaceMetadata.avsc",
    {"operationType": "CLUSTER", "clusteringPlan": None, "extraMetadata": {}, "version": 1},
)


def instant(action=Action.COMMIT, requested=b"", inflight=PROFILE, completed=COMMIT, at="10"):
    return ArchivableInstant(
        requested=at,
        completion=f"{at}9",
        action=action,
        requested_bytes=requested,
        inflight_bytes=inflight,
        completed_bytes=completed,
        folder="t/.hoodie/timeline",
    )


def rows(*instants):
    return pq.read_table(pa.BufferReader(encode_lsm_file(instants))).to_pylist()


def test_a_row_has_the_bytes_of_the_completed_file():

    assert [
        {
            "instantTime": "10",
            "completionTime": "109",
            "action": "commit",
            "metadata": COMMIT,
            "plan": None,
            "version": 1,
        }
    ] == rows(instant())


@pytest.mark.parametrize(
    ("plan", "archived"),
    [
        (None, instant()),
        (COMPACTION, instant(requested=COMPACTION, inflight=b"")),
        (COMPACTION, instant(Action.DELTACOMMIT, requested=COMPACTION, inflight=b"")),
        (CLUSTERING, instant(Action.REPLACECOMMIT, CLUSTERING, b"", REPLACE)),
        (PROFILE, instant(Action.REPLACECOMMIT, CLUSTERING, PROFILE, REPLACE)),
        (PROFILE, instant(Action.REPLACECOMMIT, b"", PROFILE, REPLACE)),
        (None, instant(Action.REPLACECOMMIT, b"", b"", REPLACE)),
        (CLEAN_PLAN, instant(Action.CLEAN, CLEAN_PLAN, b"", b"")),
        (CLEAN_PLAN, instant(Action.CLEAN, None, CLEAN_PLAN, b"")),
        (None, instant(Action.CLEAN, None, None, b"")),
        (None, instant(Action.ROLLBACK, None, b"", b"")),
    ],
)
def test_the_plan_is_the_one_that_hudi_archives(plan, archived):

    assert plan == rows(archived)[0]["plan"]


def test_an_empty_completed_file_leaves_no_metadata():

    assert None is rows(instant(completed=b""))[0]["metadata"]


def test_instants_are_ordered_and_name_the_file():
    instants = [instant(at="30"), instant(at="10"), instant(at="20")]

    assert ["10", "20", "30"] == [row["instantTime"] for row in rows(*instants)]
    assert "10_30_0.parquet" == name_lsm_file(instants)


@pytest.mark.parametrize(
    ("damaged", "name"),
    [
        (instant(completed=COMMIT[:-1]), "10_109.commit"),
        (instant(completed=b"{"), "10_109.commit"),
        (instant(completed=b"[]"), "10_109.commit"),
        (instant(completed=REPLACE), "10_109.commit"),
        (instant(inflight=b"x"), "10.inflight"),
        (instant(requested=COMPACTION[:-1]), "10.compaction.requested"),
        (instant(Action.CLEAN, CLEAN_PLAN, CLEAN_PLAN[:9], b""), "10.clean.inflight"),
    ],
)
def test_damage_names_the_file_of_the_instant(damaged, name):

    with pytest.raises(FormatError, match=f"t/.hoodie/timeline/{name}: "):
        encode_lsm_file([instant(at="1"), damaged])


def test_actions_that_hudi_keeps_active_are_refused():

    with pytest.raises(UnsupportedError, match="10: Hudi does not archive a savepoint"):
        instant(Action.SAVEPOINT)


def test_merged_rows_follow_the_order_of_the_files(monkeypatch):
    monkeypatch.setattr(archive_writer_v2, "_GROUP_BYTES", 1)
    newer = encode_lsm_file([instant(at="30"), instant(at="20")])
    older = encode_lsm_file([instant(at="25"), instant(at="10")])
    merged = pq.ParquetFile(pa.BufferReader(merge_lsm_files([("h/b", newer), ("h/a", older)])))

    assert ["20", "30", "10", "25"] == merged.read().column("instantTime").to_pylist()
    assert 4 == merged.num_row_groups


@pytest.mark.parametrize("cut", [0, 4, 100, -1])
def test_a_damaged_file_is_not_merged(cut):
    whole = encode_lsm_file([instant()])

    with pytest.raises(FormatError, match=r"h/b\.parquet: is not a history file"):
        merge_lsm_files([("h/a.parquet", whole), ("h/b.parquet", whole[:cut])])


def test_pages_have_checksums():
    data = encode_lsm_file([instant(at="20260101")], compression="none")
    flipped = data.replace(COMMIT, COMMIT[:-1] + b"\0")

    assert flipped != data
    with pytest.raises(FormatError, match="h/a: is not a history file"):
        merge_lsm_files([("h/a", flipped)])


def manifest(*sizes, level=0):
    files = (HistoryFile(name=f"{n}_{n}_{level}.parquet", size=s) for n, s in enumerate(sizes, 10))
    return HistoryManifest(files=tuple(files))


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([1, 1], None),
        ([1, 1, 1], ["10", "11", "12"]),
        ([1, 1, 1, 1], ["10", "11", "12"]),
        ([9, 2, 1], ["10", "11"]),
        ([11, 2, 1], ["11", "12"]),
        ([1, 11, 1], ["10", "11"]),
        ([11, 11, 11], None),
        ([11, 11, 1], None),
        ([11, 1, 11, 1], ["11", "12"]),
    ],
)
def test_neighbours_are_merged_until_they_are_large(sizes, chosen):
    merge = manifest(*sizes).choose_merge(0, batch=3, max_bytes=10)

    assert chosen == (merge and [file.least for file in merge.sources])


def test_a_merge_of_a_level_makes_a_file_of_the_next():

    assert "10_19_3.parquet" == manifest(*[1] * 10, level=2).choose_merge(2).target
    assert None is manifest(*[1] * 10, level=2).choose_merge(1)
