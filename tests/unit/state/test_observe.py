"""Looking at small tables in memory: what is read, what is refused, what is left alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from reconciler.errors import BlockedError, BusyError, FormatError, StorageError
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.timeline.clean import CleanedPartition, CleanerPlan, CleanMetadata
from reconciler.hudi.timeline.owner import Owner
from reconciler.spec.model import NewTable, Policy, Retention, TableSpec
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.storage_wrappers import RecordingStorage

_number = count()
PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.partition.fields": "p",
    "hoodie.table.checksum": "498511606",
}
UPDATE = b'{"partitionToWriteStats": {"p=1": [{"prevCommit": "1"}]}, "operationType": "UPSERT"}'
INSERT = b'{"partitionToWriteStats": {"p=2": [{"prevCommit": "null"}]}, "operationType": "INSERT"}'
DELETE = b'{"partitionToWriteStats": {"p=3": [{"prevCommit": null}]}, "operationType": "DELETE"}'
REPLACE = b'{"partitionToWriteStats": {"p=4": []}, "partitionToReplaceFileIds": {"p=5": ["f-0"]}}'
CLEAN = CleanMetadata(
    started="20260105000000000",
    duration_ms=1,
    earliest_instant="20260102000000000",
    last_completed_commit="20260104000000000",
    partitions={"p=1": CleanedPartition(policy="KEEP_LATEST_COMMITS", planned=(), deleted=("a",))},
    extra={"savepointed_timestamps": "1, 2"},
).encode()
PLAN = CleanerPlan(
    policy="KEEP_LATEST_COMMITS", earliest_instant="20260102000000000", files={"p=1": ("a",)}
).encode("/t")
FOUR_WRITES = {
    "20260101000000000.commit": UPDATE,
    "20260102000000000.commit": UPDATE,
    "20260103000000000.commit": INSERT,
    "20260104000000000.commit": DELETE,
    "20260104500000000.replacecommit": REPLACE,
}
INCREMENTAL = TableSpec(
    name="t", path="t", retention=Retention(policy=Policy.COMMITS, keep=1, scan="incremental")
)


@pytest.fixture(autouse=True)
def _repeats_at_once(monkeypatch):
    """Files of these tests are young, so a damaged one is read again; nobody completes it."""
    monkeypatch.setattr("reconciler.state.observe.sleep", lambda _seconds: None)


def table(files=(), **changes):
    """A storage in memory; ``files``: name below ``.hoodie`` -> bytes."""
    storage = open_storage(f"memory://observed/{next(_number)}")
    said = "".join(f"{key}={value}\n" for key, value in (PROPERTIES | changes).items())
    storage.create(".hoodie/hoodie.properties", said.encode())
    for name, data in dict(files).items():
        storage.create(f".hoodie/{name}", data)
    return RecordingStorage(storage)


def look(storage, spec=None):
    return observe(storage, spec, observed_ms=7)


def reads(storage):
    return [c.paths[0].removeprefix(".hoodie/") for c in storage.calls if c.method == "read"]


def test_a_full_scan_reads_no_commit_however_damaged_it_is():
    storage = table(
        {
            "20260101000000000.commit": b"garbage",
            "20260102000000000.commit.requested": b"",
            "20260102000000000.inflight": b"garbage",
            "20260103000000000.rollback": b"",
            "20260104000000000.indexing": b"garbage",
        }
    )
    state = look(storage)

    assert ["hoodie.properties"] == reads(storage)
    assert 4 == len(state.timeline.instants)
    assert None is state.touched_partitions


def test_an_incremental_scan_reads_the_window_and_no_more():
    storage = table({**FOUR_WRITES, "20260105000000000.clean": CLEAN})
    state = look(storage, INCREMENTAL)

    assert "20260101000000000.commit" not in reads(storage)
    assert {
        "20260102000000000": {"p=1"},
        "20260103000000000": set(),  # only new file groups: nothing of them can have expired
        "20260104000000000": {"p=3"},
        "20260104500000000": {"p=4", "p=5"},
    } == state.touched_partitions


def test_an_insert_counts_where_log_files_may_follow():
    files = {**FOUR_WRITES, "20260105000000000.clean": CLEAN}
    state = look(table(files, **{"hoodie.table.type": "MERGE_ON_READ"}), INCREMENTAL)

    assert {"p=2"} == state.touched_partitions["20260103000000000"]


def test_a_full_scan_reads_no_commit_though_there_was_a_clean():
    full = TableSpec(name="t", path="t", retention=Retention(policy=Policy.COMMITS, keep=1))
    storage = table({**FOUR_WRITES, "20260105000000000.clean": CLEAN})

    assert None is look(storage, full).touched_partitions
    assert {"20260104500000000.replacecommit", "20260105000000000.clean"} == set(reads(storage)[1:])


@pytest.mark.parametrize("clean", [None, b""], ids=["no clean", "a blank clean"])
def test_an_incremental_scan_without_a_boundary_reads_no_commits(clean):
    files = FOUR_WRITES if clean is None else {**FOUR_WRITES, "20260105000000000.clean": clean}
    storage = table(files)
    state = look(storage, INCREMENTAL)

    assert None is state.touched_partitions
    assert not [name for name in reads(storage) if name.endswith(".commit")]


def test_a_blank_clean_says_nothing():
    (clean,) = look(table({"20260105000000000.clean": b""})).cleans

    assert (True, None, "", {}) == (
        clean.is_blank,
        clean.policy,
        clean.earliest_instant_to_retain,
        clean.removed,
    )


def test_a_clean_says_what_it_removed_and_what_was_saved():
    (clean,) = look(table({"20260105000000000.clean": CLEAN})).cleans

    assert ({"p=1": ("a",)}, ("1", "2")) == (clean.removed, clean.savepointed)


@pytest.mark.parametrize(
    ("requested", "problem"),
    [
        (None, "its requested file is missing"),
        (b"", "its requested file is empty"),
        (PLAN[:-1], ".hoodie/20260105000000000.clean.requested: HoodieCleanerPlan"),
    ],
    ids=["missing", "empty", "cut"],
)
def test_a_pending_clean_without_a_plan_says_why(requested, problem):
    files = {"20260105000000000.clean.inflight": PLAN}
    if requested is not None:
        files["20260105000000000.clean.requested"] = requested
    (clean,) = look(table(files)).pending_cleans

    assert clean.problem.startswith(problem)
    assert ("INFLIGHT", None, {}) == (clean.state, clean.policy, clean.files)


def test_the_plan_of_a_pending_clean_is_the_requested_one():
    files = {
        "20260105000000000.clean.inflight": b"",
        "20260105000000000.clean.requested": PLAN,
    }
    (clean,) = look(table(files)).pending_cleans

    assert (None, {"p=1": ("a",)}) == (clean.problem, clean.files)
    assert "20260102000000000" == clean.earliest_instant_to_retain


def test_a_half_made_savepoint_is_one_whose_files_nobody_knows():
    (savepoint,) = look(table({"20260101000000000.savepoint.inflight": b""})).savepoints

    assert (False, frozenset()) == (savepoint.completed, savepoint.files)


@pytest.mark.parametrize(
    "name",
    [
        "20260101000000000.savepoint",
        "20260101000000000.replacecommit",
        "20260101000000000.compaction.requested",
        "20260101000000000.logcompaction.requested",
        "20260101000000000.clustering.requested",
    ],
)
@pytest.mark.parametrize("data", [b"", PLAN, UPDATE], ids=["empty", "of another kind", "a commit"])
def test_a_file_that_says_what_must_stay_is_never_guessed(name, data):

    with pytest.raises(FormatError) as caught:
        look(table({name: data}))

    assert f".hoodie/{name}" == caught.value.path


@pytest.mark.parametrize("action", ["compaction", "replacecommit"])
def test_a_pending_plan_that_is_not_there_is_named(action):

    with pytest.raises(FormatError, match=f"{action}.requested: is missing"):
        look(table({f"20260101000000000.{action}.inflight": b""}))


def test_a_pending_overwrite_of_an_old_writer_names_no_slices():
    state = look(table({"20260101000000000.replacecommit.requested": b""}))

    assert () == state.clusterings


def test_a_pending_compaction_names_its_groups():
    operation = {"partitionPath": "p=1", "fileId": "f-0", "baseInstantTime": "1"}
    plan = avro_container.encode_container("HoodieCompactionPlan.avsc", {"operations": [operation]})
    state = look(table({"20260101000000000.compaction.requested": plan}))

    (found,) = state.compactions
    assert ("p=1", "f-0", "1") == (found.partition, found.file_id, found.base_instant)


def test_a_pending_restore_blocks_everything():

    with pytest.raises(BlockedError, match="restore 20260101000000000 is requested"):
        look(table({"20260101000000000.restore.requested": b""}))


def test_a_damaged_clean_is_named():

    with pytest.raises(FormatError, match=r"20260105000000000\.clean"):
        look(table({"20260105000000000.clean": CLEAN[:-3]}))


def test_no_table_is_one_clear_error():

    with pytest.raises(FormatError, match="no Hudi table here"):
        look(open_storage("memory://observed/nothing"))


def test_a_table_that_is_declared_and_not_made_yet_says_who_makes_it():
    new = NewTable(type="COPY_ON_WRITE", version=9, record_key=("id",))
    spec = TableSpec(name="t", path="memory://observed/nothing", table=new)

    with pytest.raises(FormatError, match="create it with reconciler write"):
        look(open_storage("memory://observed/nothing"), spec)


def test_damaged_properties_of_a_declared_table_are_damage():
    new = NewTable(type="COPY_ON_WRITE", version=9, record_key=("id",))
    storage = table()
    storage.replace(".hoodie/hoodie.properties", b"")

    with pytest.raises(FormatError) as damaged:
        look(storage, TableSpec(name="t", path="memory://observed/t", table=new))
    assert "create it" not in str(damaged.value)


def test_properties_are_read_from_the_backup_while_they_are_replaced():
    storage = table()
    data = storage.read(".hoodie/hoodie.properties")
    storage.create(".hoodie/hoodie.properties.backup", data)
    for left in (data[:40], None):
        storage.delete(".hoodie/hoodie.properties")
        if left is not None:
            storage.create(".hoodie/hoodie.properties", left)

        assert "t" == look(storage).table_name


@pytest.fixture
def paused(monkeypatch):
    """The seconds that were slept."""
    seconds = []
    monkeypatch.setattr("reconciler.state.observe.sleep", seconds.append)
    return seconds


class Gone(RecordingStorage):
    """A file that is listed and never there."""

    def list(self, folder):
        found = super().list(folder)
        return [*found, found[0].__class__("20260101000000000.savepoint", 1, 0, is_folder=False)]


def test_a_timeline_that_never_rests_is_one_clear_error(paused):

    with pytest.raises(StorageError, match="run again") as caught:
        look(Gone(table()))
    assert (6, True) == (caught.value.exit_code, isinstance(caught.value, BusyError))
    assert pytest.approx([0.1, 0.2, 0.3]) == paused


class BeingWritten(RecordingStorage):
    """A file of which there is only the half until it was read so often."""

    def __init__(self, inner, ending, reads):
        super().__init__(inner)
        self.ending, self.left = ending, reads

    def read(self, path):
        data = super().read(path)
        if not path.endswith(self.ending) or not self.left:
            return data
        self.left -= 1
        return data[: len(data) // 2]


def now_of(storage):
    return storage.stat(".hoodie/20260104500000000.replacecommit").modified_ms


@pytest.mark.parametrize("reads", [1, 3])
def test_a_file_that_is_still_being_written_is_read_again_a_moment_later(reads, paused):
    storage = BeingWritten(table(FOUR_WRITES), ".replacecommit", reads)

    state = observe(storage, None, observed_ms=now_of(storage) + 9_000)
    assert {("p=5", "f-0"): "20260104500000000"} == state.replaced
    assert pytest.approx([0.1, 0.2, 0.3][:reads]) == paused


@pytest.mark.parametrize(("reads", "age_ms"), [(4, 0), (1, 10_000)])
@pytest.mark.usefixtures("paused")
def test_a_file_that_stays_damaged_or_is_old_is_an_error(reads, age_ms):
    storage = BeingWritten(table(FOUR_WRITES), ".replacecommit", reads)

    with pytest.raises(FormatError, match="replacecommit"):
        observe(storage, None, observed_ms=now_of(storage) + age_ms)
    assert 0 == storage.left


# whose the pending writes are

WRITTEN = "20260104000000000"
NOBODY = Owner(who="ann", host="a", pid=7, started="1", tool="t", token="x")


def pending_table(beats):
    """A completed write, pending ones of some actions, and heartbeats."""
    names = {
        "20260101000000000.commit": UPDATE,
        f"{WRITTEN}.commit.requested": b"",
        f"{WRITTEN}.inflight": b"",
        "20260105000000000.deltacommit.requested": b"",
        "20260106000000000.replacecommit.requested": b"",
        "20260107000000000.clean.requested": PLAN,
    }
    return table({**names, **{f".heartbeat/{name}": data for name, data in beats.items()}})


def asked(storage, lives=lambda _owner: None):
    return observe(storage, None, observed_ms=7, check_process=lives)


def test_a_pending_write_is_ours_where_its_heartbeat_says_whose_it_is():
    beats = {
        "20260101000000000": NOBODY.encode(),
        WRITTEN: replace(NOBODY, ended=True).encode(),
        "20260105000000000": NOBODY.encode(),
        "20260106000000000": NOBODY.encode(),
        "20260107000000000": NOBODY.encode(),
    }
    heard = []
    state = asked(pending_table(beats), lives=lambda owner: heard.append(owner) or False)

    assert [
        (WRITTEN, "commit", "INFLIGHT", True, False),
        ("20260105000000000", "deltacommit", "REQUESTED", False, False),
        ("20260106000000000", "replacecommit", "REQUESTED", False, False),
    ] == [
        (one.instant, one.action.value, one.state, one.owner.ended, one.is_running)
        for one in state.pending_writes
    ]
    assert [replace(NOBODY, ended=True), NOBODY, NOBODY] == heard


def test_heartbeats_of_others_are_not_read():
    storage = pending_table({WRITTEN: b"", "20260102000000000": NOBODY.encode()})

    assert () == asked(storage).pending_writes
    assert not [name for name in reads(storage) if ".heartbeat" in name]


def test_who_does_not_ask_whose_pending_writes_are_pays_for_no_answer():
    storage = pending_table({WRITTEN: NOBODY.encode()})

    assert () == look(storage).pending_writes
    assert not [call for call in storage.calls if ".heartbeat" in call.paths[0]]


def test_a_table_on_which_no_write_is_pending_is_asked_for_no_heartbeat():
    files = {"20260101000000000.commit": UPDATE, ".heartbeat/20260101000000000": NOBODY.encode()}
    one, other = table(files), table(files)

    assert () == asked(one).pending_writes
    look(other)
    assert [call.method for call in other.calls] == [call.method for call in one.calls]


def test_files_of_a_pending_write_are_found_where_no_partition_is_yet():
    storage = pending_table({WRITTEN: NOBODY.encode()})
    storage.create("p=1/.hoodie_partition_metadata", b"")
    for name in (f"p=1/a_0_{WRITTEN}.parquet", f"p=9/b_0_{WRITTEN}.parquet", f"c_0_{WRITTEN}.orc"):
        storage.create(name, b"four")
    storage.create("p=9/b_0_20260101000000000.parquet", b"")
    storage.create("other/notes.txt", b"")

    (write,) = asked(storage).pending_writes

    assert (("", f"c_0_{WRITTEN}.orc", 4), ("p=9", f"b_0_{WRITTEN}.parquet", 4)) == write.unlisted
