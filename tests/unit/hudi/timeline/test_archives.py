"""Read the archived timelines of both layouts, and report damage."""

from __future__ import annotations

import io
import json

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError, NotFoundError, ReconcilerError, UnsupportedError
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, encode_block
from reconciler.hudi.timeline import archive_v2
from reconciler.hudi.timeline.archive_v1 import read_archive, read_commit_contents
from reconciler.hudi.timeline.archive_v2 import find_newest_time, read_history
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.storage.api import StorageEntry


class Shelf:
    """Files of one folder in memory; records which were read."""

    def __init__(self, files):
        self.files, self.read_names = dict(files), []

    def list(self, folder):
        if not self.files:
            raise NotFoundError(folder, "is not there")
        return [
            StorageEntry(name, len(data), 0, is_folder=False) for name, data in self.files.items()
        ]

    def read(self, path):
        name = path.rpartition("/")[2]
        self.read_names.append(name)
        if name not in self.files:
            raise NotFoundError(path, "is not there")
        return self.files[name]


def history(*rows):
    """Return a history file of (requested, completed, action) rows, with extra columns."""
    columns = dict(
        zip(("instantTime", "completionTime", "action"), zip(*rows, strict=True), strict=True)
    )
    out = io.BytesIO()
    pq.write_table(pa.table({**columns, "metadata": [b"m"] * len(rows)}), out)
    return out.getvalue()


def manifest(*names):
    return json.dumps({"files": [{"fileName": name, "fileLen": 1} for name in names]}).encode()


OLD, NEW = ("10", "11", "commit"), ("20", "25", "replacecommit")
LSM = {
    "_version_": b"2",
    "manifest_1": manifest("05_05_0.parquet"),
    "manifest_2": manifest("10_10_0.parquet", "20_20_1.parquet"),
    "05_05_0.parquet": b"merged away",
    "10_10_0.parquet": history(OLD),
    "20_20_1.parquet": history(NEW),
}


def completed(requested, at, action):
    return Instant(requested, Action(action), State.COMPLETED, at)


def archived(files, wanted=None):
    return list(read_history(Shelf(files), "h", wanted))


def test_the_files_of_the_current_manifest_are_the_history():

    assert [completed(*OLD), completed(*NEW)] == archived(LSM)
    assert "20" == find_newest_time(Shelf(LSM), "h")


@pytest.mark.parametrize("written", [b"", b"nonsense", b"7", b"-1", b"\xb2", b"1 2"])
def test_an_unreadable_version_file_means_the_greatest_manifest(written):

    assert [completed(*OLD), completed(*NEW)] == archived(LSM | {"_version_": written})


def test_the_version_file_decides_against_a_newer_manifest():

    assert [completed(*OLD), completed(*NEW)] == archived(LSM | {"manifest_3": b"half-written"})


@pytest.mark.parametrize("files", [{}, {"_version_": b"1"}], ids=["no folder", "no manifest"])
def test_without_a_manifest_nothing_is_archived(files):

    assert [] == archived(files)
    assert None is find_newest_time(Shelf(files), "h")


def test_archived_files_are_read_newest_first_one_at_a_time():
    more = history(("21", "22", "commit"), ("23", "24", "clean"))
    files = LSM | {"manifest_2": manifest("10_10_0.parquet", "21_23_0.parquet")}
    shelf = Shelf(files | {"21_23_0.parquet": more})
    found = archive_v2.read_commit_contents(shelf, "h")

    assert (completed("23", "24", "clean"), b"m", "h/21_23_0.parquet") == next(found)
    assert "10_10_0.parquet" not in shelf.read_names
    assert ["21", "10"] == [instant.requested for instant, _content, _path in found]


def test_only_files_that_may_hold_a_wanted_instant_are_read():
    shelf = Shelf(LSM)

    assert [completed(*NEW)] == list(read_history(shelf, "h", ["20", "99"]))
    assert ["_version_", "manifest_2", "20_20_1.parquet"] == shelf.read_names


def test_only_wanted_instants_of_a_file_come_back():
    files = LSM | {"10_10_0.parquet": history(OLD, ("10", "13", "clean"), ("12", "13", "clean"))}

    assert [completed("12", "13", "clean")] == archived(
        files
        | {"manifest_2": manifest("10_12_0.parquet"), "10_12_0.parquet": files["10_10_0.parquet"]},
        ["12"],
    )


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("manifest_2", b"", "manifest_2: the manifest"),
        ("manifest_2", b"[]", "manifest_2: the manifest"),
        ("manifest_2", b'{"files": null}', "manifest_2: the manifest"),
        ("manifest_2", b'{"files": [{}]}', "manifest_2: the manifest"),
        ("manifest_2", b'{"entries": []}', "manifest_2: the manifest"),
        ("manifest_2", b"\xff", "manifest_2: the manifest"),
        ("manifest_2", manifest("../../x.parquet"), "it lists '../../x.parquet'"),
        ("manifest_2", manifest("30_30_0.parquet"), "30_30_0.parquet: is listed in the manifest"),
        ("20_20_1.parquet", b"", "20_20_1.parquet: is not a history file"),
        ("20_20_1.parquet", b"PAR1PAR1", "20_20_1.parquet: is not a history file"),
        ("20_20_1.parquet", LSM["20_20_1.parquet"][:-9], "20_20_1.parquet: is not a history file"),
        ("20_20_1.parquet", history((None, "2", "commit")), "20_20_1.parquet: an archived instant"),
        (
            "20_20_1.parquet",
            history(("\uff12", "2", "commit")),
            "20_20_1.parquet: an archived instant",
        ),
        ("20_20_1.parquet", history(("2", "x", "commit")), "20_20_1.parquet: an archived instant"),
    ],
)
def test_damage_of_the_history_names_the_file(name, data, message):

    with pytest.raises(FormatError, match=message):
        archived(LSM | {name: data})


def test_an_unknown_archived_action_is_refused():

    with pytest.raises(UnsupportedError, match=r"20_20_1\.parquet: unknown timeline action 'jump'"):
        archived(LSM | {"20_20_1.parquet": history(("20", "21", "jump"))})


def test_an_instant_of_an_upgraded_table_may_have_no_completion_time():

    assert [completed("20", None, "commit")] == archived(
        {
            "manifest_1": manifest("20_20_0.parquet"),
            "20_20_0.parquet": history(("20", None, "commit")),
        }
    )


def test_every_truncated_history_file_is_a_format_error():
    whole = LSM["20_20_1.parquet"]
    for end in range(0, len(whole), 7):
        with pytest.raises(ReconcilerError, match="20_20_1"):
            archived(LSM | {"20_20_1.parquet": whole[:end]})


class Archiving(Shelf):
    """An archiver replaces the files, once, before one is read or after it was."""

    def __init__(self, files, name, after, *, is_late=False):
        super().__init__(files)
        self.name, self.after, self.is_late = name, after, is_late

    def read(self, path):
        hit = path.endswith(f"/{self.name}") and self.after is not None
        try:
            if hit and not self.is_late:
                self._archive()
            return super().read(path)
        finally:
            if hit and self.is_late:
                self._archive()

    def _archive(self):
        self.files, self.after = self.after, None


MERGED = {
    "_version_": b"3",
    "manifest_3": manifest("10_20_1.parquet"),
    "10_20_1.parquet": history(OLD, NEW),
}


def read_beside(name, after, **more):
    shelf = Archiving(LSM, name, after, **more)
    found = [instant.requested for instant in read_history(shelf, "h")]
    assert None is shelf.after
    return found


def test_a_version_file_that_is_being_replaced_means_the_greatest_manifest():
    without = {name: data for name, data in LSM.items() if name != "_version_"}

    assert ["10", "20"] == read_beside("_version_", without)


@pytest.mark.parametrize("name", ["_version_", "manifest_2", "10_10_0.parquet", "20_20_1.parquet"])
def test_a_file_that_an_archiver_removes_meanwhile_is_replaced_by_its_successor(name):

    assert ["10", "20"] == sorted(read_beside(name, MERGED))
    assert "20" == find_newest_time(Archiving(LSM, name, MERGED), "h")


def test_a_file_that_is_removed_after_it_was_read_is_not_read_twice():

    assert ["10", "20"] == read_beside("10_10_0.parquet", MERGED, is_late=True)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("name", ["manifest_2", "10_10_0.parquet", "20_20_1.parquet"])
def test_contents_that_an_archiver_moves_meanwhile_are_read_once(name, is_late):
    shelf = Archiving(LSM, name, MERGED, is_late=is_late)
    found = archive_v2.read_commit_contents(shelf, "h")

    assert ["20", "10"] == [instant.requested for instant, _content, _path in found]
    assert None is shelf.after


def test_manifests_that_vanish_at_every_attempt_end_the_look():
    class Vanishing(Shelf):
        def read(self, path):
            raise NotFoundError(path, "is not there")

    with pytest.raises(NotFoundError, match="h/manifest_2"):
        find_newest_time(Vanishing(LSM), "h")


ENTRY = {
    "type": "record",
    "name": "HoodieArchivedMetaEntry",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        {"name": "commitTime", "type": ["null", "string"]},
        {"name": "actionType", "type": ["null", "string"]},
        {"name": "actionState", "type": ["null", "string"]},
        {"name": "stateTransitionTime", "type": ["null", "string"]},
        {"name": "hoodieCommitMetadata", "type": ["null", {"type": "map", "values": "string"}]},
    ],
}


def entry(time, action="commit", state="COMPLETED", at=None, content=None):
    return {
        "hoodieCommitMetadata": content,
        "commitTime": time,
        "actionType": action,
        "actionState": state,
        "stateTransitionTime": at,
    }


def block(*entries):
    content = bytearray((3).to_bytes(4, "big") + len(entries).to_bytes(4, "big"))
    for one in entries:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, ENTRY, one)
        content += len(out.getvalue()).to_bytes(4, "big") + out.getvalue()
    return encode_block(
        BlockType.AVRO_DATA, [(HeaderKey.SCHEMA, json.dumps(ENTRY))], bytes(content)
    )


def merge_plan(merged, *candidates):
    schema = {
        "type": "record",
        "name": "HoodieMergeArchiveFilePlan",
        "namespace": "org.apache.hudi.avro.model",
        "fields": [
            {"name": "version", "type": ["int", "null"], "default": 1},
            {"name": "candidate", "type": ["null", {"type": "array", "items": "string"}]},
            {"name": "mergedArchiveFileName", "type": ["null", "string"], "default": None},
        ],
    }
    out = io.BytesIO()
    record = {"version": 1, "candidate": list(candidates), "mergedArchiveFileName": merged}
    fastavro.writer(out, schema, [record])
    return out.getvalue()


def logs(files):
    return [a.requested for a in read_archive(Shelf(files), "archived")]


def test_archive_files_are_read_in_the_order_of_their_numbers():
    files = {
        ".commits_.archive.10_1-0-1": block(entry("3")),
        ".commits_.archive.9_1-0-1": block(entry("1")) + block(entry("2")),
        ".commits_.archive.11": block(entry("4")),
        "..commits_.archive.9_1-0-1.crc": b"crc",
        "notes": b"x",
    }

    assert ["1", "2", "3", "4"] == logs(files)
    assert [] == logs({})


def test_only_a_completed_state_has_a_completion_time():
    files = {
        ".commits_.archive.1": block(entry("1", state="REQUESTED", at="2"), entry("1", at="5"))
    }
    found = list(read_archive(Shelf(files), "archived"))

    assert [State.REQUESTED, State.COMPLETED] == [a.state for a in found]
    assert [None, "5"] == [a.completed for a in found]


def test_archived_writes_are_read_newest_first_one_file_at_a_time():
    commit = {"operationType": "UPSERT"}
    late = block(entry("3", content=commit), entry("4", "clean"), entry("5", content=commit))
    shelf = Shelf(
        {
            ".commits_.archive.1": block(entry("1", content=commit)),
            ".commits_.archive.2": late + block(entry("6", state="INFLIGHT", content=commit)),
        }
    )
    found = read_commit_contents(shelf, "archived")

    instant, content, path = next(found)
    assert ("5", commit, "archived/.commits_.archive.2") == (instant.requested, content, path)
    assert [".commits_.archive.2"] == shelf.read_names
    assert ["3", "1"] == [instant.requested for instant, _content, _path in found]


FIRST, SECOND, BOTH = (f".commits_.archive.{n}_1-0-1" for n in (1, 2, 3))


def test_records_of_a_merged_file_are_read_once():
    files = {
        FIRST: block(entry("1")),
        SECOND: block(entry("2")),
        BOTH: block(entry("1"), entry("2")),
        "mergeArchivePlan": merge_plan(BOTH, FIRST, f"/t/.hoodie/archived/{SECOND}"),
    }

    assert ["1", "2"] == logs(files)
    del files[FIRST]
    assert ["1", "2"] == logs(files)


def test_a_half_merged_file_does_not_count():
    files = {
        FIRST: block(entry("1")),
        SECOND: block(entry("2")),
        BOTH: block(entry("1"), entry("2"))[:-1],
        "mergeArchivePlan": merge_plan(BOTH, FIRST, SECOND),
    }

    assert ["1", "2"] == logs(files)


@pytest.mark.parametrize("plan", [b"", merge_plan(BOTH, FIRST, SECOND), merge_plan(None)])
def test_an_unfinished_merge_is_ignored(plan):
    files = {FIRST: block(entry("1")), SECOND: block(entry("2")), "mergeArchivePlan": plan}

    assert ["1", "2"] == logs(files)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({FIRST: b"nonsense"}, FIRST),
        ({FIRST: block(entry("x"))}, f"{FIRST}: an archived instant"),
        ({FIRST: block(entry(None))}, f"{FIRST}: an archived instant"),
        ({FIRST: block(entry("1", action="jump"))}, f"{FIRST}: an archived instant"),
        ({FIRST: block(entry("1", state="HALF"))}, f"{FIRST}: an archived instant"),
        ({"mergeArchivePlan": b"nonsense"}, "mergeArchivePlan: "),
        ({"mergeArchivePlan": merge_plan("..")}, "mergeArchivePlan: names"),
    ],
)
def test_damage_of_the_archive_names_the_file(files, message):

    with pytest.raises(FormatError, match=message):
        logs(files)
