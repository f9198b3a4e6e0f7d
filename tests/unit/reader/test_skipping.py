"""The decision about each slice of a scan and its reason, by an index in memory."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import NotFoundError, StorageError
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceFiles
from reconciler.index.codec import Provenance, encode_index
from reconciler.index.version_store import list_versions, publish_version
from reconciler.reader import pruning
from reconciler.reader.model import PATH, SLICES, Scan
from reconciler.reader.pruning import prune_by_index, read_index
from reconciler.reader.read_report import make_read_report
from reconciler.reader.request import ReadArguments
from reconciler.reader.row_group_counts import RowGroupCounts, count_row_groups
from reconciler.reader.skipping import (
    RowGroupTest,
    SkipDecision,
    decide_by_index,
    decide_by_logs,
    find_slices_with_undecided_logs,
    find_unusual_keys,
    list_file_columns,
    mark_read_slices,
    parse_condition,
    uses_time_columns,
)
from reconciler.reader.slice_rows import SliceRowReader
from reconciler.render.read_report import explanation_text
from reconciler.render.terminal import Terminal
from reconciler.storage.open import open_storage
from tests.storage_wrappers import RecordingStorage
from tests.unit.index.footer_samples import make_index

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("s", pa.string()), ("day", pa.date32())])
DAYS = [date(2026, 1, 1), date(2026, 1, 2), None]
PARTITIONS = ["day=2026-01-01", "day=2026-01-02", "day=__HIVE_DEFAULT_PARTITION__"]
EVERY = tuple(SkipDecision)
INSTANT = "20260101000000000"


def scan_of(*slices, where="x = 1", zone="UTC", location="t"):
    """Make a scan of slices (partition row, name, size, logs); a base of None is none."""
    rows = [
        {
            "partition": partition,
            "base": name and f"{PARTITIONS[partition]}/{name}",
            "base_size": size,
            "logs": [f"{PARTITIONS[partition]}/{log}" for log in logs],
            "log_size": len(logs),
            "evolves": False,
        }
        for partition, name, size, logs in slices
    ]
    return Scan(
        location=str(location),
        as_of=INSTANT,
        schema=SCHEMA,
        table_schema=SCHEMA,
        partition_schema=pa.schema([SCHEMA.field("day")]),
        partitions=pa.table({PATH: PARTITIONS, "day": pa.array(DAYS, pa.date32())}),
        slices=pa.Table.from_pylist(rows, SLICES),
        rules=MergeRules(),
        committed=CommittedInstants(),
        condition=parse_condition(where, zone),
    )


def fates(scan, index):
    found = decide_by_logs(scan, decide_by_index(scan, scan.condition, index))
    return [EVERY[code].key for code in found.tolist()]


def index_of_files(*files):
    """Make an index of files (partition row, name, size, values of x)."""
    return make_index(*((PARTITIONS[at], name, size, xs) for at, name, size, xs in files))


def test_a_file_is_left_out_where_no_row_can_match():
    scan = scan_of((0, "a", 1, []), (0, "b", 1, []), (1, "c", 1, []), where="x = 1")
    index = index_of_files((0, "a", 1, [0, 1]), (0, "b", 1, [2, 3]), (1, "c", 1, [None, -1]))

    assert ["matches", "index", "index"] == fates(scan, index)
    assert [True, False, False] == mark_read_slices(
        decide_by_index(scan, scan.condition, index)
    ).tolist()


@pytest.mark.parametrize("other", [(1, "a", 1), (0, "b", 1), (0, "a", 2)])
def test_a_file_is_known_by_its_partition_its_name_and_its_size(other):
    scan = scan_of((0, "a", 1, []))

    assert ["notIndexed"] == fates(scan, index_of_files((*other, [9])))


def test_slices_may_be_some_of_the_index_and_in_any_order():
    scan = scan_of((1, "c", 3, []), (0, "z", 1, []), (0, "b", 2, []))
    index = index_of_files((0, "a", 1, [1]), (0, "b", 2, [9]), (1, "c", 3, [1]), (1, "d", 4, [1]))

    assert ["matches", "notIndexed", "index"] == fates(scan, index)


def test_partitions_count_within_each_side_of_an_or():
    sides = "(day = '2026-01-01' AND x = 1) OR (day = DATE '2026-01-02' AND x = 2)"
    slices = [(day, name, 1, []) for day in range(3) for name in "ab"]
    files = [(day, name, 1, [1 if name == "a" else 2]) for day in range(3) for name in "ab"]

    expected = ["matches", "index", "index", "matches", "index", "index"]
    assert expected == fates(scan_of(*slices, where=sides), index_of_files(*files))


def test_a_partition_of_no_value_is_null():
    slices = [(0, "a", 1, []), (2, "b", 1, [])]
    index = index_of_files((0, "a", 1, [1]), (2, "b", 1, [1]))

    assert ["index", "matches"] == fates(scan_of(*slices, where="x = 1 AND day IS NULL"), index)
    assert ["matches", "index"] == fates(
        scan_of(*slices, where="NOT (x = 2 OR day IS NULL)"), index
    )
    assert ["index", "index"] == fates(
        scan_of(*slices, where="x = 1 AND day > '2026-03-01'"), index
    )


def test_what_the_index_says_of_a_column_that_folders_say_does_not_count():
    values = {"x": [1], "day": [date(1999, 1, 1)]}
    schema = pa.schema([SCHEMA.field("x"), SCHEMA.field("day")])
    index = make_index((PARTITIONS[0], "a", 1, values), columns=("x", "day"), schema=schema)
    where = "x = 1 AND day = '2026-01-01'"

    assert ["matches"] == fates(scan_of((0, "a", 1, []), where=where), index)
    assert ("x",) == list_file_columns(scan_of(), parse_condition(where, "UTC"))


def test_slices_with_log_files_are_read_whatever_their_base_file_says():
    scan = scan_of((0, "a", 1, ["l1"]), (0, "b", 1, ["l2"]), (0, None, 0, ["l3"]), (0, "z", 1, "l"))
    index = index_of_files((0, "a", 1, [1]), (0, "b", 1, [2]))

    assert ["logs", "logs", "logs", "notIndexed"] == fates(scan, index)


def test_slices_with_log_files_that_cannot_match_either_are_left_out():
    scan = scan_of((0, "a", 1, ["l1"]), (0, "b", 1, ["l2"]), (0, None, 0, ["l3"]), (0, "c", 1, []))
    index = index_of_files((0, "a", 1, [1]), (0, "b", 1, [2]), (0, "c", 1, [3]))
    base = decide_by_index(scan, scan.condition, index)
    found = decide_by_logs(scan, base, np.array([True, False]))

    assert [1, 2] == find_slices_with_undecided_logs(scan, base).tolist()
    assert ["logs", "logStatistics", "logs", "index"] == [EVERY[code].key for code in found]


@pytest.mark.parametrize(
    ("where", "fate"),
    [
        ("coalesce(s, 'x') = 'x'", "notUnderstood"),
        ("hash(x) = 1", "notUnderstood"),
        ("day = '2026-01-01'", "notUnderstood"),
        ("x = 9 OR hash(s) = 1", "notUnderstood"),
        ("s = '${env:USER}' AND x = 9", "notUnderstood"),
        ("y = 9", "noColumn"),
        ("x = 9 AND upper(s) = 'X'", "index"),
        ("x = 9 AND y = 1", "index"),
        ("x = 1 AND y = 1", "matches"),
        ("X = 9", "index"),
    ],
)
def test_what_is_not_understood_or_not_indexed_decides_nothing(where, fate):
    index = index_of_files((0, "a", 1, [1, 2]))

    assert [fate] == fates(scan_of((0, "a", 1, []), where=where), index)


def test_without_an_index_all_is_read():
    assert ["noIndex"] == fates(scan_of((0, "a", 1, [])), None)


def test_a_file_of_which_nothing_is_known_is_read():
    scan = scan_of((0, "a", 1, []), (0, "b", 1, []))
    known = index_of_files((0, "a", 1, [1]), (0, "b", 1, [2]))
    stats = known.columns["x"]
    unknown = type(stats).unknown(stats.type, 2)

    assert ["noStatistics"] * 2 == fates(scan, replace(known, columns={"x": unknown}))


def test_an_index_of_another_type_than_the_table_has_decides_nothing():
    index = make_index((PARTITIONS[0], "a", 1, [9]), kind=pa.int32())

    assert ["notUnderstood"] == fates(scan_of((0, "a", 1, [])), index)


def test_a_time_is_of_the_session_s_zone():
    schema = pa.schema([("x", pa.timestamp("us", "UTC"))])
    index = make_index((PARTITIONS[0], "a", 1, [0]), kind=pa.timestamp("us", "UTC"))
    scans = [
        replace(scan_of((0, "a", 1, []), where="x = '1970-01-01'", zone=zone), table_schema=schema)
        for zone in ("UTC", "+01:00")
    ]
    scans = [replace(scan, partition_schema=pa.schema([])) for scan in scans]

    assert [["matches"], ["index"]] == [fates(scan, index) for scan in scans]


def test_clocks_matter_where_a_condition_names_days_or_times():
    scan = scan_of()
    said = {where: uses_time_columns(scan, parse_condition(where, "")) for where in (
        "x = 1", "DAY > '2024-01-01' OR x = 1", "s = '2024-01-01'", "current_date = '2024-01-01'"
    )}  # fmt: skip

    assert [False, True, False, False] == list(said.values())


def test_sessions_that_read_conditions_in_another_way_are_told_apart():
    keys = [
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled",
        "spark.sql.parser.escapedStringLiterals",
        "spark.sql.ansi.enforceReservedKeywords",
        "spark.sql.legacy.parquet.datetimeRebaseModeInRead",
        "spark.sql.ansi.enabled",
    ]

    assert keys[:3] == find_unusual_keys(keys)


# Reading the index.


def published(path, *values):
    """Return a storage with an index version for each of the given values of x, in order."""
    storage = open_storage(str(path))
    for value in values:
        data = encode_index(index_of_files((0, "a", 1, [value])), Provenance(
            table="t", instant=INSTANT, tool="test"))  # fmt: skip
        publish_version(storage, list_versions(storage), INSTANT, data.to_pybytes())
    return storage


def test_an_index_is_read_in_two_listings_and_a_read(tmp_path):
    storage = RecordingStorage(published(tmp_path, 1))
    found = read_index(storage, ("x", "y"))

    assert (["x"], 1, ()) == (list(found.index.columns), len(found.index), found.problems)
    assert ["list", "list", "read"] == [call.method for call in storage.calls]


def test_a_damaged_index_is_said_and_the_one_before_it_counts(tmp_path):
    storage = published(tmp_path, 1, 2)
    last = list_versions(storage).last
    (tmp_path / last.path).write_bytes(b"x" * last.size)
    found = read_index(storage, ("x",))

    assert [1] == found.index.columns["x"].least.to_pylist()
    assert 1 == len(found.problems)
    assert found.problems[0].startswith(f"{last.path}: ")


def test_of_a_big_index_only_the_columns_asked_for_are_read(tmp_path, monkeypatch):
    storage = RecordingStorage(published(tmp_path, 1))
    monkeypatch.setattr(pruning, "_READ_WHOLE_BYTES", 0)
    found = read_index(storage, ("x",))

    assert [1] == found.index.columns["x"].least.to_pylist()
    assert {"list", "read_range"} == {call.method for call in storage.calls}


def test_an_index_that_goes_while_it_is_read_is_said(tmp_path, monkeypatch):
    storage = published(tmp_path, 1, 2)
    read, (first, last) = type(storage).read, list_versions(storage).valid

    def gone(self, path):
        if path == last.path:
            raise NotFoundError(path, "is not there")
        return read(self, path)

    monkeypatch.setattr(type(storage), "read", gone)
    found = read_index(storage, ("x",))

    assert (first.path, (f"{last.path}: was removed while it was read",)) == (
        found.version,
        found.problems,
    )


def test_without_an_index_there_is_no_problem(tmp_path):
    found = read_index(open_storage(str(tmp_path)), ("x",))

    assert (None, None, ()) == (found.index, found.version, found.problems)


@pytest.mark.parametrize("error", [StorageError("p", "is on fire"), RuntimeError("is on fire")])
@pytest.mark.parametrize("method", ["list", "read"])
def test_whatever_happens_to_the_index_the_read_goes_on(method, error, tmp_path, monkeypatch):
    storage = published(tmp_path, 1)

    def fail(*_):
        raise error

    monkeypatch.setattr(type(storage), method, fail)
    found = read_index(storage, ("x",))

    assert found.index is None
    assert "is on fire" in found.problems[0]


# Row groups.


def file_of_groups(folder, name="a.parquet"):
    """Return a file with three row groups of ten rows: x from 0 to 29, y 0, 1, 2."""
    path = folder / PARTITIONS[0] / name
    path.parent.mkdir(exist_ok=True)
    table = pa.table({"x": range(30), "y": [at // 10 for at in range(30)]})
    pq.write_table(table, path, row_group_size=10)
    return path


@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ("x = 12", [False, True, False]),
        ("x > 12", [False, True, True]),
        ("s IS NULL AND x < 5", [True, False, False]),
        ("s = 'a'", [False, False, False]),
        ("day = '2026-01-01' AND y = 2 OR day = '2026-01-02' AND y = 1", [False, False, True]),
    ],
)
def test_row_groups_are_judged_by_the_footer_and_the_folder(where, groups, tmp_path):
    path = file_of_groups(tmp_path)
    test = pickle.loads(pickle.dumps(RowGroupTest.from_scan(scan_of(where=where))))
    found = test.may_match(f"{PARTITIONS[0]}/a.parquet", pq.read_metadata(path), {"day": DAYS[0]})

    assert groups == found.tolist()


def test_without_a_condition_there_is_nothing_to_judge():
    assert RowGroupTest.from_scan(replace(scan_of(), condition=None)) is None
    assert RowGroupTest.from_scan(scan_of(where="day = '2026-01-01'")) is None


def test_a_worker_reads_the_row_groups_that_may_match_where_there_are_no_log_files(tmp_path):
    path = file_of_groups(tmp_path)
    scan = scan_of((0, path.name, path.stat().st_size, []), where="x = 12", location=tmp_path)
    ref = SliceFiles(base=f"{PARTITIONS[0]}/{path.name}", base_size=path.stat().st_size)
    source = open_storage(str(tmp_path))
    batches = list(SliceRowReader.from_scan(scan).read(ref, {"day": DAYS[0]}, source))
    every = list(
        SliceRowReader.from_scan(replace(scan, condition=None)).read(ref, {"day": None}, source)
    )

    assert [*range(10, 20)] == [x for batch in batches for x in batch["x"].to_pylist()]
    assert 30 == sum(map(len, every))


def test_row_groups_of_what_is_read_are_counted(tmp_path):
    path = file_of_groups(tmp_path)
    size = path.stat().st_size
    slices = [(0, path.name, size, []), (0, path.name, size, ["l"]), (0, "gone", 99, [])]
    found = count_row_groups(
        open_storage(str(tmp_path)), scan_of(*slices, where="x = 12", location=tmp_path)
    )

    assert (2, 1, 3, 1) == (found.files, found.looked_at, found.groups, found.kept_groups)
    assert 0 < found.kept_bytes < found.bytes < size


def test_people_are_told_what_every_stage_leaves_and_why(tmp_path):
    storage = published(tmp_path, 7)
    scan = scan_of(*((0, name, 1, []) for name in "abcde"), (0, "f", 9, ["l"]), where="x = 1")
    groups = RowGroupCounts(
        files=100, looked_at=64, groups=128, kept_groups=2, bytes=2048, kept_bytes=1024
    )
    found = make_read_report(
        prune_by_index(scan, storage), ReadArguments(), where="x = 1", row_groups=groups
    )
    text = explanation_text(found, Terminal())

    assert (
        "  stages  all: 6 base files (14 bytes), 1 log file (1 byte)\n"
        "      after partitions: 6 base files (14 bytes), 1 log file (1 byte)\n"
        "      after the index: 5 base files (13 bytes), 1 log file (1 byte)\n"
        "      row groups: 2 of 128 may match (1.0 KiB of 2.0 KiB), by the footers of 64\n"
        "        of 100 base files\n"
    ) in text
    assert (
        "  skipped  1 slice (1 byte): by the index no row can match\n"
        f"      {PARTITIONS[0]}/a\n"
        "  read  5 slices (14 bytes): the base file is not in the index\n"
        f"      {PARTITIONS[0]}/b\n"
        f"      {PARTITIONS[0]}/c\n"
        f"      {PARTITIONS[0]}/d\n"
        "      … and 2 more; --format json lists all\n"
    ) in text
    assert f"  index  {found.index}\n" in text
