"""Read metadata tables of real Hudi and update them for a clean."""

from __future__ import annotations

import functools
import io
import json
import re
import zipfile
from pathlib import Path

import fastavro
import pytest

from reconciler.errors import FormatError, StaleError, UnsupportedError
from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.avro_container import encode_container
from reconciler.hudi.codecs.log_blocks import BlockType, read_blocks, read_delete_keys
from reconciler.hudi.metadata.clean_sync import plan_clean_sync
from reconciler.hudi.metadata.index_keys import build_stats_keys, split_by_file_group
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from tests.listing_differences import find_differences
from tests.memory_source import MemorySource
from tests.metadata_keys import read_index_keys, read_slice_keys
from tests.trees import is_data

TESTS = Path(__file__).parents[1]
NOW = "20270101000000000"
TABLES = {
    "v6_cow_part": 6,
    "v8_cdc_mor": 8,
    "v8_index": 8,
    "v8_mor_overlap_done": 8,
    "v8_mor_part": 8,
    "v9_cdc_mor": 9,
    "v9_cow_part": 9,
    "v9_index": 9,
    "v9_mor_overlap_done": 9,
    "v9_mor_part": 9,
}
CASES = {
    "cow_mdt_delete_partition__1.2.0": 9,
    "cow_mdt_delete_partition_cleaned__0.15.0": 6,
    "cow_mdt_incremental__0.15.0": 6,
    "cow_mdt_incremental__1.2.0": 9,
    "cow_mdt_rolled_back_partition__1.2.0": 9,
    "mor_mdt__1.2.0": 9,
}
ALL = pytest.mark.parametrize("name", [*TABLES, *CASES])


def archive_of(name):
    case = TESTS / f"cases/clean/{name}/table.zip"
    return zipfile.ZipFile(TESTS / f"tables/{name}.zip" if name in TABLES else case)


@functools.cache
def unzipped(name):
    """Return path -> bytes; data files, which are not opened, only have the right size."""
    with archive_of(name) as archive:
        files = {
            i.filename: bytes(i.file_size) if is_data(i.filename) else archive.read(i)
            for i in archive.infolist()
            if not i.is_dir()
        }
    root = min((n for n in files if n.endswith(".hoodie/hoodie.properties")), key=len)
    root = root.removesuffix(".hoodie/hoodie.properties")
    return {n.removeprefix(root): data for n, data in files.items() if not _is_crc(n)}


class Table(MemorySource):
    """A zipped table as a byte source; files can be added and removed in memory."""

    def __init__(self, name):
        self.version = {**TABLES, **CASES}[name]
        self.files = dict(unzipped(name))

    def data_timeline(self, *more):
        folder = ".hoodie/timeline" if self.version >= 8 else ".hoodie"
        names = [e.name for e in self.list(folder) if not e.is_folder]
        instants = [i for i in map(Instant.parse, names) if i] + [*more]
        return Timeline.from_files(TimelineFile(i, i.file_name, 1, 0) for i in instants)

    def metadata(self, *more):
        text = self.files[".hoodie/hoodie.properties"].decode()
        found = re.search(r"^hoodie\.table\.metadata\.partitions=(.*)$", text, re.MULTILINE)
        live = found[1].replace("\\", "").strip().split(",")
        data = self.data_timeline(*more)
        return open_metadata_table(self, version=self.version, data=data, live_partitions=live)

    def folders(self):
        """Return every partition's files without those of pending writes."""
        pending = [i.requested for i in self.data_timeline().instants if not i.is_completed]
        found = {}
        for path, data in self.files.items():
            folder, _, name = path.rpartition("/")
            if not path.startswith(".hoodie") and not any(p in name for p in pending):
                names = found.setdefault(folder, {})
                if not name.startswith(".hoodie_partition"):
                    names[name] = len(data)
        return [(folder, [*names], [*names.values()]) for folder, names in found.items()]


def _is_crc(path):
    return path.endswith(".crc") and path.rpartition("/")[2].startswith(".")


def listed(metadata):
    return {
        p: dict(zip(n, s, strict=True))
        for p, n, s in read_metadata_listing(metadata).read_folders()
    }


@ALL
def test_the_listing_equals_the_folders(name):
    table = Table(name)
    listing = read_metadata_listing(table.metadata())

    assert () == find_differences(listing.read_folders(), table.folders())
    assert {path for path, names, _ in table.folders() if names} <= set(listing.partitions)
    assert [*listing.partitions] == [path for path, _names, _sizes in listing.read_folders()]


@ALL
def test_a_few_partitions_are_listed_as_among_all(name):
    listing = read_metadata_listing(Table(name).metadata())
    everything = list(listing.read_folders())

    for folder in everything:
        assert [folder] == list(listing.read_folders([folder[0], "no such partition"]))
    assert [] == list(listing.read_folders([]))


@ALL
def test_every_hfile_gives_all_keys_also_one_by_one(name):
    table = Table(name)
    contents = [data for path, data in table.files.items() if path.endswith(".hfile")]
    for path, data in table.files.items():
        if path.startswith(".hoodie/metadata/") and ".log." in path:
            blocks = read_blocks(data, path)
            contents += [b.content for b in blocks if b.type is BlockType.HFILE_DATA]

    assert contents
    for content in contents:
        file = hfile_reader.parse_hfile(content, "f")
        cells = list(file.scan_all())

        assert sorted(cells) == cells
        assert dict(cells) == file.get([*dict(cells), b"", b"\xff"])
        assert file.info[b"hfile.LASTKEY"][2:].startswith(cells[-1][0])


def test_a_changed_byte_in_an_hfile_of_hbase_is_noticed():
    data = next(d for p, d in Table("v6_cow_part").files.items() if p.endswith(".hfile"))
    for at in range(0, data.find(b"METABLKc"), 7):
        with pytest.raises(FormatError):
            list(
                hfile_reader.parse_hfile(
                    data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "f"
                ).scan_all()
            )


class Clean:
    """A clean that removes one file of every partition and all files of the last one."""

    def __init__(self, name):
        self.table = Table(name)
        self.pending = Instant(NOW, Action.CLEAN, State.INFLIGHT)
        self.before = listed(self.table.metadata(self.pending))
        self.removed = {path: [min(names)] for path, names in self.before.items() if names}
        self.folder = max(self.before)

    def plan(self):
        metadata = self.table.metadata(self.pending)
        return plan_clean_sync(
            metadata,
            read_metadata_listing(metadata),
            instant=NOW,
            completion_time="20270101000000005",
            removed_files=self.removed,
            removed_partitions=[self.folder],
        )

    def after(self):
        time = "20270101000000009" if self.table.version >= 8 else None
        done = Instant(NOW, Action.CLEAN, State.COMPLETED, time)
        return listed(self.table.metadata(self.pending, done))

    def expected(self):
        return {
            path: {n: size for n, size in names.items() if n not in self.removed.get(path, ())}
            for path, names in self.before.items()
            if path != self.folder
        }


@ALL
def test_removed_files_are_unlisted_once_the_clean_completes(name):
    clean = Clean(name)
    sync = clean.plan()

    assert () == sync.cleanup
    for write in sync.writes:
        assert write.path not in clean.table.files
        clean.table.files[write.path] = write.data
        assert clean.before == listed(clean.table.metadata(clean.pending))
    assert clean.expected() == clean.after()


@ALL
def test_a_second_attempt_removes_what_the_first_left(name):
    count = len(Clean(name).plan().writes)
    for done in range(count + 1):
        clean = Clean(name)
        for write in clean.plan().writes[:done]:
            clean.table.files[write.path] = write.data
        second = clean.plan()
        for path in second.cleanup:
            del clean.table.files[path]
        for write in second.writes:
            assert write.path not in clean.table.files
            clean.table.files[write.path] = write.data
        timeline = clean.table.metadata().timeline.files

        assert ((done, count) if done < count else (0, 0)) == (
            len(second.cleanup),
            len(second.writes),
        )
        assert clean.expected() == clean.after()
        assert 3 == sum(file.instant.requested == NOW for file in timeline)


@ALL
def test_a_larger_second_attempt_removes_a_completed_one(name):
    clean = Clean(name)
    everything, clean.removed = clean.removed, {}
    folder, clean.folder = clean.folder, "no such partition"
    clean.removed = dict([min(everything.items())])
    for write in clean.plan().writes:
        clean.table.files[write.path] = write.data
    clean.removed, clean.folder = everything, folder
    sync = clean.plan()
    states = [path.rpartition(".")[2] for path in sync.cleanup]

    assert ["deltacommit", "inflight", "requested"] == [states[0], *states[-2:]]
    assert all(".log." in path for path in sync.cleanup[1:-2])
    for path in sync.cleanup:
        del clean.table.files[path]
    for write in sync.writes:
        clean.table.files[write.path] = write.data
    assert clean.expected() == clean.after()


def _is_indexed(name):
    with archive_of(name) as archive:
        return any("/column_stats/" in path for path in archive.namelist())


INDEXED = [name for name in [*TABLES, *CASES] if _is_indexed(name)]


@pytest.mark.parametrize("name", INDEXED)
def test_column_stats_lose_the_entries_of_removed_files_only(name):
    clean = Clean(name)
    clean.removed[clean.folder] = [*clean.before[clean.folder]]
    before = read_index_keys(clean.table.metadata(clean.pending), "column_stats")
    definitions = json.loads(clean.table.files[".hoodie/.index_defs/index.json"])
    columns = definitions["indexDefinitions"]["column_stats"]["sourceFields"]
    gone = {
        key
        for path, names in clean.removed.items()
        for key in build_stats_keys(columns, path or ".", names)
    }
    sync = clean.plan()
    for write in sync.writes:
        clean.table.files[write.path] = write.data
    clean.after()
    done = Instant(NOW, Action.CLEAN, State.COMPLETED, "20270101000000009")
    after = read_index_keys(clean.table.metadata(clean.pending, done), "column_stats")

    assert gone & before
    assert before - gone == after


def test_index_keys_equal_those_of_hudi():
    hudis = read_index_keys(Table("v9_index").metadata(), "column_stats")
    definitions = json.loads(unzipped("v9_index")[".hoodie/.index_defs/index.json"])
    columns = definitions["indexDefinitions"]["column_stats"]["sourceFields"]
    ours = {
        key
        for path, names, _sizes in Table("v9_index").folders()
        for key in build_stats_keys(columns, path, names)
    }

    assert hudis == ours


@pytest.mark.parametrize("version", [8, 9])
def test_keys_go_to_the_file_groups_where_hudi_put_them(version):
    metadata = Table(f"v{version}_index").metadata()
    slices = metadata.list_slices("column_stats")
    everything = sorted(read_index_keys(metadata, "column_stats"))

    assert len(slices) > 1
    for one, keys in zip(slices, split_by_file_group(everything, len(slices)), strict=True):
        assert sorted(read_slice_keys(metadata, one)) == keys


@ALL
def test_the_commit_counts_the_records_of_its_log_files(name):
    *_pending, completed = (writes := Clean(name).plan().writes)
    logs = {write.path: write.data for write in writes if ".log." in write.path}
    if name.endswith("0.15.0") or name.startswith("v6"):
        record = json.loads(completed.data)
    else:
        record = next(iter(fastavro.reader(io.BytesIO(completed.data))))
    stats = [stat for some in record["partitionToWriteStats"].values() for stat in some]

    assert {*logs} == {f".hoodie/metadata/{stat['path']}" for stat in stats}
    for stat in stats:
        data = logs[f".hoodie/metadata/{stat['path']}"]
        block, *again = read_blocks(data, "f")
        if block.type is BlockType.DELETE:
            counted = (0, len(read_delete_keys(block)))
        else:
            counted = (len(list(hfile_reader.parse_hfile(block.content, "f").scan_all())), 0)

        assert block.type is BlockType.HFILE_DATA or not again
        assert counted == (stat["numWrites"], stat["numDeletes"])
        assert len(data) == stat["fileSizeInBytes"] == stat["totalWriteBytes"]
        assert stat["logFiles"][-1] == stat["path"].rpartition("/")[2]
        assert "UPSERT_PREPPED" == record["operationType"]


@pytest.mark.parametrize("name", INDEXED)
def test_without_index_definitions_stale_statistics_stay(name):
    clean = Clean(name)
    del clean.table.files[".hoodie/.index_defs/index.json"]

    assert 4 == len(clean.plan().writes)


def test_damaged_index_definitions_are_an_error():
    clean = Clean("v9_index")
    clean.table.files[".hoodie/.index_defs/index.json"] = b"{"

    with pytest.raises(FormatError, match="index definitions cannot be decoded"):
        clean.plan()


def test_commits_are_encoded_as_hudi_encodes_them():
    for path, data in unzipped("v9_cow_part").items():
        if path.startswith(".hoodie/metadata/.hoodie/timeline/") and path.endswith("commit"):
            record = next(iter(fastavro.reader(io.BytesIO(data))))
            ours = encode_container("HoodieCommitMetadata.avsc", record)

            assert without_marker(data) == without_marker(ours)


def without_marker(data):
    return data.replace(data[-16:], b"")


@pytest.mark.parametrize("name", ["v6_cow_part", "v9_cow_part"])
def test_nothing_is_written_for_files_that_are_not_listed(name):
    clean = Clean(name)
    clean.removed, clean.folder = {"p0": ["no such file"], "no such partition": ["f"]}, "nor this"
    sync = clean.plan()

    assert ((), ()) == (sync.cleanup, sync.writes)


def test_a_clean_that_is_not_on_the_timeline_is_refused():
    table = Table("v9_cow_part")
    metadata = table.metadata()

    with pytest.raises(StaleError, match=r"20270101000000000\.clean is not pending"):
        plan_clean_sync(
            metadata,
            read_metadata_listing(metadata),
            instant=NOW,
            completion_time=NOW,
            removed_files={},
        )


def test_version_6_names_its_log_after_a_pending_compaction():
    clean = Clean("cow_mdt_incremental__0.15.0")
    source = Table("v6_cow_part")
    plan = next(p for p in source.files if p.endswith("compaction.requested") and "metadata" in p)
    time = "20261231000000000001"
    clean.table.files[f".hoodie/metadata/.hoodie/{time}.compaction.requested"] = source.files[plan]
    sync = clean.plan()

    assert f".hoodie/metadata/files/.files-0000-0_{time}.log.1_0-0-0" == sync.writes[2].path
    for write in sync.writes:
        clean.table.files[write.path] = write.data
    assert clean.expected() == clean.after()


def test_a_log_file_of_two_instants_cannot_be_removed():
    clean = Clean("v6_cow_part")
    for write in clean.plan().writes:
        clean.table.files[write.path] = write.data
    log = next(p for p in clean.table.files if p.endswith(".log.3_0-0-0"))
    other = next(p for p in clean.table.files if ".files-0000-0_20261121044617342001.log.1_" in p)
    clean.table.files[log] += clean.table.files[other]
    clean.removed = {}

    with pytest.raises(UnsupportedError, match="holds blocks of 20270101000000000 and of other"):
        clean.plan()


@ALL
def test_a_missing_metadata_table_is_an_error(name):
    table = Table(name)
    data = table.data_timeline()
    table.files = {p: d for p, d in table.files.items() if not p.startswith(".hoodie/metadata")}

    with pytest.raises(FormatError, match="has its timeline here"):
        open_metadata_table(table, version=table.version, data=data)


def test_another_table_version_is_refused():
    with pytest.raises(UnsupportedError, match="table version 7 is not supported"):
        open_metadata_table(Table("v8_index"), version=7, data=Timeline.from_files([]))


def test_a_missing_files_partition_is_an_error():
    table = Table("v9_index")
    metadata = table.metadata()
    table.files = {p: d for p, d in table.files.items() if "/metadata/files/" not in p}

    with pytest.raises(FormatError, match="it has no file group"):
        read_metadata_listing(metadata)


@pytest.mark.parametrize("name", ["v6_cow_part", "v8_index", "v9_cow_part"])
def test_a_damaged_file_is_an_error_with_its_path_or_as_if_cut_off(name):
    table = Table(name)
    metadata = table.metadata()
    for path, data in list(table.files.items()):
        if not path.startswith(".hoodie/metadata/files/"):
            continue
        for cut in range(1, len(data), max(1, len(data) // 23)):
            table.files[path] = data[:-cut]
            if path.endswith(".hfile"):
                try:
                    listed(metadata)
                except FormatError as problem:
                    assert path == problem.path  # noqa: PT017 - older slices are not read
            else:
                listed(metadata)  # Hudi ignores a truncated block too
        table.files[path] = data
