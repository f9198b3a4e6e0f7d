"""What reads of tables that real Hudi wrote touch, and the rows in it, without any JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest

from reconciler.errors import BlockedError, UnsupportedError
from reconciler.reader.lost_files import LostFileError
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import SliceRowReader, check_mergeable, get_slice_files
from reconciler.storage.open import open_storage
from tests.trees import unpack

TABLES = Path(__file__).parent
EXPECTED = {
    path.name.removesuffix(".expected.json"): json.loads(path.read_text())
    for path in sorted(TABLES.glob("*.expected.json"))
}
KINDS = {"snapshot": "snapshot", "read_optimized": "readOptimized"}
READ = [
    (name, query)
    for name, expected in EXPECTED.items()
    for query in KINDS
    if expected.get(query) and name != "v8_mor_partial"
]


def opened(name, folder):
    return open_storage(str(unpack(TABLES / f"{name}.zip", folder) / name))


def rows_of(scan, storage):
    """Every row of a scan as a list, sorted."""
    check_mergeable(scan)
    reading = SliceRowReader.from_scan(scan)
    found = []
    for row in range(len(scan.slices)):
        values = scan.get_partition_values(scan.slices.column("partition")[row].as_py())
        for batch in reading.read(get_slice_files(scan, row), values, storage):
            assert batch.schema == scan.schema
            found += [list(row.values()) for row in batch.to_pylist()]
    return by_key(found)


def columns_of(scan, storage, *names):
    """The text of some columns by id."""
    reading = SliceRowReader.from_scan(scan)
    found = {}
    for row in range(len(scan.slices)):
        values = scan.get_partition_values(scan.slices.column("partition")[row].as_py())
        for batch in reading.read(get_slice_files(scan, row), values, storage):
            texts = [pc.cast(batch.column(name), "string").to_pylist() for name in names]
            ids = batch.column("id").to_pylist()
            found |= {key: list(row) for key, *row in zip(ids, *texts, strict=True)}
    return dict(sorted(found.items()))


def bases_of(scan):
    return scan.slices.column("base").to_pylist()


def by_key(rows):
    return sorted(rows, key=lambda row: [str(value) for value in row])


@pytest.mark.parametrize(("name", "query"), READ)
def test_the_rows_and_columns_are_those_that_hudi_reads(name, query, tmp_path):
    storage = opened(name, tmp_path)
    scan = open_scan(storage, ReadRequest(kind=KINDS[query]))
    answer = EXPECTED[name][query]
    names = scan.schema.names
    if EXPECTED[name]["hudi"].startswith("0."):
        # it moves partition columns to the end where it reads base files only; Hudi 1 does not
        names = sorted(names, key=answer["cols"].index)
    order = [answer["cols"].index(column) for column in scan.schema.names]

    assert answer["cols"] == names
    assert by_key([[row[at] for at in order] for row in answer["rows"]]) == rows_of(scan, storage)


WITH_VIEW = [
    name for name, expected in EXPECTED.items() if (expected.get("fsview") or {}).get("partitions")
]


def names_of(slices, path):
    folder = f"{path}/" if path else ""
    return {
        (base and folder + base, tuple(sorted(folder + log for log in logs)))
        for _file_id, _key, base, logs in slices
        if base or logs
    }


@pytest.mark.parametrize("name", WITH_VIEW)
def test_the_slices_equal_those_of_hudis_view(name, tmp_path):
    expected = EXPECTED[name]
    storage = opened(name, tmp_path)
    snapshot = open_scan(storage, ReadRequest()).slices.to_pylist()
    bases = bases_of(open_scan(storage, ReadRequest(kind="readOptimized")))
    hudi, hudis_bases = set(), set()
    for path, answers in expected["fsview"]["partitions"].items():
        without_changes = [
            (*found[:3], [log for log in found[3] if not log.endswith(".cdc")])
            for found in answers["merged"]
        ]
        hudi |= names_of(without_changes, path)
        hudis_bases |= {f"{path}/{base}".lstrip("/") for base in answers["latest_base"]}

    if not expected.get("skip_merged"):
        assert hudi == {(row["base"], tuple(sorted(row["logs"]))) for row in snapshot}
    assert hudis_bases == set(bases)


@pytest.mark.parametrize("name", sorted({name for name, _query in READ}))
def test_every_readable_write_shows_rows_of_its_time(name, tmp_path):
    storage = opened(name, tmp_path)
    active = EXPECTED[name]["timeline"]["active"]
    writes = [row[0] for row in active if row[1].endswith("commit") and row[2] == "COMPLETED"]
    newest = open_scan(storage, ReadRequest())
    rows, earliest = [], None
    for time in writes:
        try:
            scan = open_scan(storage, ReadRequest(as_of=time))
        except BlockedError as refused:
            earliest = str(refused).rpartition("as of ")[2]
            continue
        assert scan.as_of == time
        assert earliest is None or earliest <= time
        if any(
            "_00000000000001." in (base or "") for base in scan.slices.column("base").to_pylist()
        ):
            continue
        rows = rows_of(scan, storage)
        assert all(row[0] <= time for row in rows)

    assert rows_of(newest, storage) == rows


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("v8_mor_overlap", "20261121051650743"),
        ("v8_mor_overlap_done", "20261121051650743"),
        ("v9_mor_overlap_done", "20261121051411773"),
    ],
)
def test_time_travel_to_a_write_shows_it_though_it_ended_after_a_compaction_began(
    name, time, tmp_path
):
    """Hudi 1.2.0 files its log under the later compaction, and shows neither 50 nor the updates."""
    storage = opened(name, tmp_path)
    rows = rows_of(open_scan(storage, ReadRequest(as_of=time, columns=("id", "ts"))), storage)

    assert [[0, 3], [1, 3], [2, 2], *([i, 1] for i in range(3, 9)), [50, 3]] == sorted(rows)


def test_time_travel_before_a_clean_is_refused_with_the_earliest_instant(tmp_path):
    storage = opened("v9_cow_part", tmp_path)
    scan = open_scan(storage, ReadRequest(as_of="20261121045506208"))

    assert "20261121045506208" == scan.as_of  # a savepoint keeps it
    with pytest.raises(BlockedError, match="the earliest readable time is 20261121045506208"):
        open_scan(storage, ReadRequest(as_of="20261121045418920"))


def test_an_archived_range_is_refused_with_where_it_could_begin(tmp_path):
    storage = opened("v9_cow_nopart", tmp_path)
    with pytest.raises(BlockedError, match=r"are archived, .* begin at \d{17} or later"):
        open_scan(storage, ReadRequest(kind="incremental", begin="20261121045859151"))


@pytest.mark.parametrize(
    ("name", "folder"), [("v6_cow_nopart", ".hoodie"), ("v9_cow_nopart", ".hoodie/timeline")]
)
def test_the_archive_says_the_columns_where_no_active_write_does(name, folder, tmp_path):
    storage = opened(name, tmp_path)
    columns = open_scan(storage, ReadRequest()).schema
    # nor does hoodie.properties, then
    (tmp_path / name / ".hoodie/hoodie.properties").write_bytes(
        storage.read(".hoodie/hoodie.properties").replace(b".create.schema", b".another")
    )
    for file in (tmp_path / name / folder).glob("*commit"):
        data = file.read_bytes().replace(b'"schema"', b'"scheme"')
        file.write_bytes(data.replace(b"\x0cschema", b"\x0cscheme"))  # a map's key in Avro
    for file in (tmp_path / name).glob("*.parquet"):
        file.unlink()

    assert columns == open_scan(storage, ReadRequest()).schema


def test_a_pending_restore_is_refused(tmp_path):
    with pytest.raises(BlockedError, match="restore"):
        open_scan(opened("v6_restore_pending", tmp_path), ReadRequest())


def test_partial_updates_are_refused_by_name(tmp_path):
    storage = opened("v8_mor_partial", tmp_path)
    scan = open_scan(storage, ReadRequest())

    with pytest.raises(UnsupportedError, match="partial update"):
        rows_of(scan, storage)


@pytest.mark.parametrize("name", ["v6_bootstrap", "v8_bootstrap"])
def test_a_bootstrap_skeleton_is_refused_by_name_where_a_read_needs_it(name, tmp_path):
    storage = opened(name, tmp_path)
    scan = open_scan(storage, ReadRequest(as_of="00000000000001"))

    assert all(scan.slices.column("evolves").to_pylist())
    with pytest.raises(UnsupportedError, match="bootstrap skeleton"):
        check_mergeable(scan)


def test_a_column_that_files_hold_under_another_name_is_refused(tmp_path):
    """Hudi 1.2.0 reads null for it, unless schema evolution on read is switched on."""
    storage = opened("renamed_column", tmp_path)

    with pytest.raises(UnsupportedError, match="column z was called x when its oldest"):
        open_scan(storage, ReadRequest())
    with pytest.raises(UnsupportedError, match="column z was"):
        open_scan(storage, ReadRequest(kind="incremental", begin="0", end="20261121173417"))
    before = open_scan(storage, ReadRequest(as_of="20261121173410295", columns=("id", "x", "y")))
    assert [["a", 1, 2]] == rows_of(before, storage)


PARTITIONED = json.loads((TABLES / "partitioned" / "expected.json").read_text())
#: where Hudi misreads the name of a folder, or reads nothing at all; files hold the truth
BETTER = {
    "plain": {"1": ["a%2Fb"], "4": ["x=y"], "5": ["p=1"]},
    "hive": {"1": ["a%2Fb"]},
    "moment": {"1": ["2024-01-02 03:04:05.000000Z"]},
    "two_slashes": {"1": ["a/b", "qa/b"], "2": ["c", "qc"]},
    "custom": {"1": ["c1704164645000", "1704164645000"]},
    "double": {"2": ["1e+20"]},  # no more than another spelling
}


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("partitioned")
    return unpack(TABLES / "partitioned" / "tables.zip", folder)


@pytest.mark.parametrize("name", PARTITIONED)
def test_partition_columns_hold_what_was_written(name, partitioned):
    storage = open_storage(str(partitioned / name))
    scan = open_scan(storage, ReadRequest())
    names = [column for column in ("p", "q") if column in scan.schema.names]
    hudi = PARTITIONED[name] or {}

    assert hudi | BETTER.get(name, {}) == columns_of(scan, storage, *names)


def newest_base_file(folder):
    """The path of the base file with the greatest instant."""
    files = [path for path in folder.rglob("*.parquet") if ".hoodie" not in path.parts]
    return max(files, key=lambda path: path.stem.rpartition("_")[2])


@pytest.mark.parametrize("name", ["v6_cow_nopart", "v9_cow_nopart", "v8_index"])
def test_a_lost_file_of_the_newest_write_is_an_error_that_names_it(name, tmp_path):
    """The slice before it would be taken for the newest, and older rows read without a word."""
    folder = unpack(TABLES / f"{name}.zip", tmp_path) / name
    storage, lost = open_storage(str(folder)), newest_base_file(folder)
    open_scan(storage, ReadRequest(), is_checked=True)
    lost.unlink()
    with pytest.raises(LostFileError) as error:
        open_scan(storage, ReadRequest(), is_checked=True)

    assert error.value.path == str(lost.relative_to(folder))
    assert f"which commit {lost.stem.rpartition('_')[2]} wrote" in error.value.problem
    assert "restore it from a copy, or roll that write back with Hudi" == error.value.remedy


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_files_that_no_newest_slice_has_may_be_gone(name, tmp_path):
    """Cleans remove them, also those of the newest write that it has replaced itself."""
    storage = opened(name, tmp_path)
    scan = open_scan(storage, ReadRequest(), is_checked=True)
    current = set(scan.slices.column("base").to_pylist())
    folder = tmp_path / name
    for path in [*folder.rglob("*.parquet")]:
        is_data = ".hoodie" not in path.parts
        if is_data and str(path.relative_to(folder)) not in current:
            path.unlink()

    assert len(scan.slices) == len(open_scan(storage, ReadRequest(), is_checked=True).slices)
