"""Write files of the archive of layout 1, merge them, and end a merge that stopped."""

from __future__ import annotations

import json
from datetime import timedelta, timezone

import pytest

from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_container import encode_container
from reconciler.hudi.codecs.log_blocks import (
    HeaderKey,
    encode_avro_records,
    encode_block,
    read_avro_records,
    read_blocks,
)
from reconciler.hudi.timeline.archivable_instant import ArchivableInstant
from reconciler.hudi.timeline.archive_merge import (
    MERGE_PLAN,
    ArchiveMerge,
    choose_archive_merge,
    choose_merge_removals,
    merge_archive_files,
)
from reconciler.hudi.timeline.archive_writer_v1 import encode_archive_file
from reconciler.hudi.timeline.clean import CleanerPlan
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.write_commit import WorkloadProfile, WriteCommit

STAT = {"fileId": "f", "path": "p/f.parquet", "prevCommit": "null", "numInserts": 3}
COMMIT = WriteCommit(
    stats_by_partition={"p": [STAT]}, operation="UPSERT", extra={"schema": "{}"}
).encode(version=6)
REPLACE = WriteCommit(stats_by_partition={}, operation="CLUSTER", replaced={"p": ["f"]}).encode(
    version=6
)
PROFILE = WorkloadProfile(operation="UPSERT", inserts={"p": 1}).encode(version=6)
CLEAN_PLAN = CleanerPlan(policy="KEEP_LATEST_COMMITS", earliest_instant="1").encode("/t")
COMPACTION = encode_container(
    "HoodieCompactionPlan.avsc", {"operations": [], "extraMetadata": {}, "version": 2}
)
CLUSTERING = encode_container(
    "HoodieRequestedReplaceMetadata.v6.avsc",
    {"operationType": "CLUSTER", "clusteringPlan": None, "extraMetadata": {}, "version": 1},
)
ROLLBACK_PLAN = encode_container(
    "HoodieRollbackPlan.avsc",
    {
        "instantToRollback": {"commitTime": "5", "action": "commit"},
        "RollbackRequests": [],
        "version": 1,
    },
)
EMPTY = {
    "partitionToWriteStats": {},
    "extraMetadata": {"ROLLING_STAT": ""},
    "operationType": "UNKNOWN",
    "version": None,
}


def instant(action=Action.COMMIT, requested=b"", inflight=PROFILE, completed=COMMIT, at="10"):
    return ArchivableInstant(
        requested=at,
        completion="",
        action=action,
        requested_bytes=requested,
        inflight_bytes=inflight,
        completed_bytes=completed,
        requested_ms=1_000,
        inflight_ms=2_001,
        completed_ms=86_400_999,
        folder="t/.hoodie",
    )


def records(*instants, **options):
    data = encode_archive_file(instants, **options)
    return [record for block in read_blocks(data, "a") for record in read_avro_records(block)]


def contents(archived):
    """Return what each state of an instant holds: the field and its value."""
    plain = ("commitTime", "actionType", "actionState", "stateTransitionTime", "version")
    return [
        next(((k, v) for k, v in record.items() if v is not None and k not in plain), None)
        for record in records(archived)
    ]


def test_each_state_has_a_record_with_the_time_of_its_file():
    found = records(instant(), zone=timezone(timedelta(hours=-1)))

    assert [
        ("10", "commit", "REQUESTED", "19691231230001000"),
        ("10", "commit", "INFLIGHT", "19691231230002001"),
        ("10", "commit", "COMPLETED", "19700101230000999"),
    ] == [
        (r["commitTime"], r["actionType"], r["actionState"], r["stateTransitionTime"])
        for r in found
    ]
    assert {None} == {record["version"] for record in found}


def test_a_commit_is_reduced_to_what_the_archive_knows():
    requested, inflight, completed = contents(instant())

    assert ("hoodieCommitMetadata", EMPTY) == requested
    assert [("hoodieCommitMetadata", "UPSERT")] * 2 == [
        (field, commit["operationType"]) for field, commit in (inflight, completed)
    ]
    assert {"schema": "{}", "ROLLING_STAT": ""} == completed[1]["extraMetadata"]
    ((stat,),) = completed[1]["partitionToWriteStats"].values()
    assert {"fileId": "f", "path": "p/f.parquet", "prevCommit": "null", "numInserts": 3} == {
        key: value for key, value in stat.items() if value
    }
    assert {"totalLogFiles", "partitionPath"} == {k for k, v in stat.items() if v is None}


@pytest.mark.parametrize(
    ("fields", "archived"),
    [
        (["hoodieCompactionPlan", None, "hoodieCommitMetadata"], instant(requested=COMPACTION)),
        (
            ["hoodieCompactionPlan", None, "hoodieCommitMetadata"],
            instant(Action.DELTACOMMIT, requested=COMPACTION, inflight=b""),
        ),
        (
            ["hoodieRequestedReplaceMetadata", None, "hoodieReplaceCommitMetadata"],
            instant(Action.REPLACECOMMIT, CLUSTERING, b"", REPLACE),
        ),
        (
            [None, "HoodieInflightReplaceMetadata", "hoodieReplaceCommitMetadata"],
            instant(Action.REPLACECOMMIT, b"", PROFILE, REPLACE),
        ),
        (
            ["hoodieCleanerPlan", "hoodieCleanerPlan", None],
            instant(Action.CLEAN, CLEAN_PLAN, CLEAN_PLAN, b""),
        ),
        (["hoodieCleanerPlan", None, None], instant(Action.CLEAN, CLEAN_PLAN, b"", b"")),
        ([None, None, None], instant(Action.ROLLBACK, ROLLBACK_PLAN, b"", b"")),
        (["hoodieCommitMetadata", None], instant(requested=None, completed=b"")),
    ],
)
def test_each_state_has_the_content_that_hudi_archives(fields, archived):

    assert fields == [content and content[0] for content in contents(archived)]


def test_pending_states_of_a_compaction_have_its_action():

    assert ["compaction", "compaction", "commit"] == [
        record["actionType"] for record in records(instant(requested=COMPACTION, inflight=b""))
    ]


def test_replaced_groups_are_archived():
    *_pending, (_field, replaced) = contents(instant(Action.REPLACECOMMIT, b"", b"", REPLACE))

    assert {"p": ["f"]} == replaced["partitionToReplaceFileIds"]


def test_a_commit_of_an_old_compaction_is_named_so():
    commit = json.dumps({"compacted": True, "operationType": None}).encode()

    assert "COMPACT" == contents(instant(completed=commit))[-1][1]["operationType"]


def test_a_block_has_ten_records_and_only_the_schema_in_its_header():
    data = encode_archive_file([instant(at=str(time)) for time in range(14, 10, -1)])
    blocks = list(read_blocks(data, "a"))

    assert [10, 2] == [len(read_avro_records(block)) for block in blocks]
    assert {(HeaderKey.SCHEMA,)} == {tuple(block.header) for block in blocks}
    assert ["11"] * 3 == [r["commitTime"] for r in read_avro_records(blocks[0])][:3]


@pytest.mark.parametrize(
    ("damaged", "name"),
    [
        (instant(completed=COMMIT[:-1]), "10.commit"),
        (instant(completed=b"[]"), "10.commit"),
        (instant(completed=b'{"partitionToWriteStats": []}'), "10.commit"),
        (instant(completed=b'{"partitionToWriteStats": {"p": [1]}}'), "10.commit"),
        (instant(completed=b'{"partitionToWriteStats": {"p": [{"path": 1}]}}'), "10.commit"),
        (instant(completed=b'{"partitionToWriteStats": {"p": [{"numWrites": "a"}]}}'), "10.commit"),
        (instant(completed=b'{"operationType": 7}'), "10.commit"),
        (instant(inflight=b"x"), "10.inflight"),
        (instant(requested=COMPACTION[:-1]), "10.compaction.requested"),
        (instant(Action.CLEAN, CLEAN_PLAN, CLEAN_PLAN[:9], b""), "10.clean.inflight"),
        (
            instant(Action.REPLACECOMMIT, b"", b"", b'{"partitionToReplaceFileIds": {"p": 1}}'),
            "10.replacecommit",
        ),
    ],
)
def test_damage_names_the_file_of_the_instant(damaged, name):

    with pytest.raises(FormatError, match=f"t/.hoodie/{name}: "):
        encode_archive_file([instant(at="1"), damaged])


# --- merging -------------------------------------------------------------------------------------

FIRST, SECOND, BOTH = (f".commits_.archive.{n}_1-0-1" for n in (1, 2, 3))
MERGE = ArchiveMerge(sources=(FIRST, SECOND), target=BOTH)


def test_a_merged_file_has_the_records_of_all():
    one, two = (encode_archive_file([instant(at=time)]) for time in ("1", "2"))
    merged = merge_archive_files([("a/1", one), ("a/2", two)])
    found = [r["commitTime"] for b in read_blocks(merged, "a") for r in read_avro_records(b)]

    assert ["1"] * 3 + ["2"] * 3 == found


@pytest.mark.parametrize("cut", [-1, 40])
def test_a_damaged_file_is_not_merged(cut):
    whole = encode_archive_file([instant()])

    with pytest.raises(FormatError, match="a/2: the block at byte 0 is CORRUPT"):
        merge_archive_files([("a/1", whole), ("a/2", whole[:cut])])


def test_a_file_with_a_record_that_cannot_be_read_is_not_merged():
    (block,) = read_blocks(encode_archive_file([instant()]), "a")
    damaged = encode_block(block.type, [*block.header.items()], encode_avro_records([b"\7"]))

    with pytest.raises(FormatError, match="a/1: an Avro record cannot be decoded"):
        merge_archive_files([("a/1", damaged)])


def test_a_merge_plan_names_files_by_absolute_paths():
    data = MERGE.encode("/t/.hoodie/archived")

    assert MERGE == ArchiveMerge.parse(data, MERGE_PLAN)
    assert f"file:/t/.hoodie/archived/{FIRST}".encode() in data
    assert b"s3://b/t/.hoodie/archived/" in MERGE.encode("s3://b/t/.hoodie/archived")


def test_files_older_than_a_large_one_stay():
    sizes = [1, 9, 1, 1, 1]
    files = [(f".commits_.archive.{n}_1-0-1", size) for n, size in enumerate(sizes, 8)]
    merge = choose_archive_merge(files, batch=3, small=8)

    assert [".commits_.archive.10_1-0-1", ".commits_.archive.12_1-0-1"] == [*merge.sources[::2]]
    assert ".commits_.archive.13_1-0-1" == merge.target
    assert None is choose_archive_merge(files, batch=4, small=8)


@pytest.mark.parametrize(
    ("names", "merge", "removed"),
    [
        ([FIRST, SECOND], None, ()),
        ([FIRST, SECOND], MERGE, ()),
        ([FIRST, SECOND, BOTH], MERGE, (BOTH,)),
        ([SECOND, BOTH], MERGE, (SECOND,)),
        ([BOTH], MERGE, ()),
        ([SECOND], MERGE, ()),
    ],
)
def test_a_stopped_merge_is_undone_while_nothing_is_lost_and_else_finished(names, merge, removed):

    assert (*removed, MERGE_PLAN) == choose_merge_removals(names, merge)
