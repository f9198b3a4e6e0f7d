"""What an index leaves out of tables that real Hudi wrote: the rows that match stay the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reconciler.errors import BlockedError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata import column_stats
from reconciler.reader import log_statistics
from reconciler.reader.log_statistics import find_unmatched_logs
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.pruning import prune_by_index
from reconciler.reader.skipping import SkipDecision, parse_condition
from reconciler.reader.slice_rows import SliceRowReader, get_slice_files
from reconciler.storage.open import open_storage
from tests.published_indexes import find_base_files, publish_index
from tests.storage_wrappers import RecordingStorage
from tests.trees import unpack

TABLES = Path(__file__).parent
NAMES = [
    "v6_cow_part",
    "v6_mor_nopart",
    "v8_mor_part",
    "v9_cow_nopart",
    "v9_cow_part",
    "v9_mor_overlap_done",
]
COLUMNS = ["id", "ts", "x", "name"]
ID, TS, X, NAME, P = (pc.field(name) for name in ("id", "ts", "x", "name", "p"))
PREDICATES = {
    "id = 3": ID == 3,
    "id >= 200 AND ts < 9": (ID >= 200) & (TS < 9),
    "ts IN (1, 10)": TS.isin([1, 10]),
    "NOT (x > 0.25)": ~(X > 0.25),
    "name LIKE 'v30%'": pc.starts_with(NAME, "v30"),
    "name IS NULL": NAME.is_null(),
    "p = 'p1' AND id < 2 OR p = 'p2' AND ts = 10": ((P == "p1") & (ID < 2))
    | ((P == "p2") & (TS == 10)),
    "id = 123456": ID == 123456,
}


def table(name, folder):
    unpack(TABLES / f"{name}.zip", folder)
    return min(folder.rglob("hoodie.properties"), key=lambda path: len(path.parts)).parents[1]


def rows_of(scan, storage):
    reading = SliceRowReader.from_scan(scan)
    numbers = scan.slices.column("partition").to_pylist()
    batches = [
        batch
        for row, partition in enumerate(numbers)
        for batch in reading.read(
            get_slice_files(scan, row), scan.get_partition_values(partition), storage
        )
    ]
    return pa.Table.from_batches(batches, scan.schema)


def pruned(scan, where, storage):
    return prune_by_index(replace(scan, condition=parse_condition(where, "UTC")), storage)


def in_order(table):
    return sorted(map(repr, table.to_pylist()))


def fates(found):
    every = tuple(SkipDecision)
    return [every[code].key for code in found.decisions.tolist()]


@pytest.fixture(scope="module", params=NAMES)
def indexed(request, tmp_path_factory):
    path = table(request.param, tmp_path_factory.mktemp(request.param))
    publish_index(path, COLUMNS)
    return open_storage(str(path))


@pytest.mark.parametrize("kind", ["snapshot", "readOptimized"])
def test_no_row_that_matches_is_left_out(indexed, kind):
    scan = open_scan(indexed, ReadRequest(kind=kind))
    whole = rows_of(scan, indexed)
    for where, matches in PREDICATES.items():
        kept = pruned(scan, where, indexed).kept
        assert in_order(whole.filter(matches)) == in_order(rows_of(kept, indexed).filter(matches))


def test_no_row_of_an_older_snapshot_is_left_out(indexed):
    timeline = load_timeline(indexed, load_properties(indexed))
    seen = 0
    for instant in sorted(write.requested for write in timeline.commits)[-3:]:
        try:
            scan = open_scan(indexed, ReadRequest(as_of=instant))
        except BlockedError:
            continue
        whole = rows_of(scan, indexed)
        for where, matches in PREDICATES.items():
            kept = pruned(scan, where, indexed).kept
            rows = rows_of(kept, indexed).filter(matches)
            assert in_order(whole.filter(matches)) == in_order(rows)
        seen += 1
    assert seen


def test_files_are_left_out_by_what_they_hold(tmp_path):
    path = table("v9_cow_part", tmp_path)
    publish_index(path, COLUMNS)
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())

    assert ["index", "matches", "matches", "index"] == fates(pruned(scan, "id = 200", storage))
    assert ["index", "index", "index", "matches"] == fates(pruned(scan, "id = 403", storage))
    assert ["index"] * 4 == fates(pruned(scan, "id > 403 OR name < 'v'", storage))


def test_files_that_came_after_the_index_are_read(tmp_path):
    path = table("v9_cow_part", tmp_path)
    publish_index(path, COLUMNS, files=[f for f in find_base_files(path) if "p3" not in f.parts])
    storage = open_storage(str(path))
    found = pruned(open_scan(storage, ReadRequest()), "id > 1000", storage)

    assert ["index", "index", "index", "notIndexed"] == fates(found)


def test_of_a_damaged_index_the_read_knows_and_says_so(tmp_path):
    path = table("v9_cow_part", tmp_path)
    version = publish_index(path, COLUMNS)
    (path / version.path).write_bytes(b"x" * version.size)
    storage = open_storage(str(path))
    found = pruned(open_scan(storage, ReadRequest()), "id > 1000", storage)

    assert ["noIndex"] * 4 == fates(found)
    assert [version.path] == [problem.partition(":")[0] for problem in found.problems]


def test_the_index_is_asked_only_where_a_condition_names_a_column_that_files_hold(tmp_path):
    path = table("v9_cow_part", tmp_path)
    publish_index(path, COLUMNS)
    storage = RecordingStorage(open_storage(str(path)))
    scan = open_scan(storage, ReadRequest())

    def calls(where):
        before = len(storage.calls)
        pruned(scan, where, storage)
        return [call.method for call in storage.calls[before:]]

    assert [] == calls("p = 'p1'")
    assert [] == calls("hash(name) = 1")
    assert ["list", "list", "read"] == calls("id = 1")
    assert not any(".zindex" in path for call in storage.calls[:-3] for path in call.paths)


# Slices with log files, by Hudi's column_stats.


@pytest.mark.parametrize("name", ["v8_mor_overlap_done", "v9_mor_overlap_done"])
def test_a_slice_is_left_out_where_neither_base_nor_log_files_match(name, tmp_path):
    path = table(name, tmp_path)
    publish_index(path, COLUMNS)
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())

    # base: ids 0 to 7, log files: 0 to 50 and 2 to 60, with ts 3 and 4
    assert ["logStatistics"] == fates(pruned(scan, "id > 60", storage))
    assert ["logStatistics"] == fates(pruned(scan, "ts = 1 AND id > 40", storage))
    assert ["logs"] == fates(pruned(scan, "id = 60", storage))
    assert ["logs"] == fates(pruned(scan, "ts = 4", storage))


UPDATED = {
    "i = -70": pc.field("i") == -70,
    "i < -70 OR i > 900": (pc.field("i") < -70) | (pc.field("i") > 900),
    "i > 5 AND i < 900": (pc.field("i") > 5) & (pc.field("i") < 900),
    "l = 7000000000000": pc.field("l") == 7 * 10**12,
    "l < 7000000000000": pc.field("l") < 7 * 10**12,
    "l IS NULL": pc.field("l").is_null(),
    "b": pc.field("b"),
    "b IS NULL": pc.field("b").is_null(),
    "dt = '1970-01-07'": pc.field("dt") == date(1970, 1, 7),
    "dt < '1970-01-07'": pc.field("dt") < date(1970, 1, 7),
    "dt > '2080-01-01'": pc.field("dt") > date(2080, 1, 1),
    "s = 'u' OR f > 70": (pc.field("s") == "u") | (pc.field("f") > 70),
    "d7 > 70 AND ts > '2030-01-01'": pc.field("ts") > datetime(2030, 1, 1, tzinfo=UTC),
}


@pytest.mark.parametrize("version", ["1.0.2", "1.2.0"])
def test_updates_that_leave_the_ranges_of_the_base_file_are_seen(version, tmp_path):
    unpack(TABLES / "updated" / f"{version}.zip", tmp_path)
    publish_index(tmp_path, ["b", "i", "l", "f", "s", "d7", "dt", "ts"])
    storage = open_storage(str(tmp_path))
    writes = load_timeline(storage, load_properties(storage)).commits
    *_, before_deletion, newest = sorted(write.requested for write in writes)
    found = {}
    for instant in (before_deletion, newest):
        scan = open_scan(storage, ReadRequest(as_of=instant))
        whole = rows_of(scan, storage)
        for where, matches in UPDATED.items():
            judged = pruned(scan, where, storage)
            rows = rows_of(judged.kept, storage).filter(matches)
            assert in_order(whole.filter(matches)) == in_order(rows)
            found[where, instant] = fates(judged)[0]

    left_out = {where for (where, instant), fate in found.items() if fate == "logStatistics"}
    assert left_out == {
        "i < -70 OR i > 900",
        "i > 5 AND i < 900",
        "dt < '1970-01-07'",
    }
    assert {instant for (_, instant), fate in found.items() if fate == "logStatistics"} == {
        before_deletion  # of a log file of deletions nothing is said
    }


def test_of_a_base_file_with_log_files_every_row_group_is_merged(tmp_path):
    storage = open_storage(str(table("v9_mor_overlap_done", tmp_path)))
    scan = open_scan(storage, ReadRequest())
    judged = replace(scan, condition=parse_condition("id > 1000", "UTC"))

    assert in_order(rows_of(scan, storage)) == in_order(rows_of(judged, storage))


@pytest.mark.parametrize("where", ["x > 1000", "name > 'w'", "id IS NULL", "hash(ts) = 0"])
def test_what_hudi_says_of_text_floats_and_nulls_of_log_files_is_not_believed(where, tmp_path):
    path = table("v9_mor_overlap_done", tmp_path)
    publish_index(path, COLUMNS)
    storage = open_storage(str(path))
    found = pruned(open_scan(storage, ReadRequest()), where, storage)

    assert len(found.kept.slices)


def test_without_column_stats_slices_with_log_files_are_read(tmp_path):
    path = table("v8_mor_part", tmp_path)
    publish_index(path, COLUMNS)
    storage = open_storage(str(path))
    found = pruned(open_scan(storage, ReadRequest()), "id > 1000", storage)

    assert ["logs", "logs", "logs", "index"] == fates(found)
    assert () == found.problems


def test_an_unreadable_column_stats_is_left_aside(tmp_path):
    path = table("v9_mor_overlap_done", tmp_path)
    publish_index(path, COLUMNS)
    for file in (path / ".hoodie" / "metadata" / "column_stats").iterdir():
        if file.is_file():
            file.write_bytes(b"x" * file.stat().st_size)
    storage = open_storage(str(path))
    found = pruned(open_scan(storage, ReadRequest()), "id > 60", storage)

    assert ["logs"] == fates(found)
    assert found.problems[0].startswith("column_stats of log files are not used: ")


def test_of_too_many_log_files_nothing_is_asked(tmp_path, monkeypatch):
    path = table("v9_mor_overlap_done", tmp_path)
    publish_index(path, COLUMNS)
    storage = RecordingStorage(open_storage(str(path)))
    scan = open_scan(storage, ReadRequest())
    asked, before = {}, len(storage.calls)
    for most in (4, 3):
        monkeypatch.setattr(log_statistics, "MAX_STATISTICS", most)
        found = pruned(scan, "id > 60 AND ts > 0", storage)
        calls, before = storage.calls[before:], len(storage.calls)
        asked[most] = fates(found), any("column_stats" in str(call) for call in calls)

    assert {4: (["logStatistics"], True), 3: (["logs"], False)} == asked
    said = "column_stats of log files are not used: 4 are needed, at most 3 are read"
    assert (said,) == found.problems


def test_whatever_reading_column_stats_raises_the_read_goes_on(tmp_path, monkeypatch):
    path = table("v9_mor_overlap_done", tmp_path)
    publish_index(path, COLUMNS)
    storage = open_storage(str(path))
    monkeypatch.delitem(vars(column_stats), "COLUMN_STATS")
    found = pruned(open_scan(storage, ReadRequest()), "id > 60", storage)

    assert ["logs"] == fates(found)
    assert "not used: NameError: " in found.problems[0]


def test_records_that_are_merged_field_by_field_are_not_judged(tmp_path):
    path = table("v9_mor_overlap_done", tmp_path)
    storage = open_storage(str(path))
    scan = replace(open_scan(storage, ReadRequest()), condition=parse_condition("id > 60", "UTC"))
    custom = replace(scan, rules=replace(scan.rules, refusal="a payload of their own"))
    rows = pa.array([0]).to_numpy()

    assert [True] == find_unmatched_logs(storage, scan, rows)[0].tolist()
    assert [False] == find_unmatched_logs(storage, custom, rows)[0].tolist()
