"""What the metadata tables of tables by real Hudi say wrongly; no JVM."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import BlockedError, FormatError, ReconcilerError, VanishingFilesError
from reconciler.hudi.files.names import BaseName
from reconciler.spec.model import MetadataUpkeep, TableSpec
from reconciler.state.current_files import find_newest_logs
from reconciler.state.metadata_differences import LOST_FILE
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.verification import verify
from reconciler.verification.verify import verify_metadata
from tests.metadata_lies import MetadataLiar, summarize
from tests.published_indexes import build_index, publish_index
from tests.selection import examples, long
from tests.trees import unpack

HERE = Path(__file__).parent
INDEXED = HERE / "indexed"
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
UNKNOWN = "20200101000000000"
BLOOM = b"org.apache.hudi.bloomfilter"
#: tables with a metadata table, by what is special about them
TRUE_TABLES = (
    "reading/clustered_logs_0.15.0",
    "reading/clustered_logs_alone_1.2.0",
    "updated/1.0.2",
    "updated/1.2.0",
    "v6_cow_part",
    "v8_cdc_mor",
    "v8_index",
    "v9_mor_part",
)
#: parts of the names of other tables, and why they are not compared
NOT_TRUE = {
    **dict.fromkeys(
        ("lying", "every_type", "columns_added"), "Hudi's own entries lose rows; see below"
    ),
    "archival": "its data files are empty, because an archival reads none",
    "compacting/1.0.2": "Hudi 1.0.2 computes partition_stats of log files without the base file of "
    "their pending compaction",
}


@lru_cache
def list_tables():
    """Return the names of all packed tables."""
    packed = sorted(HERE.rglob("*.zip"))
    return [str(path.relative_to(HERE)).removesuffix(".zip") for path in packed]


def open_tables(name, folder):
    """Yield storages of the tables in a zip."""
    unpack(HERE / f"{name}.zip", folder)
    for properties in sorted(folder.rglob(".hoodie/hoodie.properties")):
        if properties.parent.parent.name != "metadata":
            yield ReadOnlyStorage(open_storage(str(properties.parent.parent)))


class Indexed:
    """A table with all indexes, by one version of Hudi; ``base``: one of its base files."""

    def __init__(self, version, folder):
        self.version = version
        self.folder = unpack(INDEXED / f"{version}.zip", folder)
        self.liar = MetadataLiar(self.folder)
        files = self.list_bases()
        self.newest = [
            path
            for path in files
            if path.name
            == max(
                (f.name for f in files if f.name.split("_")[0] == path.name.split("_")[0]),
                key=lambda name: BaseName.parse(name).instant,
            )
        ]
        self.base = self.newest[0]
        self.partition = self.base.parent.name
        self.other = next(path for path in self.newest if path.parent != self.base.parent)

    def list_bases(self):
        return sorted(p for p in self.folder.rglob("*.parquet") if ".hoodie" not in p.parts)

    @property
    def key(self):
        return pq.read_table(self.base, columns=["_hoodie_record_key"])[0][0].as_py()

    @property
    def storage(self):
        return open_storage(str(self.folder))

    def verify(self, **options):
        return verify_metadata(ReadOnlyStorage(self.storage), None, **options)


@pytest.fixture(params=["1.2.0", long("0.15.0"), long("1.0.2")])
def indexed(request, tmp_path):
    return Indexed(request.param, tmp_path)


@pytest.mark.parametrize(
    "name", [*TRUE_TABLES, *(long(name) for name in list_tables() if name not in TRUE_TABLES)]
)
def test_nothing_differs_where_hudi_tells_the_truth(name, tmp_path):
    for part, why in NOT_TRUE.items():
        if part in name:
            pytest.skip(why)
    for storage in open_tables(name, tmp_path):
        if name == "v6_restore_pending":
            with pytest.raises(BlockedError, match="restore"):
                verify_metadata(storage, None)
        else:
            assert () == verify_metadata(storage, None).differences


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("lying/statistics_0.15.0", ["f", "y", "f", "ls", "y"]),
        ("lying/statistics_1.2.0", ["f", "ls", "y", "f", "y"]),
        ("lying/evolution_1.2.0", ["c"]),
    ],
)
def test_entries_by_which_hudi_itself_loses_rows_are_named(name, columns, tmp_path):
    (storage,) = open_tables(name, tmp_path)

    found = verify_metadata(storage, None)

    assert columns == [one.column for one in found.differences]
    assert {"column_stats"} == {one.metadata_partition for one in found.differences}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_index_of_a_true_table_is_compared(version, tmp_path):
    indexed = Indexed(version, tmp_path)
    found = indexed.verify()
    compared = {check.metadata_partition: check.compared for check in found.checks}
    columns = {"0.15.0": 18, "1.0.2": 17, "1.2.0": 18}[indexed.version]
    expected = {
        "files": 3,
        "bloom_filters": 3,
        "column_stats": 3 * columns,
        "partition_stats": 2 * columns,
        "record_index": 5,
    }
    if indexed.version == "0.15.0":
        del expected["partition_stats"]

    assert expected == compared
    assert () == found.differences


# --- one lie each --------------------------------------------------------------------------------


def test_a_file_that_is_not_listed_is_missing(indexed):
    indexed.liar.list_file(indexed.partition, indexed.base.name, None)
    indexed.liar.list_file(indexed.partition, indexed.base.name, None)

    expected = [("files", "missing", indexed.partition, indexed.base.name, None)]
    found = indexed.verify()

    assert expected == summarize(found)[:1]
    assert "lose its rows" in found.differences[0].effect


def test_a_listed_file_that_is_not_there_is_named(indexed):
    name = indexed.base.name.replace("-0_", "-9_", 1)
    indexed.liar.list_file(indexed.partition, name, 10)

    found = indexed.verify()

    assert [("files", "extra", indexed.partition, name, None)] == summarize(found)
    assert found.differences[0].effect != LOST_FILE  # its commit does not name it


def test_a_listed_file_of_a_task_that_was_retried_is_not_lost(indexed):
    file_id, token, rest = indexed.base.name.split("_", 2)
    indexed.liar.list_file(indexed.partition, f"{file_id}_{token}9_{rest}", 10)

    assert [False] == [one.effect == LOST_FILE for one in indexed.verify().differences]


def test_a_file_that_reads_need_and_that_is_gone_is_told_from_others(indexed):
    old = indexed.base.name.replace(BaseName.parse(indexed.base.name).instant, UNKNOWN)
    indexed.liar.list_file(indexed.partition, old, 10)
    indexed.base.unlink()

    effects = {one.file: one.effect for one in indexed.verify().differences if not one.column}

    assert effects[indexed.base.name] == LOST_FILE
    assert effects[old] != LOST_FILE


def test_a_log_file_that_is_gone_is_lost_even_if_its_commit_names_another(tmp_path):
    (storage,) = open_tables("v9_mor_part", tmp_path)
    state = observe(storage, None, observed_ms=0)
    row = find_newest_logs(state.view)[0]
    partition, name = state.files.partitions[state.files.partition[row]], state.files.name[row]
    other = name.as_py().replace(".log.1_", ".log.2_", 1)
    MetadataLiar(Path(storage.location)).list_file(partition, other, 10)

    (found,) = verify_metadata(storage, None).differences

    assert (other, LOST_FILE) == (found.file, found.effect)


@pytest.mark.parametrize("name", ["v6_cow_part", "v9_index"])
def test_of_the_files_that_are_gone_only_those_of_current_slices_are_lost(name, tmp_path):
    (storage,) = open_tables(name, tmp_path)
    view = (state := observe(storage, None, observed_ms=0)).view
    is_current = view.is_current[view.row_slice]
    rows = [is_current.argmax(), is_current.argmin()]
    for row in rows:
        (Path(storage.location) / state.files.locate_file(row)[0]).unlink()

    found = verify_metadata(storage, None).differences

    effects = {one.file: one.effect for one in found if one.metadata_partition == "files"}
    lost, old = (state.files.name[row].as_py() for row in rows)
    assert effects[lost] == LOST_FILE
    assert effects[old] != LOST_FILE


def test_a_wrong_size_is_named(indexed):
    size = indexed.base.stat().st_size
    indexed.liar.list_file(indexed.partition, indexed.base.name, size + 1)

    found = indexed.verify()

    expected = [("files", "wrong", indexed.partition, indexed.base.name, None)]
    assert expected == summarize(found)
    assert (f"{size + 1} bytes", f"{size} bytes") == (
        found.differences[0].recorded,
        found.differences[0].actual,
    )


@pytest.mark.parametrize(
    ("column", "least", "greatest"),
    [("i", -(2**31), -5000), ("s", "zzz", "zzzz"), ("d", 1e300, 1e301)],
)
def test_a_range_that_excludes_values_is_named(indexed, column, least, greatest):
    indexed.liar.set_range(indexed.partition, indexed.base.name, column, least, greatest)

    expected = [("column_stats", "wrong", indexed.partition, indexed.base.name, column)]
    assert expected == summarize(indexed.verify())


def test_a_wider_range_is_no_difference(indexed):
    indexed.liar.set_range(indexed.partition, indexed.base.name, "i", -(2**31), 2**31 - 1, nulls=1)

    assert [] == summarize(indexed.verify())


def test_a_range_of_nulls_over_values_is_named(indexed):
    indexed.liar.set_range(indexed.partition, indexed.base.name, "i", None, None, nulls=9)

    found = indexed.verify()

    assert [("column_stats", "wrong", indexed.partition, indexed.base.name, "i")] == summarize(
        found
    )
    assert "null in all rows" == found.differences[0].recorded


def test_a_missing_range_is_named_with_its_column(indexed):
    indexed.liar.remove_range(indexed.partition, indexed.base.name, "i")

    expected = [("column_stats", "missing", indexed.partition, indexed.base.name, "i")]
    assert expected == summarize(indexed.verify())


def test_ranges_of_partitions_are_compared_with_their_files(tmp_path):
    indexed = Indexed("1.2.0", tmp_path)
    indexed.liar.set_range(indexed.partition, None, "i", 2**31 - 2, 2**31 - 1)
    indexed.liar.remove_range(indexed.other.parent.name, None, "s")

    expected = [
        ("partition_stats", "wrong", indexed.partition, "", "i"),
        ("partition_stats", "missing", indexed.other.parent.name, "", "s"),
    ]
    assert sorted(expected) == sorted(summarize(indexed.verify()))


def test_another_filter_is_named(indexed):
    other = pq.read_metadata(indexed.other).metadata[BLOOM].decode()
    indexed.liar.set_filter(indexed.partition, indexed.base.name, "DYNAMIC_V0", other)

    expected = [("bloom_filters", "wrong", indexed.partition, indexed.base.name, None)]
    assert expected == summarize(indexed.verify())


def test_a_missing_filter_is_named(indexed):
    indexed.liar.remove_filter(indexed.partition, indexed.base.name)

    expected = [("bloom_filters", "missing", indexed.partition, indexed.base.name, None)]
    assert expected == summarize(indexed.verify())


def test_a_key_with_the_location_of_another_file_is_named(indexed):
    key, file_id = indexed.key, BaseName.parse(indexed.base.name).file_id
    indexed.liar.set_location(key, indexed.other.parent.name, indexed.other.name)

    expected = [("record_index", "wrong", indexed.partition, file_id, key)]
    assert expected == summarize(indexed.verify())


def test_a_key_with_the_location_of_a_file_group_that_is_gone_is_named(indexed):
    key, file_id = indexed.key, BaseName.parse(indexed.base.name).file_id
    gone = f"00000000-0000-0000-0000-000000000001-0_0-1-1_{indexed.liar.instant}.parquet"
    indexed.liar.set_location(key, indexed.partition, gone)

    found = indexed.verify()

    assert [("record_index", "wrong", indexed.partition, file_id, key)] == summarize(found)
    assert "no current file group" in found.differences[0].recorded


def test_a_key_without_location_is_missing(indexed):
    key, file_id = indexed.key, BaseName.parse(indexed.base.name).file_id
    indexed.liar.remove_location(key)

    expected = [("record_index", "missing", indexed.partition, file_id, key)]
    assert expected == summarize(indexed.verify())


def test_a_damaged_index_differs_as_a_whole_and_the_others_are_compared(indexed):
    for path in (indexed.folder / ".hoodie/metadata/record_index").glob("*record-index-*"):
        path.write_bytes(path.read_bytes().replace(b'TRABLK"$', b'TRABLK"?'))

    found = indexed.verify()

    assert {"record_index"} == {one.metadata_partition for one in found.differences}
    assert {"readers and writers that use this index fail"} == {o.effect for o in found.differences}


def test_a_metadata_table_without_its_properties_differs_as_no_writer_opens_it(tmp_path):
    indexed = Indexed("1.2.0", tmp_path)
    path = indexed.folder / ".hoodie/metadata/.hoodie/hoodie.properties"
    backup = path.rename(path.with_name("hoodie.properties.backup"))
    spec = TableSpec(name="t", path=str(tmp_path), metadata=MetadataUpkeep(repair="rebuild"))
    storage = ReadOnlyStorage(open_storage(str(indexed.folder)))

    assert () == verify_metadata(storage, spec).differences
    backup.unlink()

    (found,) = verify_metadata(storage, spec).differences
    assert found.recorded == "is missing, although the table has a metadata table"
    with pytest.raises(FormatError, match=r"\.hoodie/metadata/\.hoodie/hoodie\.properties"):
        verify_metadata(storage, None)


# --- the table's own index -----------------------------------------------------------------------


def test_a_true_index_of_the_table_does_not_differ(tmp_path):
    indexed = Indexed("1.2.0", tmp_path)
    publish_index(indexed.folder, ["i", "s", "d"])

    found = indexed.verify()

    assert 9 == found.checks[-1].compared
    assert () == found.differences


def test_a_bound_of_the_tables_own_index_that_excludes_values_is_named(tmp_path):
    indexed = Indexed("1.2.0", tmp_path)
    index = build_index(indexed.folder, ["i"])
    row = index.name.to_pylist().index(indexed.base.name)
    least = index.columns["i"].least.to_pylist()
    least[row] = 2**31 - 1
    greatest = index.columns["i"].greatest.to_pylist()
    greatest[row] = 2**31 - 1
    column = replace(
        index.columns["i"],
        least=pa.array(least, pa.int32()),
        greatest=pa.array(greatest, pa.int32()),
    )
    publish_index(indexed.folder, ["i"], index=replace(index, columns={"i": column}))

    expected = [(".zindex", "wrong", indexed.partition, indexed.base.name, "i")]
    assert expected == summarize(indexed.verify())


def test_a_damaged_version_of_the_tables_own_index_is_named(tmp_path):
    indexed = Indexed("1.2.0", tmp_path)
    version = publish_index(indexed.folder, ["i"])
    path = indexed.folder / version.path
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)

    assert [(".zindex", "wrong", "", version.path, None)] == summarize(indexed.verify())


# --- samples, and tables that change -------------------------------------------------------------


def test_a_sample_compares_all_listed_files_and_some_ranges(tmp_path):
    indexed = Indexed("1.2.0", tmp_path)

    compared = {
        sample: [check.compared for check in indexed.verify(sample=sample).checks]
        for sample in (0.5, 1.0)
    }

    assert compared[0.5][0] == compared[1.0][0]
    assert sum(compared[0.5]) < sum(compared[1.0])


class Moving(ReadOnlyStorage):
    """A table whose writer removes a file and adds an instant at each of the first looks."""

    def __init__(self, inner, timeline, hidden, looks):
        super().__init__(inner)
        self.timeline, self.hidden, self.looks = timeline, hidden, looks
        self.walks = 0

    def walk(self, *arguments):
        self.walks += 1
        for folder in super().walk(*arguments):
            kept = [at for at, name in enumerate(folder.names) if self._shows(name)]
            if self.walks <= self.looks:
                instant = f"2999010100000000{self.walks}"
                (self.timeline / f"{instant}.clean.requested").write_bytes(b"")
                (self.timeline / f"{instant}.rollback.requested").write_bytes(b"")
                (self.timeline / f"{instant}.clean.requested").unlink()
            yield type(folder)(
                path=folder.path,
                names=[folder.names[at] for at in kept],
                sizes=[folder.sizes[at] for at in kept],
            )

    def _shows(self, name):
        return self.walks > self.looks or name != self.hidden


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr(verify, "sleep", lambda _seconds: None)


@pytest.mark.usefixtures("no_pauses")
def test_a_table_that_changes_while_it_is_read_is_looked_at_again(tmp_path):
    indexed = Indexed("1.2.0", tmp_path)
    timeline = indexed.folder / ".hoodie/timeline"
    moving = Moving(indexed.storage, timeline, indexed.base.name, looks=2)

    assert () == verify_metadata(moving, None).differences
    assert 3 == moving.walks


@pytest.mark.usefixtures("no_pauses")
def test_a_table_that_changes_at_every_look_is_busy(tmp_path):
    indexed = Indexed("1.2.0", tmp_path)
    timeline = indexed.folder / ".hoodie/timeline"
    moving = Moving(indexed.storage, timeline, indexed.base.name, looks=99)

    with pytest.raises(VanishingFilesError, match="changed at every look"):
        verify_metadata(moving, None)


# --- damage --------------------------------------------------------------------------------------


def damage(data, rng):
    """Return the data cut, emptied, or with some bytes changed."""
    kind = rng.randrange(4)
    if kind == 0 or not data:
        return b""
    if kind == 1:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 3))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def find_problem(indexed):
    """Return the message with which a verification fails, None if it does not."""
    try:
        indexed.verify()
    except ReconcilerError as problem:
        return str(problem)
    return None


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_file_is_named_or_does_not_matter(seed, tmp_path):
    indexed = Indexed(VERSIONS[seed], tmp_path)
    publish_index(indexed.folder, ["i", "s"])
    rng = random.Random(seed)
    files = [
        *(p for p in sorted((indexed.folder / ".hoodie/metadata").rglob("*")) if p.is_file()),
        *(p for p in sorted((indexed.folder / ".hoodie/.zindex").rglob("*")) if p.is_file()),
        *indexed.newest,
    ]
    for _ in range(examples(3, many=334)):
        path = rng.choice(files)
        data = path.read_bytes()
        path.write_bytes(damage(data, rng))
        try:
            problem = find_problem(indexed)
        finally:
            path.write_bytes(data)

        assert problem is None or path.name in problem or path.parent.name in problem

    assert () == indexed.verify().differences
