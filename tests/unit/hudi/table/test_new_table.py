"""Compare the properties of a new table with those that real Hudi writes."""

from __future__ import annotations

import zipfile

import pytest

from reconciler.file_slices.merge.rules import MergeRules
from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.new_metadata_table import (
    PROPERTIES,
    build_first_listing,
    build_metadata_properties,
    load_record_schema,
)
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.hudi.table.new_table import NewHudiTable
from reconciler.hudi.table.properties import TableProperties, parse_java_properties
from reconciler.hudi.timeline.active import Timeline
from reconciler.storage.open import open_storage
from tests.rewrite_jobs import TABLES

PATH = ".hoodie/hoodie.properties"
#: properties that depend on writer options and that no reader needs
VARIES = {
    "hoodie.compaction.payload.class",
    "hoodie.compaction.record.merger.strategy",
    "hoodie.database.name",
    "hoodie.record.merge.strategy.id",
    "hoodie.table.checksum",
    "hoodie.table.create.schema",
    "hoodie.table.index.defs.path",
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.partition_extractor_class",
    "hoodie.table.timeline.timezone",
}
LIKE_REAL = {
    "v6_cow_part": NewHudiTable(
        name="v6_cow_part",
        version=6,
        record_keys=("id",),
        partition_fields=("p",),
        ordering=("ts",),
        hive_style=False,
    ),
    "v6_cow_nopart": NewHudiTable(
        name="v6_cow_nopart", version=6, record_keys=("id",), ordering=("ts",), hive_style=False
    ),
    "v6_keygen": NewHudiTable(
        name="v6_keygen",
        version=6,
        record_keys=("id", "name"),
        partition_fields=("p", "q"),
        ordering=("ts",),
        url_encode=True,
    ),
    "v8_mor_part": NewHudiTable(
        name="v8_mor_part",
        version=8,
        type="MERGE_ON_READ",
        record_keys=("id",),
        partition_fields=("p",),
        ordering=("ts",),
    ),
    "v8_mor_nopart": NewHudiTable(
        name="v8_mor_nopart",
        version=8,
        type="MERGE_ON_READ",
        record_keys=("id",),
        ordering=("ts",),
        hive_style=False,
    ),
    "v9_keygen": NewHudiTable(
        name="v9_keygen",
        version=9,
        record_keys=("id", "name"),
        partition_fields=("p", "q"),
        ordering=("ts",),
        url_encode=True,
    ),
    "v9_cow_part": NewHudiTable(
        name="v9_cow_part",
        version=9,
        record_keys=("id",),
        partition_fields=("p",),
        ordering=("ts",),
        hive_style=False,
    ),
}
#: for each version, a table whose metadata table is in the test archive
WITH_METADATA = {6: "v6_cow_part", 8: "v8_mor_part", 9: "v9_cow_part"}


def packed(name, path):
    with zipfile.ZipFile(TABLES / f"{name}.zip") as file:
        return file.read(f"{name}/{path}")


def parsed(new):
    return TableProperties.parse(new.properties_bytes, PATH)


@pytest.mark.parametrize("name", LIKE_REAL)
def test_properties_of_a_new_table_equal_those_of_real_hudi(name):
    ours, real = (
        parse_java_properties(LIKE_REAL[name].properties_bytes, PATH),
        parse_java_properties(packed(name, PATH), PATH),
    )

    assert {k: v for k, v in real.items() if k not in VARIES} == {
        k: v for k, v in ours.items() if k not in VARIES
    }


@pytest.mark.parametrize("version", [6, 8, 9])
def test_records_of_a_new_table_merge_by_event_time_only_where_it_has_one(version):
    timed = NewHudiTable(name="t", version=version, record_keys=("id",), ordering=("ts",))
    plain = NewHudiTable(name="t", version=version, record_keys=("id",))

    assert MergeRules.from_properties(parsed(timed)).ordering == ("ts",)
    assert not MergeRules.from_properties(parsed(timed)).overwrites
    assert MergeRules.from_properties(parsed(plain)).overwrites
    assert not MergeRules.from_properties(parsed(plain)).refusal


@pytest.mark.parametrize("version", [6, 8, 9])
def test_instants_of_a_new_table_are_in_utc_unless_its_writers_use_another_zone(version):
    assert parsed(NewHudiTable(name="t", version=version, record_keys=("id",))).timezone == "UTC"
    local = NewHudiTable(name="t", version=version, record_keys=("id",), is_utc=False)
    assert parsed(local).timezone is None


def test_the_checksum_is_of_database_and_name():
    assert parsed(NewHudiTable(name="orders", database="sales", record_keys=("id",)))


@pytest.mark.parametrize(("version", "name"), WITH_METADATA.items())
def test_properties_of_a_new_metadata_table_equal_those_of_real_hudi(version, name):
    real = parse_java_properties(packed(name, PROPERTIES), PROPERTIES)

    assert real == parse_java_properties(build_metadata_properties(name, version), PROPERTIES)


@pytest.mark.parametrize(("version", "name"), WITH_METADATA.items())
def test_the_record_schema_equals_that_of_real_hudi(version, name):
    with zipfile.ZipFile(TABLES / f"{name}.zip") as file:
        first = next(n for n in file.namelist() if "/files/files-0000-0_" in n and "000000" in n)
        data = file.read(first)
    real = hfile_reader.open_hfile(
        lambda start, length: data[start : start + length], len(data), first
    )

    assert real.info[b"schema"].decode() == load_record_schema(version)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("partitions", [{}, {"": {"a.parquet": 3}}, {"p=1": {}, "p=2": {"b": 7}}])
def test_the_first_listing_has_the_existing_files(tmp_path, version, partitions):
    storage, data = open_storage(str(tmp_path)), Timeline.from_files([])
    for write in build_first_listing(
        storage,
        version=version,
        data=data,
        completion_time="20260101000000000",
        partitions=partitions,
    ):
        storage.create(write.path, write.data)

    listing = read_metadata_listing(open_metadata_table(storage, version=version, data=data))

    assert sorted(partitions) == sorted(listing.partitions)
    listed = {
        path: dict(zip(n, s, strict=True)) for path, n, s in listing.read_folders(set(partitions))
    }
    assert {path: names for path, names in partitions.items() if names} == {
        path: names for path, names in listed.items() if names
    }
