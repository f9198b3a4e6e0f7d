"""Real Hudi goes on with a table whose clean, metadata table included, was written without it."""

from __future__ import annotations

import io
import json
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import fastavro
import pytest

from reconciler.hudi.metadata.clean_sync import plan_clean_sync
from reconciler.hudi.metadata.index_keys import build_bloom_keys, build_stats_keys
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.storage.open import open_storage
from tests.metadata_keys import read_index_keys
from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.hudi import COMPACT_METADATA, INDEXES, directory_listing, keep_commits
from tests.oracle.prepared_tables import Variant
from tests.selection import long, take_turns

pytestmark = pytest.mark.oracle
SCHEMAS = Path(__file__).parents[2] / "reconciler/hudi/schemas"
VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
RECORD_INDEX = {"hoodie.index.type": "RECORD_INDEX"}


def container(name, record):
    data = io.BytesIO()
    schema = json.loads(next(SCHEMAS.glob(f"{name}.*")).read_text())
    fastavro.writer(data, schema, [record])
    return data.getvalue()


def after(instant, milliseconds):
    form = "%Y%m%d%H%M%S"
    time = datetime.strptime(instant[:14], form) + timedelta(milliseconds=int(instant[14:17]))  # noqa: DTZ007
    time += timedelta(milliseconds=milliseconds)
    return time.strftime(form) + f"{time.microsecond // 1000:03d}"


def old_files(table):
    """All but the newest base file of every file group and the logs behind it; all of c."""
    old = {}
    for partition, names in directory_listing(table.path).items():
        bases = sorted((n for n in names if ".log." not in n), key=lambda n: n.rsplit("_", 1)[1])
        newest = {name.split("_")[0]: name for name in bases}
        gone = [n for n in bases if partition == "c" or n != newest[n.split("_")[0]]]
        if gone:
            old[partition] = gone
    return old


class NativeClean:
    """A clean of old files, step by step as an apply would go."""

    def __init__(self, table, version):
        self.table, self.version = table, version
        self.files = old_files(table)
        self.instant = after(table.last_instant(), 1)
        retain = {
            "timestamp": self.instant,
            "action": "commit",
            "state": "COMPLETED",
        }
        plan = {
            "earliestInstantToRetain": retain,
            "lastCompletedCommitTimestamp": table.last_instant(),
            "policy": "KEEP_LATEST_COMMITS",
            "filesToBeDeletedPerPartition": {},
            "version": 2,
            "filePathsToBeDeletedPerPartition": {
                partition: [
                    {"filePath": f"{table.path}/{partition}/{n}", "isBootstrapBaseFile": False}
                    for n in names
                ]
                for partition, names in self.files.items()
            },
            "partitionsToBeDeleted": [],
            "extraMetadata": {},
        }
        for state in (State.REQUESTED, State.INFLIGHT):
            self._put(
                Instant(self.instant, Action.CLEAN, state), container("HoodieCleanerPlan", plan)
            )

    def _put(self, instant, data):
        (self.table.timeline / instant.file_name).write_bytes(data)

    def newest(self):
        """The greatest time on either timeline."""
        metadata = self.table.path / ".hoodie/metadata/.hoodie"
        folders = [self.table.timeline, metadata / "timeline" if self.version >= 8 else metadata]
        names = [entry.name for folder in folders for entry in folder.glob("[0-9]*")]
        return max(time for name in names for time in re.findall(r"\d{17}", name))

    def delete(self):
        for partition, names in self.files.items():
            for name in names:
                (self.table.path / partition / name).unlink()
                (self.table.path / partition / f".{name}.crc").unlink(missing_ok=True)
        if "c" in self.files:
            shutil.rmtree(self.table.path / "c")

    def metadata(self):
        storage = open_storage(str(self.table.path))
        files = [
            TimelineFile(instant, name, 0, 0)
            for name in self.table.instants()
            if (instant := Instant.parse(name))
        ]
        return open_metadata_table(
            storage,
            version=self.version,
            data=Timeline.from_files(files),
            live_partitions=self.table.metadata_partitions(),
        )

    def sync(self):
        metadata = self.metadata()
        return metadata.source, plan_clean_sync(
            metadata,
            read_metadata_listing(metadata),
            instant=self.instant,
            completion_time=after(self.newest(), 1),
            removed_files=self.files,
            removed_partitions=["c"] if "c" in self.files else [],
        )

    def complete(self):
        done = after(self.newest(), 2) if self.version >= 8 else None
        record = {
            "startCleanTime": self.instant,
            "timeTakenInMillis": 1,
            "totalFilesDeleted": sum(map(len, self.files.values())),
            "earliestCommitToRetain": self.instant,
            "lastCompletedCommitTimestamp": "",
            "partitionMetadata": {
                partition: {
                    "partitionPath": partition,
                    "policy": "KEEP_LATEST_COMMITS",
                    "deletePathPatterns": names,
                    "successDeleteFiles": names,
                    "failedDeleteFiles": [],
                    "isPartitionDeleted": partition == "c",
                }
                for partition, names in self.files.items()
            },
            "version": 2,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": {},
        }
        instant = Instant(self.instant, Action.CLEAN, State.COMPLETED, done)
        self._put(instant, container("HoodieCleanMetadata", record))


def write_cleanable_files(hudi, path, variant):
    """Write a table with something to clean."""
    kind = variant.name
    options = INDEXES | RECORD_INDEX if kind == "indexes" else {}
    merge_on_read, partitioned = kind == "merge-on-read", kind != "unpartitioned"
    table = hudi.table(path, merge_on_read=merge_on_read, partitioned=partitioned, options=options)
    hudi.write(table, [("a1", "a", 1), ("a2", "a", 1), ("b1", "b", 1), ("c1", "c", 1)])
    for ts in (2, 3):
        hudi.write(table, [("a1", "a", ts), ("b1", "b", ts)])
        if merge_on_read:
            hudi.compact(table, hudi.schedule(table, "COMPACT"))
    if kind == "compacted":
        # partition c is in the base file, and in the log blocks over it
        hudi.write(table, [("a3", "a", 3)], options=COMPACT_METADATA)
        hudi.write(table, [("a3", "a", 4)], options=COMPACT_METADATA)
        hudi.write(table, [("c1", "c", 4)])
    if partitioned:
        hudi.delete_partition(table, "c")
    hudi.write(table, [("a1", "a", 4), ("b2", "b", 4)])
    return table


@pytest.fixture
def made(library):
    """``made(version, kind, path)``: a copy of a table with something to clean."""

    def copy(version, kind, path):
        return library.table(Variant(version=version, name=kind), path, write_cleanable_files)

    return copy


KINDS = ("default", "indexes", "merge-on-read", "unpartitioned", "compacted")


def stale_keys(clean):
    """Keys that the indexes still hold of the removed files."""
    metadata, found = clean.metadata(), set()
    removed = [(path or ".", names) for path, names in clean.files.items()]
    if "column_stats" in metadata.live_partitions:
        columns = ["_hoodie_commit_time", "_hoodie_record_key", "id", "p", "ts", "x", "n"]
        keys = read_index_keys(metadata, "column_stats")
        found |= {k for p, n in removed for k in build_stats_keys(columns, p, n) if k in keys}
    if "bloom_filters" in metadata.live_partitions:
        keys = read_index_keys(metadata, "bloom_filters")
        found |= {k for p, n in removed for k in build_bloom_keys(p, n) if k in keys}
    return found


def assert_right(hudi, table, rows):
    listing = directory_listing(table.path)

    assert listing == hudi.listing(table)
    assert rows == hudi.rows(table) == hudi.rows(table, metadata=True)
    assert hudi.rows(table, where="n > 3") == hudi.rows(table, where="n > 3", metadata=True)


#: each release with what differs there, and each kind with version 6 and with a later one:
#: versions 8 and 9 have the same files without partitions, what Hudi does by default is in their
#: indexes too, and of version 9 one release is enough for what the indexes do not change
USUAL = {
    "0.15.0": ("indexes", "merge-on-read", "unpartitioned", "compacted"),
    "1.0.2": ("merge-on-read",),
    "1.1.1": ("indexes",),
    "1.2.0": ("indexes", "unpartitioned", "compacted"),
}
LISTED = [
    (version, kind) if kind in USUAL[version] else long(version, kind)
    for version in VERSIONS
    for kind in KINDS
]


@pytest.mark.parametrize(("version", "kind"), LISTED)
def test_hudi_lists_reads_writes_compacts_and_cleans_on(made, tmp_path, version, kind):
    hudi, table = made(version, kind, tmp_path / "t")
    rows = hudi.rows(table)
    clean = NativeClean(table, TABLE_VERSION[version])
    clean.delete()
    stale = stale_keys(clean)
    storage, sync = clean.sync()
    for write in sync.writes:
        storage.create(write.path, write.data)
    clean.complete()

    assert () == sync.cleanup
    assert bool(stale) == (
        {"column_stats", "bloom_filters"} & {*table.metadata_partitions()} != set()
    )
    assert (set() if clean.version >= 8 else stale) == stale_keys(clean)
    assert_right(hudi, table, rows)

    for ts in (5, 6):
        hudi.write(table, [("a1", "a", ts), ("b1", "b", ts)], options=COMPACT_METADATA)
        rows = hudi.rows(table)

        assert 3 <= len(rows) <= 6
        assert ts == rows[0][2]
        assert_right(hudi, table, rows)

    hudi.clean(table, keep_commits(1))

    assert_right(hudi, table, rows)
    assert (set() if clean.version >= 8 else stale) == stale_keys(clean)


@pytest.mark.parametrize(("done", "version"), take_turns(range(5), ["0.15.0", "1.2.0"]))
def test_hudi_finishes_a_clean_that_stopped_in_the_metadata_table(made, tmp_path, version, done):
    hudi, table = made(version, "default", tmp_path / "t")
    rows = hudi.rows(table)
    clean = NativeClean(table, TABLE_VERSION[version])
    clean.delete()
    storage, sync = clean.sync()
    for write in sync.writes[:done]:
        storage.create(write.path, write.data)
    hudi.clean(table, keep_commits(10))

    assert 1 == len([n for n in table.instants(".clean") if n.startswith(clean.instant)])
    listing = hudi.listing(table)
    shown = {path: names for path, names in listing.items() if names}
    assert shown == directory_listing(table.path)
    assert rows == hudi.rows(table) == hudi.rows(table, metadata=True)


@pytest.mark.parametrize(("done", "version"), take_turns([1, 3, 4], ["0.15.0", "1.2.0"]))
def test_a_second_attempt_after_a_write_of_hudi_is_as_good(made, tmp_path, version, done):
    hudi, table = made(version, "default", tmp_path / "t")
    clean = NativeClean(table, TABLE_VERSION[version])
    clean.delete()
    storage, sync = clean.sync()
    for write in sync.writes[:done]:
        storage.create(write.path, write.data)
    # Hudi rolls back what is pending on the metadata table's timeline
    hudi.write(table, [("a1", "a", 5)])
    rows = hudi.rows(table)
    storage, again = clean.sync()
    storage.delete_many(again.cleanup)
    for write in again.writes:
        storage.create(write.path, write.data)
    clean.complete()

    assert_right(hudi, table, rows)
    hudi.write(table, [("a1", "a", 6)], options=COMPACT_METADATA)
    hudi.write(table, [("a1", "a", 7)], options=COMPACT_METADATA)
    assert_right(hudi, table, hudi.rows(table))


@pytest.mark.parametrize(("done", "version"), take_turns(range(5), ["1.2.0", "0.15.0"]))
def test_a_second_attempt_is_as_good_as_one(made, tmp_path, version, done):
    hudi, table = made(version, "default", tmp_path / "t")
    rows = hudi.rows(table)
    clean = NativeClean(table, TABLE_VERSION[version])
    clean.delete()
    storage, sync = clean.sync()
    for write in sync.writes[:done]:
        storage.create(write.path, write.data)
    storage, again = clean.sync()
    storage.delete_many(again.cleanup)
    for write in again.writes:
        storage.create(write.path, write.data)
    clean.complete()
    hudi.write(table, [("a9", "a", 9)], options=COMPACT_METADATA)

    assert (done if done < len(sync.writes) else 0) == len(again.cleanup)
    assert directory_listing(table.path) == hudi.listing(table)
    assert len(rows) + 1 == len(hudi.rows(table)) == len(hudi.rows(table, metadata=True))
