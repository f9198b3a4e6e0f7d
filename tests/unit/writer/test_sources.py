"""Source files: their errors never repeat credentials."""

from __future__ import annotations

import errno
import os

import pytest

from reconciler.errors import FormatError, ReconcilerError, StorageError, UsageError
from reconciler.writer.sources.avro import read_avro_batches, read_avro_schema
from reconciler.writer.sources.files import find_source_files
from reconciler.writer.sources.formats import detect_format, list_sources
from reconciler.writer.sources.spark import merge_types

SECRETS = ("hunter22", "c2Vjcm/V0MQ")
NOTHING = '{"type": "record", "name": "r", "fields": []}'
SOURCES = [
    "memory://key:hunter22@lake/{name}",
    "memory://key:c2Vjcm/V0MQ@lake/{name}",
    "memory://lake/{name}?sv=1&sig=c2Vjcm/V0MQ",
]


def no_options(_source):
    return {}


def list_source_files(sources, options):
    return [name for source in list_sources(sources, options) for name in source.files]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "ask",
    [
        lambda url: list_source_files([url.format(name="gone.csv")], no_options),
        lambda url: detect_format([url.format(name="what")]),
        lambda url: read_avro_schema(url.format(name="gone.avro"), {}),
        lambda url: next(read_avro_batches(url.format(name="gone.avro"), NOTHING, {})),
    ],
    ids=["listed", "named", "avro", "rows"],
)
def test_no_error_repeats_a_credential(source, ask):
    with pytest.raises(ReconcilerError) as error:
        ask(source)

    said = str(error.value)
    assert not any(secret in said for secret in SECRETS)
    assert "lake" in said or "what" in said


class Azure:
    """The part of a client of Azure that lists: its names begin with the container."""

    def isdir(self, path):
        return path == "box/in"

    def find(self, _path):
        return ["box/in/a.csv", "box/in/b/c.csv"]

    def unstrip_protocol(self, name):
        return f"abfs://{name}"


@pytest.mark.parametrize("scheme", ["abfs", "abfss"])
def test_files_in_azure_keep_the_account_that_spark_needs(monkeypatch, scheme):
    import fsspec  # noqa: PLC0415 (slow)

    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda _url: (Azure(), "box/in"))
    place = f"{scheme}://box@lake.dfs.core.windows.net"

    assert [f"{place}/in/a.csv", f"{place}/in/b/c.csv"] == list_source_files(
        [f"{place}/in"], no_options
    )
    assert ["abfs://box/in/a.csv", "abfs://box/in/b/c.csv"] == list_source_files(
        ["abfs://box/in"], no_options
    )


def test_files_in_azure_without_an_account_are_refused_before_spark_starts(monkeypatch):
    import fsspec  # noqa: PLC0415 (slow)

    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda _url, **_: (Azure(), "box/in"))
    with pytest.raises(UsageError, match=r"abfs://box/in/a\.csv: Spark needs the account's name"):
        find_source_files(["abfs://box/in"], None, {})


def test_a_store_that_nobody_knows_is_named_without_its_credentials():
    with pytest.raises(
        UsageError, match=r"^nowhere://\*\*\*@lake/a\.csv: the store cannot be opened"
    ):
        list_source_files(["nowhere://key:hunter22@lake/a.csv"], no_options)


def test_damage_is_said_of_the_file_without_its_credentials():
    import fsspec  # noqa: PLC0415 (slow)

    store = fsspec.filesystem("memory")
    url = "memory://key:hunter22@lake/x.avro"
    store.pipe_file(store._strip_protocol(url), b"no avro")

    with pytest.raises(ReconcilerError, match=r"^memory://\*\*\*@lake/x\.avro: is no Avro file"):
        read_avro_schema(url, {})


@pytest.mark.parametrize("below", [".hoodie/hoodie.properties", "p=a/.hoodie_partition_metadata"])
def test_files_of_a_hudi_table_are_no_source_since_old_rows_are_among_them(below):
    import fsspec  # noqa: PLC0415 (slow)

    store = fsspec.filesystem("memory")
    for name in (below, "p=a/f_0_1.parquet", "p=a/f_0_2.parquet"):
        store.pipe_file(f"/table-{len(below)}/{name}", b"")

    with pytest.raises(UsageError, match=r"is a Hudi table, .* reconciler\.read"):
        list_source_files([f"memory://table-{len(below)}"], no_options)


def test_avro_files_of_values_that_are_no_records_are_refused():
    import fastavro  # noqa: PLC0415 (slow)
    import fsspec  # noqa: PLC0415

    store = fsspec.filesystem("memory")
    with store.open("/lake/words.avro", "wb") as file:
        fastavro.writer(file, {"type": "string"}, ["one"])

    with pytest.raises(FormatError, match=r"^memory://lake/words\.avro: holds no records"):
        read_avro_schema("memory://lake/words.avro", {})


def test_fields_that_only_values_have_are_joined_to_a_known_type():
    from pyspark.sql.types import ArrayType, LongType, StringType, StructType  # noqa: PLC0415

    known = StructType().add("k", LongType()).add("in", ArrayType(StructType().add("u", "string")))
    inner = StructType().add("u", LongType()).add("v", "boolean")
    found = StructType().add("new", LongType()).add("in", ArrayType(inner)).add("k", StringType())

    said = "struct<k:bigint,in:array<struct<u:string,v:boolean>>,new:bigint>"
    assert said == merge_types(known, found).simpleString()
    assert known == merge_types(known, known)


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_folder_of_sources_that_cannot_be_read_is_named(tmp_path, monkeypatch, prefix):
    """The client of local disks leaves it out, and all rows in it."""
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("/locked"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    for name in ("a", "locked"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.parquet").touch()
    monkeypatch.setattr(os, "scandir", refuse)

    with pytest.raises(StorageError, match=r"/locked: Permission denied"):
        list_source_files([f"{prefix}{tmp_path}"], no_options)


def test_hidden_folders_of_a_local_disk_are_not_looked_into(tmp_path, monkeypatch):
    for name in ("p=a", "_temporary", ".Trash-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.parquet").touch()
    scanned, scan = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: scanned.append(path) or scan(path))

    assert [f"{tmp_path}/p=a/rows.parquet"] == list_source_files([str(tmp_path)], no_options)
    assert [str(tmp_path), f"{tmp_path}/p=a"] == scanned


def test_a_hudi_table_on_a_local_disk_is_no_source(tmp_path):
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / "f_0_1.parquet").touch()

    with pytest.raises(UsageError, match="is a Hudi table"):
        list_source_files([str(tmp_path)], no_options)


def test_links_below_a_source_are_named_but_not_followed(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.csv").touch()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "other")

    expected = [f"{tmp_path}/in/a.csv", f"{tmp_path}/in/link"]
    assert expected == list_source_files([str(tmp_path / "in")], no_options)


@pytest.mark.parametrize(
    "spelled",
    ["link/../day", "./link/../day/", "{top}/link/../day", "link/../day/../day/right.csv"],
)
def test_two_dots_behind_a_link_are_those_of_its_target(tmp_path, monkeypatch, spelled):
    for name in ("home/day", "mount/day", "mount/now"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/day/wrong.csv").touch()
    (tmp_path / "mount/day/right.csv").touch()
    (tmp_path / "home/link").symlink_to(tmp_path / "mount/now")
    monkeypatch.chdir(tmp_path / "home")
    [found] = list_source_files([spelled.format(top=tmp_path / "home")], no_options)

    assert found == os.path.realpath(tmp_path / "mount/day/right.csv")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("run=5/in", "run=5/in"),
        ("./run=5/in/", "run=5/in"),
        ("run=5/in/day=1", None),
        ("run=5/in/day=1/a.csv", None),
        ("run=5/in/day=1/../../in/b=c.csv", None),
    ],
)
def test_names_of_folders_are_columns_below_the_folder_that_is_named(
    source, expected, tmp_path, monkeypatch
):
    (tmp_path / "run=5/in/day=1").mkdir(parents=True)
    for name in ("day=1/a.csv", "b=c.csv"):
        (tmp_path / "run=5/in" / name).touch()
    monkeypatch.chdir(tmp_path)
    found = find_source_files([source], None, {})

    assert found.columns_below == (expected and f"{tmp_path}/{expected}")


@pytest.mark.parametrize("source", ["lake", "lake/", "."])
def test_the_table_among_the_sources_is_named(source, tmp_path, monkeypatch):
    (tmp_path / "lake/t/.hoodie").mkdir(parents=True)
    (tmp_path / "lake/t/a.parquet").touch()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match=r"^(\./)?lake/t: is a Hudi table"):
        find_source_files([source], None, {})


def test_the_slashes_of_a_path_below_the_current_folder_do_not_lead_to_the_root(
    tmp_path, monkeypatch
):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp/a.csv").touch()
    monkeypatch.chdir(tmp_path)

    assert [f"{tmp_path}/tmp/a.csv"] == list_source_files([".//tmp/a.csv"], no_options)


def test_a_current_folder_that_is_gone_matters_to_paths_below_it_alone(tmp_path, monkeypatch):
    (tmp_path / "a.csv").touch()
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert [f"{tmp_path}/a.csv"] == list_source_files([str(tmp_path / "a.csv")], no_options)
    with pytest.raises(StorageError, match=r"a\.csv: the current folder does not exist any more"):
        list_source_files(["a.csv"], no_options)


@pytest.mark.parametrize("path", ["a.csv/b.csv", "missing/../a.csv"])
def test_a_path_through_what_is_no_folder_does_not_exist(tmp_path, path):
    (tmp_path / "a.csv").touch()

    with pytest.raises(StorageError, match="does not exist"):
        list_source_files([str(tmp_path / path)], no_options)


def test_a_folder_whose_parent_cannot_be_read_is_named(tmp_path, monkeypatch):
    look = os.stat

    def refuse(path, **options):
        if str(path).endswith("/rows"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path, **options)

    monkeypatch.setattr(os, "stat", refuse)

    with pytest.raises(StorageError, match="/rows: Permission denied; give this user access"):
        list_source_files([str(tmp_path / "rows")], no_options)
