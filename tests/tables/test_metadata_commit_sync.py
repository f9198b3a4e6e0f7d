"""Update the metadata table of a real table for a write of rows."""

from __future__ import annotations

import uuid
from datetime import UTC
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import BusyError, StaleError, UnsupportedError
from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.avro_binary import decode_record, parse_schema
from reconciler.hudi.codecs.log_blocks import BlockType, get_block_schema, read_delete_keys
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.metadata import sync_decisions
from reconciler.hudi.metadata.index_keys import build_bloom_keys
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.partition_stats import read_partition_ranges
from reconciler.hudi.metadata.record_encoder import ColumnRange
from reconciler.hudi.timeline.instant import Action
from reconciler.transaction.metadata.sync import SyncRequest
from reconciler.transaction.metadata.write_sync import WriteChanges, prepare_write_sync
from tests.manual_clustering import to_epoch_ms
from tests.manual_write import KEY, ManualWrite
from tests.trees import unpack

INDEXED = Path(__file__).parent / "indexed"
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
EVERYTHING = ("bloom_filters", "column_stats", "files", "partition_stats", "record_index")
PROPERTIES = ".hoodie/hoodie.properties"
#: one version where all behave the same, and the versions with partition_stats
ONE = pytest.mark.parametrize("version", ["1.2.0"])
BOUNDED = pytest.mark.parametrize("version", ["1.0.2", "1.2.0"])


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def write(version, tmp_path):
    """A table with every index and five rows: k1 and k2 in p=a, k3 to k5 in p=b."""
    return ManualWrite(unpack(INDEXED / f"{version}.zip", tmp_path))


@pytest.fixture
def upserted(write):
    """k1 is updated, k2 deleted, k6 new in the same group, k7 new in a new partition."""
    write.begin()
    for number, name in enumerate(write.before["p=a"]):
        keys = write.keys_of("p=a", name)
        put = [write.changed_row("p=a", "k1", l=7)] if "k1" in keys else []
        gone = ["k2"] if "k2" in keys else []
        if number == 0:
            put.append(write.changed_row("p=a", "k1", **named("k6"), l=8, s="zzz"))
        write.update_group("p=a", number, put=put, gone=gone)
    like = ("p=b", write.before["p=b"][0])
    write.start_group("p=c", [write.changed_row("p=b", "k3", **named("k7", "p=c"), l=-1)], like)
    return write


def named(key, path=None):
    """Return the columns that identify a row."""
    found = {KEY: key, "id": key}
    if path is not None:
        found |= {"_hoodie_partition_path": path, "p": path.rpartition("=")[2]}
    return found


def entries(write, partition):
    """Return key -> newest visible record; these tables have no base files."""
    found = {}
    metadata = write.metadata()
    for newest in metadata.list_slices(partition):
        for block in metadata.read_visible_blocks(newest):
            if block.type is BlockType.DELETE:
                for key in read_delete_keys(block):
                    found.pop(key, None)
                continue
            schema = parse_schema(get_block_schema(block), "")
            for key, value in hfile_reader.parse_hfile(block.content, "").scan_all():
                found[key.decode()] = decode_record(value, schema, "")
    return found


def places(write):
    """Return record key -> partition and file id, by the index."""
    found = {}
    for key, record in entries(write, "record_index").items():
        place = record["recordIndexMetadata"]
        bits = [place["fileIdHighBits"] & (1 << 64) - 1, place["fileIdLowBits"] & (1 << 64) - 1]
        number = uuid.UUID(int=bits[0] << 64 | bits[1])
        found[key] = (place["partitionName"], f"{number}-{place['fileIndex']}")
    return found


def is_in(write):
    """Return record key -> partition and file id, by the newest data files."""
    found = {}
    for path in {*write.before, *write.added}:
        newest = {BaseName.parse(name).file_id: name for name in write.before.get(path, ())}
        for file_id in write.left.get(path, ()):
            del newest[file_id]
        newest |= {BaseName.parse(f.name).file_id: f.name for f in write.added.get(path, ())}
        for file_id, name in newest.items():
            found |= dict.fromkeys(write.keys_of(path, name), (path, file_id))
    return found


def bounds(write, column, path):
    """Return the entries of partition_stats."""
    return read_partition_ranges(write.metadata(), [column], [path]).get((path, column))


def test_the_update_is_invisible_before_the_commit_completes(upserted):
    names = [name for name in EVERYTHING if name in upserted.properties.metadata_partitions]
    before = {name: entries(upserted, name) for name in names}
    upserted.sync()

    assert before == {name: entries(upserted, name) for name in names}
    assert {"k1", "k2", "k3", "k4", "k5"} == before["record_index"].keys()


def test_every_index_is_updated_and_none_dropped(upserted, version):
    planned = upserted.sync()
    upserted.complete()

    live = {name for name in EVERYTHING if version != "0.15.0" or name != "partition_stats"}
    assert () == planned.dropped_partitions
    assert live == set(upserted.metadata().live_partitions)


def test_the_listing_has_the_new_files_and_the_new_partition(upserted):
    upserted.sync()
    upserted.complete()
    listed = {
        path: dict(zip(names, sizes, strict=True))
        for path, names, sizes in read_metadata_listing(upserted.metadata()).read_folders()
    }

    assert {"p=a", "p=b", "p=c"} == listed.keys()
    assert listed == {
        path: {f.name: f.stat().st_size for f in (upserted.folder / path).glob("*.parquet")}
        for path in listed
    }


def test_every_key_has_the_location_of_its_row_and_no_other_is_indexed(upserted):
    before = entries(upserted, "record_index")
    upserted.sync()
    upserted.complete()
    found = entries(upserted, "record_index")

    assert {"k1", "k3", "k4", "k5", "k6", "k7"} == found.keys()
    assert is_in(upserted) == places(upserted)
    # a key that stays in its file group is not written again
    assert before["k1"] == found["k1"]
    moments = {key: found[key]["recordIndexMetadata"]["instantTime"] for key in ("k6", "k7")}
    assert dict.fromkeys(("k6", "k7"), to_epoch_ms(upserted.instant)) == moments


def test_every_new_file_has_its_ranges_and_its_filter(upserted):
    upserted.sync()
    upserted.complete()
    stats = [r["ColumnStatsMetadata"] for r in entries(upserted, "column_stats").values()]
    filters = entries(upserted, "bloom_filters")
    columns = len({one["columnName"] for one in stats})
    for path, files in upserted.added.items():
        for file in files:
            said = {one["columnName"]: one for one in stats if one["fileName"] == file.name}
            rows = pq.read_table(upserted.folder / path / file.name, columns=["l"])
            known = [value for value in rows.column("l").to_pylist() if value is not None]
            (key,) = build_bloom_keys(path, [file.name])

            assert columns == len(said)
            assert len(rows) == said["l"]["valueCount"]
            if known:
                assert (min(known), max(known)) == tuple(
                    said["l"][bound]["value"] for bound in ("minValue", "maxValue")
                )
            assert file.bloom.encode() == filters[key]["BloomFilterMetadata"]["bloomFilter"]


@BOUNDED
def test_bounds_of_a_partition_are_widened_and_never_narrowed(upserted):
    before = bounds(upserted, "l", "p=a"), bounds(upserted, "s", "p=a")
    upserted.sync()
    upserted.complete()
    after = bounds(upserted, "l", "p=a"), bounds(upserted, "s", "p=a")

    assert (10**10, 2 * 10**10) == (before[0].least, before[0].greatest)
    assert (7, 2 * 10**10) == (after[0].least, after[0].greatest)
    assert ("s1", "zzz") == (after[1].least, after[1].greatest)
    assert before[0].values < after[0].values
    assert before[0].nulls <= after[0].nulls


@BOUNDED
def test_bounds_are_marked_as_tight(upserted):
    upserted.sync()
    upserted.complete()
    said = [r["ColumnStatsMetadata"] for r in entries(upserted, "partition_stats").values()]

    assert {True} == {one["isTightBound"] for one in said}
    assert {"p=a", "p=b", "p=c"} == {one["fileName"] for one in said}
    assert {False} == {one["isDeleted"] for one in said}


@BOUNDED
def test_a_partition_that_is_new_has_the_bounds_of_its_files(upserted):
    upserted.sync()
    upserted.complete()
    found = bounds(upserted, "l", "p=c")

    assert (-1, -1, 1, 0) == (found.least, found.greatest, found.values, found.nulls)


@BOUNDED
def test_merged_decimals_and_dates_keep_their_type(upserted):
    kinds = {"d7": Decimal, "d18": Decimal, "dt": int, "bin": bytes, "b": bool, "f": float}
    upserted.sync()
    upserted.complete()
    for column, kind in kinds.items():
        found = bounds(upserted, column, "p=a")
        rows = [
            value
            for file in (upserted.folder / "p=a").glob("*.parquet")
            for value in pq.read_table(file, columns=[column]).column(column).to_pylist()
            if value is not None
        ]

        assert kind is type(found.least), column
        if kind in (Decimal, bytes):
            assert (min(rows), max(rows)) == (found.least, found.greatest), column


@BOUNDED
def test_partition_stats_are_dropped_without_known_bounds_of_a_partition(upserted, monkeypatch):
    def without(table, columns, partitions):
        found = read_partition_ranges(table, columns, partitions)
        return {place: said for place, said in found.items() if place != ("p=a", "l")}

    monkeypatch.setattr("reconciler.hudi.metadata.write_sync.read_partition_ranges", without)
    planned = upserted.plan()

    assert ("partition_stats",) == planned.dropped_partitions
    assert (
        "the index has no bounds of the column l for the partition 'p=a'"
        == planned.drop_reasons["partition_stats"]
    )
    assert not [write for write in planned.sync.writes if "/partition_stats/" in write.path]

    upserted.alone = ["p=a"]
    assert () == upserted.plan().dropped_partitions


@BOUNDED
def test_partition_stats_are_dropped_with_column_stats(upserted, monkeypatch):
    def refused(*_):
        raise UnsupportedError("why")

    monkeypatch.setattr(
        "reconciler.hudi.metadata.partition_logs.PartitionLogBuilder.build_column_stats", refused
    )
    planned = upserted.plan()

    assert ("column_stats", "partition_stats") == planned.dropped_partitions
    assert not [write for write in planned.sync.writes if "_stats/" in write.path]


@BOUNDED
def test_partition_stats_are_dropped_where_bounds_changed_type(upserted, monkeypatch):
    text = ColumnRange(column="l", least="a", greatest="b", values=1, nulls=0, size=1, plain_size=1)
    monkeypatch.setattr(
        "reconciler.hudi.metadata.write_sync.read_partition_ranges",
        lambda table, columns, partitions: (
            read_partition_ranges(table, columns, partitions) | {("p=a", "l"): text}
        ),
    )

    assert {
        "partition_stats": "p=a, column l: the new bounds have another type than the existing ones"
    } == upserted.plan().drop_reasons


def test_an_overwritten_partition_lists_all_files_and_indexes_the_new_keys(write):
    write.begin(Action.REPLACECOMMIT, "INSERT_OVERWRITE")
    like = ("p=b", write.before["p=b"][0])
    write.start_group(
        "p=b", [write.changed_row("p=b", "k4"), write.changed_row("p=b", "k4", **named("k8"))], like
    )
    write.replace_partition("p=b")
    planned = write.sync()
    write.complete()

    assert () == planned.dropped_partitions
    assert {"k1", "k2", "k4", "k8"} == places(write).keys()
    assert is_in(write) == places(write)
    ((_path, names, _sizes),) = read_metadata_listing(write.metadata()).read_folders(["p=b"])
    assert {*write.before["p=b"], write.added["p=b"][0].name} == set(names)


def test_a_deleted_partition_loses_its_keys_and_stays_listed(write):
    listed = [*read_metadata_listing(write.metadata()).read_folders()]
    write.begin(Action.REPLACECOMMIT, "DELETE_PARTITION").replace_partition("p=b")
    planned = write.sync()
    write.complete()

    assert () == planned.dropped_partitions
    assert {"k1", "k2"} == entries(write, "record_index").keys()
    assert listed == [*read_metadata_listing(write.metadata()).read_folders()]
    touched = {Path(one.path).parent.name for one in planned.sync.writes if ".log." in one.path}
    assert {"record_index"} == touched


@ONE
def test_without_new_files_no_index_is_dropped(write, monkeypatch):
    monkeypatch.setattr("tests.manual_write.find_indexed_columns", lambda *_: ())
    write.begin(Action.REPLACECOMMIT, "DELETE_PARTITION").replace_partition("p=b")

    assert () == write.plan().dropped_partitions


@ONE
def test_a_write_that_changes_nothing_in_the_metadata_table_writes_nothing(write):
    write.begin(Action.REPLACECOMMIT, "DELETE_PARTITION")

    assert ((), ()) == (write.plan().dropped_partitions, write.plan().sync.writes)


@pytest.mark.parametrize("done", [1, 4, -1, None])
def test_a_stopped_attempt_is_removed_and_made_again(upserted, done):
    first = upserted.plan()
    for write in first.sync.writes[:done]:
        upserted.storage.create(write.path, write.data)
    again = upserted.plan()

    assert {write.path for write in first.sync.writes[:done]} == {*again.sync.cleanup}
    upserted.sync(again)
    upserted.complete()
    assert is_in(upserted) == places(upserted)


@ONE
def test_the_record_index_is_dropped_for_too_many_new_or_deleted_keys(upserted, monkeypatch):
    monkeypatch.setattr(sync_decisions, "MAX_RECORDS", 3)
    assert () == upserted.plan().dropped_partitions

    monkeypatch.setattr(sync_decisions, "MAX_RECORDS", 2)
    planned = upserted.plan()
    assert ("record_index",) == planned.dropped_partitions
    assert (
        "more than 2 keys are new or deleted, the most that are written"
        == (planned.drop_reasons["record_index"])
    )


def test_column_stats_are_dropped_where_a_write_adds_a_column(upserted, version):
    # Hudi takes a file without its range for one with only nulls
    upserted.begun = ["brand_new"]
    planned = upserted.plan()

    gone = ("column_stats",) if version == "0.15.0" else ("column_stats", "partition_stats")
    assert gone == planned.dropped_partitions
    assert (
        "this write adds the column brand_new, and readers would take it for null in files "
        "without its range"
    ) == planned.drop_reasons["column_stats"]


@ONE
@pytest.mark.parametrize(
    ("kinds", "gone"),
    [
        ({}, ()),
        ({"l": pa.int64()}, ()),
        ({"l": pa.int64(), "brand_new": pa.int64()}, ("column_stats", "partition_stats")),
        ({"l": pa.string()}, ("column_stats", "partition_stats")),
    ],
)
def test_a_column_is_new_if_the_table_lacked_it_or_had_another_type(upserted, kinds, gone):
    said = upserted.writing()
    told = WriteChanges(added=said.files_by_partition, types=kinds)
    request = SyncRequest(
        storage=upserted.storage,
        properties=upserted.properties,
        timeline=upserted.timeline,
        instant=said.instant,
        zone=UTC,
        choose_time=lambda: said.completion_time,
    )
    planned = prepare_write_sync(request, told)

    assert gone == planned.dropped_partitions


@ONE
def test_a_column_without_values_so_far_is_encoded_as_in_hudi(upserted, monkeypatch):
    from reconciler.hudi.metadata import write_sync as module  # noqa: PLC0415

    learn = module.learn_wrappers
    monkeypatch.setattr(
        module, "learn_wrappers", lambda table, columns: learn(table, set(columns) - {"l"})
    )
    assert ("column_stats", "partition_stats") == upserted.plan().dropped_partitions

    upserted.kinds = {"l": pa.int64()}
    planned = upserted.sync()
    upserted.complete()
    assert () == planned.dropped_partitions
    assert (7, 2 * 10**10) == (
        bounds(upserted, "l", "p=a").least,
        bounds(upserted, "l", "p=a").greatest,
    )


@ONE
def test_nothing_is_dropped_while_another_write_is_pending(upserted, monkeypatch):
    monkeypatch.setattr(sync_decisions, "MAX_RECORDS", 1)
    folder = upserted.properties.timeline_folder
    upserted.storage.create(f"{folder}/20270101000000000.commit.requested", b"")
    with pytest.raises(BusyError, match="record_index must be dropped, but 20270101"):
        upserted.plan()


@ONE
def test_an_instant_that_is_not_pending_is_refused(upserted):
    upserted.complete()
    with pytest.raises(StaleError, match="is not a pending commit on the timeline"):
        upserted.plan()


@ONE
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("expr_index_e", "expression index e, .*let Hudi write the rows"),
        ("secondary_index_s", "secondary index s, .*let Hudi write the rows"),
    ],
)
def test_an_index_that_no_writer_rebuilds_is_refused(upserted, name, said):
    text = (upserted.folder / PROPERTIES).read_text()
    (upserted.folder / PROPERTIES).write_text(text.replace("files,", f"{name},files,"))
    with pytest.raises(UnsupportedError, match=said):
        upserted.plan()


def test_a_record_index_by_partition_is_dropped(upserted):
    folder = upserted.folder / ".hoodie/metadata/record_index"
    for path in list(folder.iterdir()):
        path.rename(folder / path.name.replace("record-index-", "record-index-p=a-"))
    planned = upserted.plan()

    assert {"record_index": "the record index keeps keys per partition"} == planned.drop_reasons
