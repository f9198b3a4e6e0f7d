"""The state of tables that real Hudi wrote: as they are, crashed, moving while they are read."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import (
    BlockedError,
    FormatError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.observe import observe
from reconciler.storage.api import StorageEntry
from reconciler.storage.open import open_storage
from reconciler.storage.read_only import ReadOnlyStorage
from tests.storage_wrappers import RecordingStorage
from tests.trees import unpack

TABLES = Path(__file__).parent
ANSWERED = sorted(path.name.removesuffix(".expected.json") for path in TABLES.glob("*.json"))
#: with a metadata table
LIVE = [
    "v6_cow_part",
    "v8_index",
    "v8_mor_overlap_done",
    "v8_mor_part",
    "v9_cow_part",
    "v9_mor_part",
]
GROUP = re.compile(r"partitionPath='?([^,']*)'?, fileId='?([^'})]*)")


@pytest.fixture
def unpacked(tmp_path):
    """Unpacks a table and gives its folder."""
    return lambda name: unpack(TABLES / f"{name}.zip", tmp_path, hollow=True) / name


def seen(root, **kwargs):
    return observe(open_storage(str(root)), None, observed_ms=7, **kwargs)


def rows(state):
    files = state.files
    partitions = [files.partitions[code] for code in files.partition.tolist()]
    return set(zip(partitions, files.name.to_pylist(), files.size.tolist(), strict=True))


def timeline_of(root):
    modern = root / ".hoodie" / "timeline"
    return modern if modern.is_dir() else root / ".hoodie"


def the(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def record(path):
    (found,) = fastavro.reader(io.BytesIO(path.read_bytes()))
    return found


def listed(root):
    """Every data file of a table by partition, name and size, without ``.crc`` and metafiles."""
    found = set()
    for path in root.rglob("*"):
        name = path.name
        inside = path.relative_to(root).parts[0] != ".hoodie" and path.is_file()
        if inside and not name.endswith(".crc") and not name.startswith(".hoodie_partition"):
            partition = path.parent.relative_to(root).as_posix()
            found.add(("" if partition == "." else partition, name, path.stat().st_size))
    return found


@pytest.mark.parametrize("name", ANSWERED)
def test_the_files_are_those_on_disk_and_the_pending_work_is_hudis(name, unpacked):
    root = unpacked(name)
    view = json.loads((TABLES / f"{name}.expected.json").read_text()).get("fsview") or {}
    state = seen(root)

    assert listed(root) == rows(state)
    assert set(state.partitions) == state.metafile_partitions
    ours = {(c.instant, c.partition, c.file_id) for c in state.compactions}
    assert {
        (time, *GROUP.search(group).groups()) for time, group in view["pending_compaction"]
    } == ours
    ours = {(c.partition, c.file_id) for c in state.clusterings}
    assert {GROUP.search(group).groups() for group, _ in view["pending_clustering"]} == ours
    assert 7 == state.observed_ms


@pytest.mark.parametrize("name", LIVE)
def test_the_metadata_table_lists_what_is_committed(name, unpacked):
    root = unpacked(name)
    by_storage, by_metadata = seen(root), seen(root, listing="metadata")
    pending = {i.requested for i in by_storage.timeline.writes if not i.is_completed}

    assert by_storage.partitions == by_metadata.partitions
    assert rows(by_metadata) <= rows(by_storage)
    for _, file, _ in rows(by_storage) - rows(by_metadata):
        assert any(time in file for time in pending)


@pytest.mark.parametrize("name", ["v6_cow_part", "v8_mor_nopart", "v9_cow_part"])
def test_a_savepoint_pins_what_its_file_names_and_a_half_made_one_says_so(name, unpacked):
    root = unpacked(name)
    path = the(timeline_of(root), "*.savepoint")
    pinned = record(path)["partitionMetadata"].values()
    files = frozenset(file for found in pinned for file in found["savepointDataFile"])
    (whole,) = seen(root).savepoints
    path.unlink()
    (half,) = seen(root).savepoints

    assert files
    assert (True, files) == (whole.completed, whole.files)
    assert (False, frozenset(), whole.instant) == (half.completed, half.files, half.instant)


@pytest.mark.parametrize("name", ["v6_cow_part", "v9_cow_part"])
def test_a_clean_is_known_completed_blank_pending_and_broken(name, unpacked):
    root = unpacked(name)
    folder = timeline_of(root)
    path, requested = the(folder, "*.clean"), the(folder, "*.clean.requested")
    plan, said = record(requested), record(path)
    planned = {
        partition: tuple(Path(file["filePath"]).name for file in files)
        for partition, files in plan["filePathsToBeDeletedPerPartition"].items()
    }

    (clean,) = seen(root).cleans
    assert said["earliestCommitToRetain"] == clean.earliest_instant_to_retain
    assert said["lastCompletedCommitTimestamp"] == clean.last_completed_commit
    assert (False, "KEEP_LATEST_COMMITS") == (clean.is_blank, clean.policy)
    removed = {p: tuple(m["successDeleteFiles"]) for p, m in said["partitionMetadata"].items()}
    assert {p: files for p, files in removed.items() if files} == clean.removed

    path.write_bytes(b"")
    (clean,) = seen(root).cleans
    assert (True, "", {}) == (clean.is_blank, clean.earliest_instant_to_retain, clean.removed)
    assert planned == clean.planned
    content = requested.read_bytes()
    requested.write_bytes(content[:-1])
    assert {} == seen(root).cleans[0].planned
    requested.write_bytes(content)

    path.unlink()
    os.utime(the(folder, "2*.clean.inflight"))
    (pending,) = seen(root).pending_cleans
    assert ("INFLIGHT", None, planned) == (pending.state, pending.problem, pending.files)
    assert plan["earliestInstantToRetain"]["timestamp"] == pending.earliest_instant_to_retain
    newest = max(file.stat().st_mtime for file in folder.glob("2*.clean.*"))
    assert newest - 1 < pending.started_ms / 1000 <= newest

    whole = requested.read_bytes()
    requested.write_bytes(b"")
    (pending,) = seen(root).pending_cleans
    assert ("its requested file is empty", {}) == (pending.problem, pending.files)

    requested.write_bytes(whole[:-1])
    (pending,) = seen(root).pending_cleans
    assert requested.name in pending.problem

    requested.unlink()
    (pending,) = seen(root).pending_cleans
    assert ("its requested file is missing", {}) == (pending.problem, pending.files)


@pytest.mark.parametrize("name", ["v6_cow_part", "v9_cow_part"])
def test_the_latest_replacecommit_of_a_group_counts_and_a_pending_one_does_not(name, unpacked):
    root = unpacked(name)
    expected = {}
    for path in sorted(timeline_of(root).glob("*.replacecommit")):
        data = path.read_bytes()
        said = json.loads(data) if data[:1] == b"{" else record(path)
        for partition, ids in said["partitionToReplaceFileIds"].items():
            time = re.match(r"\d+", path.name)[0]
            expected |= {(partition, file_id): time for file_id in ids}
    state = seen(root)
    assert expected == state.replaced

    (time,) = {given.instant for given in state.clusterings}
    inputs = {(given.partition, given.file_id) for given in state.clusterings}
    assert time not in state.replaced.values()
    assert inputs.isdisjoint(state.replaced)
    assert {c.base_file for c in state.clusterings} <= {file for _, file, _ in rows(state)}


def test_a_table_in_the_middle_of_a_restore_is_refused(unpacked):
    root = unpacked("v6_restore_pending")

    with pytest.raises(BlockedError, match=r"20261121045129153.*finish it with Hudi"):
        seen(root)


class Moving(ReadOnlyStorage):
    """A timeline that lists a file which is archived before it can be read, ``times`` times."""

    def __init__(self, inner, folder, name, times):
        super().__init__(inner)
        self._folder, self._ghost, self.left = (
            folder,
            StorageEntry(name, 9, 0, is_folder=False),
            times,
        )

    def list(self, folder):
        entries = super().list(folder)
        if folder == self._folder and self.left:
            self.left -= 1
            return [*entries, self._ghost]
        return entries


@pytest.mark.parametrize("name", ["v6_cow_part", "v9_cow_part"])
def test_a_timeline_that_moves_is_read_again(name, unpacked):
    root = unpacked(name)
    folder = timeline_of(root).relative_to(root).as_posix()
    ghost = "20261121044000000.replacecommit"
    storage = Moving(open_storage(str(root)), folder, ghost, times=2)
    state = observe(storage, None, observed_ms=0)

    assert 0 == storage.left
    assert seen(root).timeline == state.timeline


def test_a_timeline_that_never_rests_is_one_clear_error(unpacked):
    root = unpacked("v9_cow_part")
    ghost = "20261121044000000_20261121044000001.replacecommit"
    storage = Moving(open_storage(str(root)), ".hoodie/timeline", ghost, times=1000)

    with pytest.raises(StorageError, match=f"{ghost}.*run again") as caught:
        observe(storage, None, observed_ms=0)

    assert not isinstance(caught.value, NotFoundError)


@pytest.mark.parametrize("name", ["v6_cow_part", "v9_cow_part"])
def test_what_lies_about_is_not_looked_at(name, unpacked):
    root = unpacked(name)
    before, base = seen(root), min((root / "p0").glob("*.parquet"))
    for folder, metafile in (("p0/x", True), ("stray/deep", False), (".hoodie/p9", True)):
        (root / folder).mkdir(parents=True)
        shutil.copy(base, root / folder)
        if metafile:
            (root / folder / ".hoodie_partition_metadata").write_bytes(b"")
    (root / "p0" / "notes.txt").write_bytes(b"x")
    timeline = timeline_of(root)
    for junk in (
        "20261121055555555.commit.6f7b3a71-31e5-4c46-b329-a84dbac6e0aa",
        ".20261121055555555.commit.crc",
        "notes",
    ):
        (timeline / junk).write_bytes(b"x")
    (timeline / "20261121055555555.commit").mkdir()
    after = seen(root)

    assert before.timeline == after.timeline
    assert before.partitions == after.partitions
    assert rows(before) == rows(after)


class Flat(ReadOnlyStorage):
    """A store that knows no folders: it asks about all of them before it gives the first."""

    def walk(self, descend):
        return iter(sorted(super().walk(descend), key=lambda folder: folder.path))


@pytest.mark.parametrize("name", ["v9_cow_part", "v9_cow_nopart"])
def test_a_flat_store_has_the_same_partitions(name, unpacked):
    root = unpacked(name)
    before = seen(root)
    metafile = next(root.rglob(".hoodie_partition_metadata"))
    for folder in ("x", "x/y"):
        below = metafile.parent / folder
        below.mkdir()
        shutil.copy(min(metafile.parent.glob("*.parquet")), below)
        shutil.copy(metafile, below)
    after = observe(Flat(open_storage(str(root))), None, observed_ms=0)

    assert before.metafile_partitions == after.metafile_partitions
    assert rows(before) == rows(after)


def test_an_action_that_nobody_knows_is_refused(unpacked):
    root = unpacked("v9_cow_part")
    (timeline_of(root) / "20261121055555555_20261121055555556.teleport").write_bytes(b"")

    with pytest.raises(UnsupportedError, match="teleport"):
        seen(root)


def is_update(stat):
    return stat["prevCommit"] not in (None, "null")


def incremental(root):
    retention = Retention(policy=Policy.COMMITS, keep=1, scan="incremental")
    return TableSpec(name="t", path=str(root), retention=retention)


@pytest.mark.parametrize("name", ["v6_cow_part", "v9_cow_part", "v8_mor_part", "v9_mor_part"])
def test_an_incremental_scan_knows_what_writes_since_the_last_clean_touched(name, unpacked):
    root = unpacked(name)
    every = touched_by_writes(root, is_mor="mor" in name)
    since = record(the(timeline_of(root), "*.clean"))["earliestCommitToRetain"]
    retained_since(root, since := min(every | {since: None}))
    state = observe(open_storage(str(root)), incremental(root), observed_ms=0)
    assert every == state.touched_partitions

    retained_since(root, since := sorted(every)[-2])
    state = observe(open_storage(str(root)), incremental(root), observed_ms=0)
    assert {
        time: paths for time, paths in every.items() if time >= since
    } == state.touched_partitions
    assert None is seen(root).touched_partitions

    retained_since(root, "")
    assert (
        None
        is observe(open_storage(str(root)), incremental(root), observed_ms=0).touched_partitions
    )


def touched_by_writes(root, *, is_mor):
    """Partitions by completed write, as Hudi 1.2 counts them: not where it only inserted."""
    found = {}
    for path in timeline_of(root).iterdir():
        name = re.fullmatch(r"(\d+)(?:_\d+)?\.(commit|deltacommit|replacecommit)", path.name)
        if name is None:
            continue
        data = path.read_bytes()
        said = json.loads(data) if data[:1] == b"{" else record(path)
        stats = said["partitionToWriteStats"]
        touched = set(stats) | set(said.get("partitionToReplaceFileIds") or {})
        is_plain = name[2] == "commit" and not is_mor
        if is_plain and said["operationType"] in ("INSERT", "UPSERT", "BULK_INSERT"):
            touched = {p for p, of_one in stats.items() if any(map(is_update, of_one))}
        found[name[1]] = touched
    return found


def retained_since(root, time):
    """Let the table's clean say that it retained everything since."""
    path = the(timeline_of(root), "*.clean")
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    (said,) = reader
    out = io.BytesIO()
    fastavro.writer(out, reader.writer_schema, [said | {"earliestCommitToRetain": time}])
    path.write_bytes(out.getvalue())


@pytest.mark.parametrize("name", ["v6_cow_nopart", "v9_cow_nopart"])
def test_a_full_scan_of_copy_on_write_reads_no_commits(name, unpacked):
    root = unpacked(name)
    storage = RecordingStorage(open_storage(str(root)))
    observe(storage, None, observed_ms=0)
    reads = [call.paths[0].rpartition("/")[2] for call in storage.calls if call.method == "read"]

    assert "hoodie.properties" == reads[0]
    assert all(name.endswith((".replacecommit", ".clean")) for name in reads[1:])
    assert len(reads) == len(set(reads))


def test_a_log_file_whose_write_is_archived_is_found_in_the_history(unpacked):
    root = unpacked("v8_mor_overlap")
    before = seen(root)
    folder = timeline_of(root)
    path = min(folder.glob("2*_*.deltacommit"))
    requested, completed = re.match(r"(\d+)_(\d+)", path.name).groups()
    for file in folder.glob(f"{requested}*"):
        file.unlink()
    assert requested not in seen(root).completions

    archived = {
        "instantTime": [requested],
        "completionTime": [completed],
        "action": ["deltacommit"],
    }
    name = f"{requested}_{requested}_0.parquet"
    (folder / "history").mkdir(exist_ok=True)
    pq.write_table(pa.table(archived), folder / "history" / name)
    manifest = {"files": [{"fileName": name, "fileLen": 1}]}
    (folder / "history" / "manifest_1").write_text(json.dumps(manifest))
    (folder / "history" / "_version_").write_text("1")

    assert before.completions == seen(root).completions


def test_a_completed_file_of_an_upgraded_table_completes_when_it_was_written(unpacked):
    root = unpacked("v9_cow_nopart")
    path = min(timeline_of(root).glob("2*_*.commit"))
    requested = path.name[:17]
    old = path.rename(path.with_name(f"{requested}.commit"))
    os.utime(old, ns=(0, 1_767_225_600_250_000_000))

    assert "20260101000000250" == seen(root).completions[requested]


def test_a_partition_whose_name_is_no_text_is_an_error_that_names_it(unpacked):
    table = unpacked("v6_cow_part")
    folder = os.fsencode(table) + b"/p=\xff"
    os.mkdir(folder)
    os.close(os.open(folder + b"/.hoodie_partition_metadata", os.O_CREAT))

    with pytest.raises(FormatError, match=r"^p=\\udcff: this partition's name is not UTF-8"):
        seen(table)
