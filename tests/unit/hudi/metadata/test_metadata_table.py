from __future__ import annotations

import json
import struct

import pytest

from reconciler.errors import BusyError, FormatError, UnsupportedError
from reconciler.hudi.codecs import avro_container, hfile_writer
from reconciler.hudi.codecs.avro_binary import encode_record, parse_schema
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, encode_block
from reconciler.hudi.metadata.clean_sync import plan_clean_sync
from reconciler.hudi.metadata.listing import merge_file_sizes, read_metadata_listing
from reconciler.hudi.metadata.sync_decisions import SyncEffect, decide_sync
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant
from tests.listing_differences import ListingDifference, find_differences
from tests.memory_source import MemorySource

ROOT = ".hoodie/metadata"
SOLO = "00000000000000000"
INFO = {
    "type": "record",
    "name": "info",
    "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
}
FIELDS = [
    {"name": "_hoodie_commit_time", "type": ["null", "string"]},
    {"name": "key", "type": "string"},
    {"name": "type", "type": "int"},
    {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": INFO}]},
]
SCHEMA = json.dumps({"type": "record", "name": "r", "fields": FIELDS})


def cells(records, *, keyed=False):
    parsed = parse_schema(SCHEMA, "")
    found = []
    for key, names in sorted(records.items()):
        listed = {name: {"size": size or 0, "isDeleted": not size} for name, size in names.items()}
        record = {"key": key if keyed else "", "type": 2, "filesystemMetadata": listed}
        found.append((key.encode(), encode_record(record, parsed)))
    return found


def base(records):
    return hfile_writer.encode_hfile(cells(records), SCHEMA)


def block(instant, records, *more):
    header = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, SCHEMA), *more]
    return encode_block(BlockType.HFILE_DATA, header, base(records))


def avro_block(instant, records):
    content = struct.pack(">ii", 3, len(records))
    for _key, value in cells(records, keyed=True):
        content += struct.pack(">i", len(value)) + value
    header = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, SCHEMA)]
    return encode_block(BlockType.AVRO_DATA, header, content)


def delete(instant, key):
    record = bytes([2, 2, 2 * len(key)]) + key + bytes([0, 0, 0])
    content = struct.pack(">ii", 3, len(record)) + record
    return encode_block(BlockType.DELETE, [(HeaderKey.INSTANT_TIME, instant)], content)


def rollback_of(commit):
    return {
        "startRollbackTime": "1",
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 0,
        "commitsRollback": [commit],
        "partitionMetadata": {},
        "instantsRollback": [],
    }


def completed_rollback_of(commit):
    return avro_container.encode_container("HoodieRollbackMetadata.avsc", rollback_of(commit))


class Made(MemorySource):
    """A metadata table in memory whose ``files`` partition has the given base and log files."""

    def __init__(self, version, *, files, own=(), data=(), other=None):
        own_folder = f"{ROOT}/.hoodie" + ("/timeline" if version >= 8 else "")
        self.version = version
        self.data_folder = ".hoodie" + ("/timeline" if version >= 8 else "")
        self.data = [Instant.parse(name) for name in data]
        self.files = {f"{ROOT}/files/{name}": content for name, content in files.items()}
        self.files |= {f"{own_folder}/{name}": b"" for name in own}
        self.files |= other or {}
        self.read_paths = []

    def read(self, path):
        self.read_paths.append(path)
        return super().read(path)

    def open(self):
        data = Timeline.from_files(TimelineFile(i, i.file_name, 1, 0) for i in self.data)
        return open_metadata_table(self, version=self.version, data=data)

    def listed(self):
        folders = read_metadata_listing(self.open()).read_folders()
        return {path: dict(zip(names, sizes, strict=True)) for path, names, sizes in folders}


ALL = "__all_partitions__"
BORN = {f"files-0000-0_0-0-0_{SOLO}.hfile": base({ALL: {"p": 1}, "p": {"f": 5, "g": 6}})}


def nine(*logs, data=(), **more):
    """Return a table of version 9 with a log file for each (instant, bytes)."""
    files = BORN | {f".files-0000-0_{time}.log.1_0-0-0": content for time, content in logs}
    own = [f"{SOLO}_20240101000000000.deltacommit"]
    own += [f"{time}_{time}.deltacommit" for time, _content in logs]
    return Made(9, files=files, own=own, data=data, **more)


def test_sizes_only_grow():
    names = {"f": 5, "g": 5}
    merge_file_sizes(names, {"f": 4, "g": 6})

    assert {"f": 5, "g": 6} == names


def test_a_deletion_cancels_an_entry_and_stays_without_one():
    names = {"f": 5, "g": None}
    merge_file_sizes(names, {"f": None, "g": None, "h": None})

    assert {"g": None, "h": None} == names


def test_a_file_added_after_its_deletion_is_listed():
    names = {"f": None}
    merge_file_sizes(names, {"f": 3})

    assert {"f": 3} == names


def test_log_blocks_are_merged_over_the_base_file():
    table = nine(("20240102000000000", block("20240102000000000", {"p": {"f": None, "h": 7}})))

    assert {"p": {"g": 6, "h": 7}} == table.listed()


def test_log_blocks_that_cancel_each_other_do_not_change_the_base_file():
    # Hudi merges the log blocks first
    table = nine(
        ("20240102000000000", block("20240102000000000", {"p": {"f": 9}})),
        ("20240103000000000", block("20240103000000000", {"p": {"f": None}})),
    )

    assert {"p": {"f": 5, "g": 6}} == table.listed()


@pytest.mark.parametrize("version", [6, 9])
def test_a_clean_deletes_twice_a_name_in_base_file_and_log_blocks(version):
    log = block("20240102000000000", {"p": {"f": 9}})
    table = nine(("20240102000000000", log), data=["20240104000000000.clean.inflight"])
    if version == 6:
        table = Made(
            6,
            files=BORN | {f".files-0000-0_{SOLO}.log.1_0-0-0": log},
            own=[f"{SOLO}.deltacommit", "20240102000000000.deltacommit"],
            data=["20240102000000000.commit", "20240104000000000.clean.inflight"],
        )
    metadata = table.open()
    sync = plan_clean_sync(
        metadata,
        read_metadata_listing(metadata),
        instant="20240104000000000",
        completion_time="20240104000000001",
        removed_files={"p": ["f"]},
    )
    table.files |= {write.path: write.data for write in sync.writes}
    table.data.append(Instant.parse("20240104000000000.clean"))

    assert {"p": {"g": 6}} == table.listed()


def test_a_clean_is_written_again_if_a_compaction_has_skipped_it():
    table = nine(data=["20240104000000000.clean.inflight"])

    def attempt(completion_time):
        metadata = table.open()
        sync = plan_clean_sync(
            metadata,
            read_metadata_listing(metadata),
            instant="20240104000000000",
            completion_time=completion_time,
            removed_files={"p": ["f"]},
        )
        for path in sync.cleanup:
            del table.files[path]
        table.files |= {write.path: write.data for write in sync.writes}
        return sync

    assert 4 == len(attempt("20240104000000001").writes)
    assert ((), ()) == ((again := attempt("20240104000000002")).cleanup, again.writes)

    base_file = f"{ROOT}/files/files-0000-0_1-0-0_20240105000000000.hfile"
    table.files[base_file] = base({ALL: {"p": 1}, "p": {"f": 5, "g": 6}})
    table.files[f"{ROOT}/.hoodie/timeline/20240105000000000_20240105000000009.commit"] = b""
    assert 4 == len(attempt("20240106000000000").writes)
    table.data.append(Instant.parse("20240104000000000.clean"))

    assert {"p": {"g": 6}} == table.listed()


def test_a_delete_block_removes_a_key_of_the_base_file():
    time = "20240102000000000"
    table = nine((time, delete(time, b"p") + block(time, {"p": {"h": 7}})))

    assert {"p": {"h": 7}} == table.listed()


def test_avro_blocks_are_read_too():
    table = nine(("20240102000000000", avro_block("20240102000000000", {"p": {"h": 7}})))

    assert {"p": {"f": 5, "g": 6, "h": 7}} == table.listed()


def test_blocks_of_another_kind_are_refused():
    header = [(HeaderKey.INSTANT_TIME, "20240102000000000"), (HeaderKey.SCHEMA, SCHEMA)]
    table = nine(("20240102000000000", encode_block(BlockType.PARQUET_DATA, header, b"")))

    with pytest.raises(UnsupportedError, match="PARQUET_DATA blocks are not supported"):
        table.listed()


def test_the_block_of_a_pending_write_is_not_read():
    table = nine(
        ("20240102000000000", block("20240102000000000", {"p": {"h": 7}})),
        data=["20240102000000000.inflight"],
    )

    assert {"p": {"f": 5, "g": 6}} == table.listed()


SIX = [f"{SOLO}.deltacommit", "20240102000000000.deltacommit", "20240103000000000.deltacommit"]


def six(*blocks, data=(), own=SIX, **more):
    """Return a table of version 6 with one log file for each."""
    names = [f".files-0000-0_{SOLO}.log.{n}_0-0-0" for n in range(1, len(blocks) + 1)]
    return Made(6, files=BORN | dict(zip(names, blocks, strict=True)), own=own, data=data, **more)


def test_version_6_reads_blocks_of_instants_completed_on_both_timelines():
    blocks = [
        block("20240102000000000", {"p": {"h": 7}}),
        block("20240103000000000", {"p": {"i": 8}}),
        block("20240104000000000", {"p": {"j": 9}}),
    ]
    data = ["20240102000000000.commit", "20240103000000000.inflight", "20240104000000000.commit"]

    assert {"p": {"f": 5, "g": 6, "h": 7}} == six(*blocks, data=data).listed()


def test_blocks_of_a_rolled_back_instant_count_because_the_rollback_cancels_them():
    blocks = [
        block("20240102000000000", {"p": {"h": 7}}),
        block("20240103000000000", {"p": {"h": None}}),
    ]
    data = ["20240103000000000.rollback"]
    other = {".hoodie/20240103000000000.rollback": completed_rollback_of("20240102000000000")}

    assert {"p": {"f": 5, "g": 6}} == six(*blocks, data=data, other=other).listed()


def test_blocks_of_restored_instants_count_too():
    restore = {
        "startRestoreTime": "1",
        "timeTakenInMillis": 1,
        "instantsToRollback": [],
        "hoodieRestoreMetadata": {"20240102000000000": [rollback_of("20240102000000000")]},
        "restoreInstantInfo": [],
    }
    data = avro_container.encode_container("HoodieRestoreMetadata.avsc", restore)
    other = {".hoodie/20240103000000000.restore": data}
    made = block("20240102000000000", {"p": {"h": 7}})
    table = six(made, data=["20240103000000000.restore"], other=other)

    assert {"p": {"f": 5, "g": 6, "h": 7}} == table.listed()


def test_an_empty_rollback_is_read_from_its_plan():
    plan = avro_container.encode_container(
        "HoodieRollbackPlan.avsc",
        {"instantToRollback": {"commitTime": "20240102000000000", "action": "commit"}},
    )
    other = {
        ".hoodie/20240103000000000.rollback": b"",
        ".hoodie/20240103000000000.rollback.requested": plan,
    }
    made = block("20240102000000000", {"p": {"h": 7}})
    table = six(made, data=["20240103000000000.rollback"], other=other)

    assert {"p": {"f": 5, "g": 6, "h": 7}} == table.listed()


def test_rollbacks_are_not_read_when_every_block_is_known():
    data = ["20240102000000000.commit", "20240103000000000.rollback"]
    table = six(block("20240102000000000", {"p": {"h": 7}}), data=data)
    table.listed()

    assert [] == [path for path in table.read_paths if path.endswith(".rollback")]


def test_a_rollback_block_drops_the_earlier_blocks_of_its_target():
    header = [
        (HeaderKey.INSTANT_TIME, "20240103000000000006"),
        (HeaderKey.TARGET_INSTANT_TIME, "20240102000000000"),
        (HeaderKey.COMMAND_BLOCK_TYPE, "0"),
    ]
    blocks = [
        block("20240102000000000", {"p": {"h": 7}}),
        encode_block(BlockType.COMMAND, header, b""),
        block("20240102000000000", {"p": {"i": 8}}),
    ]
    table = six(*blocks, data=["20240102000000000.commit"])

    assert {"p": {"f": 5, "g": 6, "i": 8}} == table.listed()


def test_a_block_in_a_log_compaction_is_not_counted_twice():
    compacted = (HeaderKey.COMPACTED_BLOCK_TIMES, "20240102000000000,20240103000000000")
    blocks = [
        block("20240102000000000", {"p": {"h": 7}}),
        block("20240103000000000", {"p": {"h": None, "k": 1}}),
        block("20240103000000000005", {"p": {"i": 8}}, compacted),
    ]
    table = six(
        *blocks,
        own=[*SIX, "20240103000000000005.deltacommit"],
        data=["20240102000000000.commit", "20240103000000000.commit"],
    )

    assert {"p": {"f": 5, "g": 6, "i": 8}} == table.listed()


def test_a_base_file_of_a_compaction_that_is_not_completed_is_not_read():
    table = nine(("20240102000000000", block("20240102000000000", {"p": {"h": 7}})))
    table.files[f"{ROOT}/files/files-0000-0_1-0-0_20240103000000000.hfile"] = b"half"
    plan = avro_container.encode_container("HoodieCompactionPlan.avsc", {"operations": None})
    table.files[f"{ROOT}/.hoodie/timeline/20240103000000000.compaction.requested"] = plan

    assert {"p": {"f": 5, "g": 6, "h": 7}} == table.listed()


def test_logs_older_than_the_newest_base_file_are_ignored():
    table = nine(
        ("20240102000000000", block("20240102000000000", {"p": {"h": 7}})),
        ("20240104000000000", block("20240104000000000", {"p": {"i": 8}})),
    )
    newer = base({ALL: {"p": 1}, "p": {"g": 6}})
    table.files[f"{ROOT}/files/files-0000-0_1-0-0_20240103000000000.hfile"] = newer
    table.files[f"{ROOT}/.hoodie/timeline/20240103000000000_20240103000000009.commit"] = b""

    assert {"p": {"g": 6, "i": 8}} == table.listed()


def test_a_table_without_partitions_has_the_empty_path():
    files = {f"files-0000-0_0-0-0_{SOLO}.hfile": base({ALL: {".": 1}, ".": {"f": 5}})}
    table = Made(9, files=files, own=[f"{SOLO}_20240101000000000.deltacommit"])

    assert {"": {"f": 5}} == table.listed()


def test_a_listing_in_several_file_groups_is_refused():
    files = BORN | {f"files-0001-0_0-0-0_{SOLO}.hfile": base({"p": {}})}
    table = Made(9, files=files, own=[f"{SOLO}_20240101000000000.deltacommit"])

    with pytest.raises(UnsupportedError, match="has 2 file groups; only one is supported"):
        table.listed()


def test_a_block_without_an_instant_is_an_error():
    table = nine(("20240102000000000", encode_block(BlockType.HFILE_DATA, [], b"")))

    with pytest.raises(FormatError, match="log block at byte 0 has no instant"):
        table.listed()


def test_records_with_a_field_that_cannot_be_left_empty_are_not_written():
    fields = [*FIELDS, {"name": "news", "type": "int", "default": 0}]
    newer = json.dumps({"type": "record", "name": "r", "fields": fields})
    records = [(ALL, {"p": 1}), ("p", {"f": 5})]
    parsed = parse_schema(newer, "")
    content = hfile_writer.encode_hfile(
        [
            (
                key.encode(),
                encode_record(
                    {
                        "key": "",
                        "type": 2,
                        "news": 1,
                        "filesystemMetadata": {
                            n: {"size": s, "isDeleted": False} for n, s in names.items()
                        },
                    },
                    parsed,
                ),
            )
            for key, names in records
        ],
        newer,
    )
    table = Made(
        9,
        files={f"files-0000-0_0-0-0_{SOLO}.hfile": content},
        own=[f"{SOLO}_20240101000000000.deltacommit"],
        data=["20240104000000000.clean.requested"],
    )
    metadata = table.open()

    with pytest.raises(UnsupportedError, match="a field 'news' that this version"):
        plan_clean_sync(
            metadata,
            read_metadata_listing(metadata),
            instant="20240104000000000",
            completion_time="20240104000000001",
            removed_files={"p": ["f"]},
        )


def test_listings_differ_by_name_and_size():
    metadata = [("p", ["f", "ghost"], [1, 2]), ("empty", [], [])]
    storage = [("p", ["f", "new"], [9, 3])]

    assert (
        ListingDifference(partition="p", name="f", metadata_bytes=1, storage_bytes=9),
        ListingDifference(partition="p", name="ghost", metadata_bytes=2, storage_bytes=None),
        ListingDifference(partition="p", name="new", metadata_bytes=None, storage_bytes=3),
    ) == find_differences(metadata, storage)


def test_a_clean_has_a_verdict_for_every_partition_that_hudi_makes():
    live = [
        "files",
        "column_stats",
        "bloom_filters",
        "partition_stats",
        "record_index",
        "secondary_index_idx_n",
        "expr_index_day",
    ]
    verdicts = decide_sync(Action.CLEAN, live)

    assert sorted(live) == [*verdicts]
    assert ["files"] == [p for p, v in verdicts.items() if v.effect is SyncEffect.SYNC]
    assert ["bloom_filters", "column_stats"] == [
        p for p, v in verdicts.items() if v.effect is SyncEffect.TIDY
    ]
    assert all(verdict.because for verdict in verdicts.values())


def test_a_table_without_a_metadata_table_needs_nothing():

    assert {} == decide_sync(Action.CLEAN, [])


def test_an_unknown_metadata_partition_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="'vector_index_v' is unknown"):
        decide_sync(Action.CLEAN, ["files", "vector_index_v"])


def test_a_metadata_table_that_lists_no_files_is_refused():
    with pytest.raises(UnsupportedError, match="has column_stats but not files"):
        decide_sync(Action.CLEAN, ["column_stats"])


def test_a_clean_waits_for_an_index_build():
    with pytest.raises(BusyError, match="record_index are being built"):
        decide_sync(Action.CLEAN, ["files"], ["record_index"])


def test_a_clustering_needs_the_facts_of_its_files():
    with pytest.raises(UnsupportedError, match="after a clustering"):
        decide_sync(Action.CLUSTERING, ["files"])
