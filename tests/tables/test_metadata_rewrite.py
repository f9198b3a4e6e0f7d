"""Update the metadata table of a real table for rows moved into new files."""

from __future__ import annotations

import io
import re
import shutil
import uuid
from datetime import UTC
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

from reconciler.errors import BusyError, FormatError, StaleError, UnsupportedError
from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.avro_binary import parse_schema
from reconciler.hudi.codecs.log_blocks import BlockType, get_block_schema
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata import sync_decisions
from reconciler.hudi.metadata.index_keys import (
    build_bloom_keys,
    build_stats_keys,
    find_record_groups,
)
from reconciler.hudi.metadata.indexed_columns import learn_wrappers
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.table.properties import parse_java_properties
from reconciler.transaction.metadata.live_partitions import (
    drop_partitions,
    find_leftover_partitions,
)
from reconciler.transaction.metadata.rewrite_sync import (
    find_indexed_columns,
    find_listing_differences,
    prepare_rewrite_sync,
)
from reconciler.transaction.metadata.sync import SyncRequest
from tests.manual_clustering import FILE_IDS, ManualClustering, to_epoch_ms
from tests.trees import unpack

INDEXED = Path(__file__).parent / "indexed"
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
INDEXES = ("bloom_filters", "column_stats", "record_index")
PROPERTIES = ".hoodie/hoodie.properties"
#: one version where all behave the same
ONE = pytest.mark.parametrize("version", ["1.2.0"])


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def begun(version, tmp_path):
    """A clustering of a table with every index: inflight, with its files written."""
    return ManualClustering(unpack(INDEXED / f"{version}.zip", tmp_path)).begin().write()


def entries(metadata, partition):
    """Return key -> record of all visible blocks and base files, and key -> file group."""
    found, groups = {}, {}
    for number, newest in enumerate(metadata.list_slices(partition)):
        for block in metadata.read_visible_blocks(newest):
            if block.type is BlockType.HFILE_DATA:
                schema = parse_schema(get_block_schema(block), "")
                for key, value in hfile_reader.parse_hfile(block.content, "").scan_all():
                    record = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
                    found[key.decode()] = record
                    groups[key.decode()] = number
    return found, groups


def test_the_update_is_invisible_before_the_clustering_completes(begun):
    before = {name: entries(begun.metadata(), name) for name in INDEXES}
    listed = [*read_metadata_listing(begun.metadata()).read_folders()]
    begun.sync()

    assert before == {name: entries(begun.metadata(), name) for name in INDEXES}
    assert listed == [*read_metadata_listing(begun.metadata()).read_folders()]


def test_the_listing_has_new_files_with_sizes_and_the_replaced_files(begun):
    planned = begun.sync()
    begun.complete()
    listed = {
        path: dict(zip(names, sizes, strict=True))
        for path, names, sizes in read_metadata_listing(begun.metadata()).read_folders()
    }

    assert () == planned.dropped_partitions
    assert {"p=a", "p=b"} == listed.keys()
    assert listed == {
        path: {file.name: file.stat().st_size for file in (begun.folder / path).glob("*.parquet")}
        for path in listed
    }
    assert {} == find_listing_differences(
        begun.storage, begun.properties, begun.timeline, begun.added
    )


def test_all_partitions_are_named_again_as_hudi_does(begun):
    begun.sync()
    begun.complete()
    (newest,) = begun.metadata().list_slices("files")
    block = begun.metadata().read_visible_blocks(newest)[-1]
    schema = parse_schema(get_block_schema(block), "")
    said = {
        key.decode(): fastavro.schemaless_reader(io.BytesIO(value), schema, None)
        for key, value in hfile_reader.parse_hfile(block.content, "").scan_all()
    }

    assert ["__all_partitions__", "p=a", "p=b"] == [*said]
    assert [1, 2, 2] == [record["type"] for record in said.values()]
    assert {
        "p=a": {"size": 0, "isDeleted": False},
        "p=b": {"size": 0, "isDeleted": False},
    } == said["__all_partitions__"]["filesystemMetadata"]


def test_the_ranges_of_every_indexed_column_are_recorded(begun, version):
    columns = find_indexed_columns(begun.storage, begun.properties, begun.timeline)
    begun.sync()
    begun.complete()
    found, _groups = entries(begun.metadata(), "column_stats")
    (file,) = begun.added["p=b"]
    said = dict(zip(columns, build_stats_keys(columns, "p=b", [file.name]), strict=True))
    stats = {column: found[key]["ColumnStatsMetadata"] for column, key in said.items()}

    assert {"0.15.0": 18, "1.0.2": 17, "1.2.0": 18}[version] == len(columns)
    assert {"value": 3 * 10**10} == stats["l"]["minValue"]
    assert {"value": 5 * 10**10} == stats["l"]["maxValue"]
    assert ("s3", "s5") == (stats["s"]["minValue"]["value"], stats["s"]["maxValue"]["value"])
    assert ("k3", "k5") == tuple(
        stats["_hoodie_record_key"][bound]["value"] for bound in ("minValue", "maxValue")
    )
    assert (None, 3, 3) == tuple(
        stats["nul"][name] for name in ("minValue", "valueCount", "nullCount")
    )
    assert {file.name} == {one["fileName"] for one in stats.values()}


def test_the_bloom_filters_are_those_of_the_footers(begun):
    begun.sync()
    begun.complete()
    found, _groups = entries(begun.metadata(), "bloom_filters")
    for path, (file,) in begun.added.items():
        said = pq.ParquetFile(begun.folder / path / file.name).metadata.metadata
        (key,) = build_bloom_keys(path, [file.name])
        made = found[key]["BloomFilterMetadata"]

        assert said[b"org.apache.hudi.bloomfilter"] == made["bloomFilter"]
        assert "DYNAMIC_V0" == made["type"] == said[b"hoodie_bloom_filter_type_code"].decode()
        assert (begun.instant, False) == (made["timestamp"], made["isDeleted"])


def test_every_key_has_the_new_location_of_its_row(begun):
    planned = begun.sync()
    begun.complete()
    found, groups = entries(begun.metadata(), "record_index")
    places = {}
    for key, record in found.items():
        place = record["recordIndexMetadata"]
        bits = [place["fileIdHighBits"] & (1 << 64) - 1, place["fileIdLowBits"] & (1 << 64) - 1]
        number = uuid.UUID(int=bits[0] << 64 | bits[1])
        places[key] = (place["partitionName"], f"{number}-{place['fileIndex']}")
    a, b = FILE_IDS.format(0), FILE_IDS.format(1)
    import pyarrow as pa  # noqa: PLC0415

    assert {
        "k1": ("p=a", a),
        "k2": ("p=a", a),
        "k3": ("p=b", b),
        "k4": ("p=b", b),
        "k5": ("p=b", b),
    } == places
    assert groups == dict(
        zip(sorted(groups), find_record_groups(pa.array(sorted(groups)), 2).tolist(), strict=True)
    )
    moments = {record["recordIndexMetadata"]["instantTime"] for record in found.values()}
    assert {to_epoch_ms(begun.instant)} == moments
    assert () == planned.sync.cleanup


def test_partition_stats_stay_as_they_are(begun, version):
    if version == "0.15.0":
        return
    before = entries(begun.metadata(), "partition_stats")
    begun.sync()
    begun.complete()

    assert before == entries(begun.metadata(), "partition_stats")
    assert "partition_stats" in begun.properties.metadata_partitions


def test_log_files_have_the_names_of_each_version(begun, version):
    names = [Path(write.path).name for write in begun.plan().sync.writes]
    instant = begun.instant

    if version == "0.15.0":
        assert [
            f"{instant}.deltacommit.requested",
            f"{instant}.deltacommit.inflight",
        ] == names[:2]
        assert f"{instant}.deltacommit" == names[-1]
        assert ".files-0000-0_00000000000000010.log.4_0-0-0" in names
        assert ".record-index-0000-0_00000000000000013.log.4_0-0-0" in names
    else:
        assert f".files-0000-0_{instant}.log.1_0-0-0" in names
        assert re.fullmatch(rf"{instant}_\d{{17}}\.deltacommit", names[-1])


@pytest.mark.parametrize("done", [1, 2, 4, -1, None])
def test_a_stopped_attempt_is_removed_and_made_again(begun, done):
    first = begun.plan()
    for write in first.sync.writes[:done]:
        begun.storage.create(write.path, write.data)
    again = begun.plan()
    there = {write.path for write in first.sync.writes[:done]}

    assert there == {*again.sync.cleanup}
    begun.sync(again)
    begun.complete()
    assert {} == find_listing_differences(
        begun.storage, begun.properties, begun.timeline, begun.added
    )
    assert 5 == len(entries(begun.metadata(), "record_index")[0])


def test_entries_of_a_stopped_attempt_are_removed(begun):
    begun.sync()
    ((file,), _) = begun.added.values()
    begun.storage.delete(f"p=a/{file.name}")
    del begun.added["p=a"]
    begun.sync()
    begun.complete()
    found, _groups = entries(begun.metadata(), "record_index")
    placed = {record["recordIndexMetadata"]["partitionName"] for record in found.values()}
    high = uuid.UUID(FILE_IDS.format(0)[:-2]).int >> 64

    assert {"p=a", "p=b"} == placed
    assert high not in {
        record["recordIndexMetadata"]["fileIdHighBits"] & (1 << 64) - 1 for record in found.values()
    }
    assert file.name not in {
        record["ColumnStatsMetadata"]["fileName"]
        for record in entries(begun.metadata(), "column_stats")[0].values()
    }


def test_column_stats_and_partition_stats_are_dropped_without_a_range(begun, version):
    (file,) = begun.added["p=a"]
    begun.added["p=a"] = [WithoutRange(file)]
    planned = begun.sync()
    begun.complete()
    live = set(begun.metadata().live_partitions)

    gone = {"column_stats"} | ({"partition_stats"} if version != "0.15.0" else set())
    assert tuple(sorted(gone)) == planned.dropped_partitions
    assert f"{file.name}: the range of l is unknown" == planned.drop_reasons["column_stats"]
    assert {"bloom_filters", "files", "record_index"} == live
    assert gone.isdisjoint(path.name for path in (begun.folder / ".hoodie/metadata").iterdir())
    assert {} == find_listing_differences(
        begun.storage, begun.properties, begun.timeline, begun.added
    )


class WithoutRange:
    """A new file whose writer did not collect the range of the column l."""

    def __init__(self, file):
        self.name, self.rows, self.size, self.bloom = file.name, file.rows, file.size, file.bloom
        self.ranges = tuple(found for found in file.ranges if found.column != "l")


def test_bloom_filters_are_dropped_where_a_new_file_has_none(version, tmp_path):
    begun = (
        ManualClustering(unpack(INDEXED / f"{version}.zip", tmp_path)).begin().write(bloom=False)
    )
    planned = begun.plan()

    assert ("bloom_filters",) == planned.dropped_partitions
    assert planned.drop_reasons["bloom_filters"].endswith(": has no bloom filter")
    assert not [write.path for write in planned.sync.writes if "bloom" in write.path]


@ONE
def test_the_record_index_is_dropped_where_too_many_rows_move(begun, monkeypatch):
    monkeypatch.setattr(sync_decisions, "MAX_RECORDS", 4)
    planned = begun.plan()

    assert ("record_index",) == planned.dropped_partitions
    assert {"record_index": "5 rows move, more than the 4 that are written"} == planned.drop_reasons


def test_a_record_index_by_partition_is_dropped(begun):
    folder = begun.folder / ".hoodie/metadata/record_index"
    for path in list(folder.iterdir()):
        path.rename(folder / path.name.replace("record-index-", "record-index-p=a-"))
    planned = begun.plan()

    assert ("record_index",) == planned.dropped_partitions
    assert {"record_index": "the record index keeps keys per partition"} == planned.drop_reasons


BUSY = ("commit.requested", "deltacommit.inflight", "compaction.inflight", "indexing.requested")


@pytest.mark.parametrize("pending", BUSY)
def test_nothing_is_dropped_while_another_write_is_pending(tmp_path, pending):
    begun = ManualClustering(unpack(INDEXED / "1.2.0.zip", tmp_path)).begin().write(bloom=False)
    begun.storage.create(f"{begun.properties.timeline_folder}/20270101000000000.{pending}", b"")
    with pytest.raises(BusyError, match=f"bloom_filters must be dropped, but 20270101.*{pending}"):
        begun.plan()
    begun.write()

    assert () == begun.plan().dropped_partitions


@pytest.mark.parametrize("pending", ["compaction.requested", "clustering.requested"])
def test_a_requested_plan_does_not_prevent_a_drop(tmp_path, pending):
    begun = ManualClustering(unpack(INDEXED / "1.2.0.zip", tmp_path)).begin().write(bloom=False)
    begun.storage.create(f"{begun.properties.timeline_folder}/20270101000000000.{pending}", b"")

    assert ("bloom_filters",) == begun.plan().dropped_partitions


@ONE
def test_an_instant_that_is_not_pending_is_refused(begun):
    begun.complete()
    with pytest.raises(StaleError, match="is not a pending clustering on the timeline"):
        begun.plan()


@ONE
def test_a_table_without_a_metadata_table_needs_no_update(begun):
    text = (begun.folder / PROPERTIES).read_text()
    text = re.sub(r"(?m)^(hoodie.table.metadata.partitions)=.*$", r"\1=", text)
    (begun.folder / PROPERTIES).write_text(text)
    planned = begun.plan()

    assert ((), None) == (planned.dropped_partitions, planned.sync)


@ONE
def test_an_index_that_no_writer_rebuilds_is_refused(begun):
    text = (begun.folder / PROPERTIES).read_text()
    (begun.folder / PROPERTIES).write_text(text.replace("files,", "expr_index_e,files,"))
    with pytest.raises(UnsupportedError, match="has the expression index e, which would miss"):
        begun.plan()


@ONE
def test_dropping_changes_one_line_of_the_properties(begun):
    before = (begun.folder / PROPERTIES).read_bytes()
    old = parse_java_properties(before, "x")
    after = drop_partitions(begun.storage, begun.properties, ["record_index", "bloom_filters"])
    text = (begun.folder / PROPERTIES).read_bytes()
    changed = [
        (one, two)
        for one, two in zip(before.splitlines(), text.splitlines(), strict=True)
        if one != two
    ]
    key = "hoodie.table.metadata.partitions"

    assert 1 == len(changed)
    kept = [n for n in old[key].split(",") if n not in ("record_index", "bloom_filters")]
    assert f"{key}={','.join(kept)}".encode() == changed[0][1]
    assert tuple(kept) == after.metadata_partitions
    assert not (begun.folder / f"{PROPERTIES}.backup").exists()
    assert not (begun.folder / ".hoodie/metadata/record_index").exists()
    assert () == find_leftover_partitions(begun.storage, after)


@ONE
def test_dropping_goes_on_from_the_backup_that_a_writer_left(begun):
    path = begun.folder / PROPERTIES
    path.rename(path.with_name("hoodie.properties.backup"))
    after = drop_partitions(begun.storage, begun.properties, ["record_index"])

    assert "record_index" not in after.metadata_partitions
    assert after == load_properties(begun.storage)
    assert path.exists()


class Dying:
    """A storage whose process dies before its n-th change."""

    def __init__(self, storage, changes):
        self._storage, self._left = storage, changes

    def __getattr__(self, name):
        asked = getattr(self._storage, name)
        if name not in ("replace", "delete", "delete_many", "remove_folder"):
            return asked

        def change(*arguments):
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt
            return asked(*arguments)

        return change


@pytest.mark.parametrize("changes", range(6))
def test_dropping_may_stop_anywhere_and_be_repeated(tmp_path, changes):
    begun = ManualClustering(unpack(INDEXED / "1.2.0.zip", tmp_path))
    live = begun.properties.metadata_partitions
    dying = Dying(begun.storage, changes)
    if changes < 5:
        with pytest.raises(KeyboardInterrupt):
            drop_partitions(dying, begun.properties, ["record_index"])
    else:
        drop_partitions(dying, begun.properties, ["record_index"])
    now = load_properties(begun.storage)
    left = find_leftover_partitions(begun.storage, now)
    again = drop_partitions(begun.storage, now, ["record_index"])

    assert (live if changes < 2 else tuple(n for n in live if n != "record_index")) == (
        now.metadata_partitions
    )
    assert (("record_index",) if 2 <= changes < 5 else ()) == left
    assert "record_index" not in again.metadata_partitions
    assert not (begun.folder / ".hoodie/metadata/record_index").exists()


@pytest.mark.parametrize(
    "pending",
    ["commit.requested", "deltacommit.inflight", "indexing.requested", "clustering.inflight"],
)
def test_a_folder_that_a_pending_write_may_fill_is_not_a_leftover(tmp_path, pending):
    begun = ManualClustering(unpack(INDEXED / "1.2.0.zip", tmp_path)).begin()
    (tmp_path / ".hoodie/metadata/record_index").rename(tmp_path / "record_index")
    properties = drop_partitions(begun.storage, begun.properties, ["record_index"])
    (tmp_path / "record_index").rename(tmp_path / ".hoodie/metadata/record_index")

    assert ("record_index",) == find_leftover_partitions(begun.storage, properties)

    begun.storage.create(f"{properties.timeline_folder}/20270101000000000.{pending}", b"")

    assert () == find_leftover_partitions(begun.storage, properties)


@ONE
def test_files_in_only_one_of_listing_and_storage_are_found(begun):
    begun.sync()
    begun.complete()
    ((file,), (other,)) = begun.added.values()
    (begun.folder / "p=a" / file.name).unlink()
    begun.added["p=b"] = [other, WithoutRange(file)]

    assert {"p=a": [file.name], "p=b": [file.name]} == find_listing_differences(
        begun.storage, begun.properties, begun.timeline, begun.added
    )


def test_the_wrapper_of_every_column_is_learned_from_the_index(begun):
    columns = find_indexed_columns(begun.storage, begun.properties, begun.timeline)
    learned = learn_wrappers(begun.metadata(), columns)

    assert {*columns} == {*learned}
    assert "LongWrapper" == learned["l"].wrapper.rpartition(".")[2]


def test_columns_whose_entries_are_spread_over_file_groups_are_all_learned(tmp_path):
    table = ManualClustering(unpack(INDEXED.parent / "v9_index.zip", tmp_path) / "v9_index")
    columns = find_indexed_columns(table.storage, table.properties, table.timeline)
    learned = learn_wrappers(table.metadata(), columns)

    assert 2 == len(table.metadata().list_slices("column_stats"))
    assert {*columns} == {*learned}


@ONE
def test_a_file_listed_with_another_size_is_found(begun):
    begun.sync()
    begun.complete()
    (file,) = begun.added["p=a"]
    begun.added["p=a"] = [WithoutRange(file)]
    begun.added["p=a"][0].size += 1

    assert {"p=a": [file.name]} == find_listing_differences(
        begun.storage, begun.properties, begun.timeline, begun.added
    )


def test_a_dropped_column_is_not_required_in_files(tmp_path):
    begun = ManualClustering(unpack(INDEXED / "1.2.0.zip", tmp_path))
    path = tmp_path / ".hoodie/.index_defs/index.json"
    path.write_text(path.read_text().replace('"nul"', '"lost"'))
    columns = find_indexed_columns(begun.storage, begun.properties, begun.timeline)

    assert {"lost", "nul"}.isdisjoint(columns)
    assert 17 == len(columns)


@ONE
def test_a_column_kept_only_in_folder_names_is_not_required_in_files(begun):
    text = (begun.folder / PROPERTIES).read_text()
    key = "hoodie.datasource.write.drop.partition.columns"
    (begun.folder / PROPERTIES).write_text(text.replace(f"{key}=false", f"{key}=true"))
    properties = load_properties(begun.storage)
    before = find_indexed_columns(begun.storage, begun.properties, begun.timeline)
    after = find_indexed_columns(begun.storage, properties, begun.timeline)

    assert {"p"} == {*before} - {*after}


def sync_without_files(begun):
    return prepare_rewrite_sync(
        SyncRequest(
            storage=begun.storage,
            properties=begun.properties,
            timeline=begun.timeline,
            instant=begun.instant,
            zone=UTC,
            choose_time=lambda: "20270101000000000",
        ),
        {},
    )


@ONE
def test_without_new_files_nothing_is_written(begun):
    planned = sync_without_files(begun)

    assert ((), ()) == (planned.dropped_partitions, planned.sync.writes)


@ONE
def test_a_missing_index_is_an_error_even_without_new_files(begun):
    shutil.rmtree(Path(begun.storage.location, ".hoodie/metadata/bloom_filters"))

    with pytest.raises(FormatError, match="it has no file group"):
        sync_without_files(begun)
