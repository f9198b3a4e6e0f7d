"""Read ``hoodie.properties``: values, unsupported settings and damage."""

from __future__ import annotations

import pytest

from reconciler.errors import FormatError, NotFoundError, UnsupportedError
from reconciler.hudi.load import load_properties
from reconciler.hudi.table.properties import (
    TableProperties,
    compute_checksum,
    format_java_properties,
    parse_java_properties,
    replace_value,
)

MINIMAL = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.checksum": "498511606",
}
PATH = ".hoodie/hoodie.properties"


def text(changes=None):
    """Return the minimal properties with changes; None removes a key."""
    wanted = {k: v for k, v in (MINIMAL | (changes or {})).items() if v is not None}
    return format_java_properties(wanted)


def parsed(**changes):
    return TableProperties.parse(text({k.replace("_", "."): v for k, v in changes.items()}), PATH)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"a=b", {"a": "b"}),
        (b"a:b", {"a": "b"}),
        (b"a b", {"a": "b"}),
        (b"  a \t= \t b ", {"a": "b "}),
        (b"a", {"a": ""}),
        (b"a=", {"a": ""}),
        (b"a==b", {"a": "=b"}),
        (b"a\\=b=c", {"a=b": "c"}),
        (b"a\\ b=c", {"a b": "c"}),
        (b"# a=b\n!c=d\n\n \n", {}),
        (b"a=b\\\n   c", {"a": "bc"}),
        (b"a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        (b"a=b\\\r\n c\r\nd=e\rf=g", {"a": "bc", "d": "e", "f": "g"}),
        (b"a=\\u00e9\\t\\n\\q", {"a": "é\t\nq"}),
        (b"a=\xe9", {"a": "é"}),
        (b"a=\\uD83D\\uDE00", {"a": "😀"}),
        (b"a=1\na=2", {"a": "2"}),
        (b"a=x#y!z", {"a": "x#y!z"}),
    ],
)
def test_java_properties_are_read_as_java_reads_them(line, expected):

    assert expected == parse_java_properties(line, PATH)


@pytest.mark.parametrize("line", [b"a=\\u12", b"a=\\u12g4", b"a=\\u 123", b"a=b\\"])
def test_an_invalid_escape_is_damage(line):

    with pytest.raises(FormatError, match=r"hoodie\.properties: an escape"):
        parse_java_properties(line, PATH)


def test_properties_print_as_java_does():
    raw = {"b": "a: b=c #d!", " k": " v", "é": "é\n\\", "😀": ""}

    assert (
        rb"\ k=\ v"
        b"\n"
        rb"b=a\: b\=c \#d\!"
        b"\n"
        rb"\u00E9=\u00E9\n\\"
        b"\n"
        rb"\uD83D\uDE00="
        b"\n"
    ) == format_java_properties(raw)
    assert raw == parse_java_properties(format_java_properties(raw), PATH)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"hoodie.table.name": "t"}, 498511606),
        ({"hoodie.table.name": "t", "hoodie.database.name": ""}, 498511606),
        ({"hoodie.table.name": "t", "hoodie.database.name": "d"}, 3975153383),
    ],
)
def test_the_checksum_is_over_the_names_alone(raw, expected):

    assert expected == compute_checksum(raw)


def test_a_table_without_anything_special_has_hudis_defaults():
    found = parsed()

    assert ("t", "COPY_ON_WRITE", 9, 2) == (
        found.table_name,
        found.table_type,
        found.table_version,
        found.layout,
    )
    assert (None, (), (), ()) == (
        found.timezone,
        found.partition_fields,
        found.metadata_partitions,
        found.ordering_fields,
    )
    assert (".hoodie/timeline", ".hoodie/timeline/history", ".parquet", None) == (
        found.timeline_folder,
        found.archive_folder,
        found.base_extension,
        found.bootstrap_base,
    )


def test_the_first_layout_keeps_its_timeline_in_the_root_of_its_folder():
    found = parsed(hoodie_table_version="6", hoodie_timeline_layout_version="1")

    assert (1, ".hoodie", ".hoodie/archived") == (
        found.layout,
        found.timeline_folder,
        found.archive_folder,
    )


def test_lists_are_stripped_of_blanks_and_key_generators():
    found = parsed(
        hoodie_table_partition_fields="dt:SIMPLE, ts:TIMESTAMP,,p",
        hoodie_table_metadata_partitions="files, column_stats",
        hoodie_table_ordering_fields="a,b",
        hoodie_table_precombine_field="c",
    )

    assert ("dt", "ts", "p") == found.partition_fields
    assert ("files", "column_stats") == found.metadata_partitions
    assert ("a", "b") == found.ordering_fields


@pytest.mark.parametrize(("written", "expected"), [("UTC", "UTC"), ("utc", "UTC"), ("LOCAL", None)])
def test_only_a_utc_timeline_has_a_known_zone(written, expected):

    assert expected == parsed(hoodie_table_timeline_timezone=written).timezone


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hoodie.table.version", "5", r"table version '5' is not supported; supported are 6, 8, 9"),
        ("hoodie.table.version", "7", "table version '7'"),
        ("hoodie.table.version", "10", "table version '10'"),
        ("hoodie.table.version", None, "hoodie.table.version is missing"),
        ("hoodie.timeline.layout.version", "1", "table version 9 with timeline layout 1"),
        ("hoodie.table.base.file.format", "ORC", "base file format ORC"),
        ("hoodie.table.base.file.format", "HFILE", "base file format HFILE"),
        ("hoodie.table.base.file.format", "LANCE", "base file format LANCE"),
        ("hoodie.table.multiple.base.file.formats.enable", "true", "several base file formats"),
        ("hoodie.table.log.file.format", "PARQUET_LOG", "log file format PARQUET_LOG"),
        ("hoodie.table.format", "iceberg", "table format 'iceberg'"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(key, value, message):

    with pytest.raises(UnsupportedError, match=message):
        TableProperties.parse(text({key: value}), PATH)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.base.file.format", "parquet"),
        ("hoodie.table.multiple.base.file.formats.enable", "false"),
        ("hoodie.table.log.file.format", "HOODIE_LOG"),
        ("hoodie.table.format", "native"),
    ],
)
def test_default_values_may_be_explicit(key, value):

    assert value == TableProperties.parse(text({key: value}), PATH).raw[key]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hoodie.table.name", None, "hoodie.table.name is missing"),
        ("hoodie.table.checksum", None, "hoodie.table.checksum is missing"),
        ("hoodie.table.checksum", "498511607", "the checksum does not match"),
        ("hoodie.database.name", "d", "the checksum does not match"),
        ("hoodie.table.type", "COPY_ON_WHITE", "hoodie.table.type is 'COPY_ON_WHITE'"),
        ("hoodie.table.type", None, "hoodie.table.type is ''"),
        ("hoodie.table.timeline.timezone", "MARS", "hoodie.table.timeline.timezone is 'MARS'"),
        ("hoodie.timeline.path", "../../other", "is outside the table"),
        ("hoodie.timeline.path", "a/../b", "is outside the table"),
        ("hoodie.timeline.path", "/", "is outside the table"),
        ("hoodie.timeline.history.path", "a\\b", "is outside the table"),
    ],
)
def test_damage_names_the_file_and_what_to_do(key, value, message):

    with pytest.raises(FormatError, match=rf"hoodie\.properties: .*{message}.*; restore"):
        TableProperties.parse(text({key: value}), PATH)


class Shelf:
    """A store that answers each read from a list; None means a missing file."""

    location = "/t"

    def __init__(self, **answers):
        self.answers = {k.replace("_", "."): list(v) for k, v in answers.items()}

    def read(self, path):
        left = self.answers.get(path.rpartition("/")[2], [None])
        data = left.pop(0) if len(left) > 1 else left[0]
        if data is None:
            raise NotFoundError(path, "is not there")
        return data


WHOLE = text({"hoodie.database.name": ""})
OTHER = text({"hoodie.table.recordkey.fields": "id"})


def keys_of(**answers):
    return load_properties(Shelf(**answers)).record_keys


def test_the_backup_serves_while_the_file_is_being_replaced():

    assert ("id",) == keys_of(hoodie_properties_backup=[OTHER])
    assert ("id",) == keys_of(hoodie_properties=[b""], hoodie_properties_backup=[OTHER])
    assert ("id",) == keys_of(hoodie_properties=[OTHER[:-30]], hoodie_properties_backup=[OTHER])


def test_the_file_is_read_before_its_backup():

    assert ("id",) == keys_of(hoodie_properties=[OTHER], hoodie_properties_backup=[WHOLE])


def test_a_file_that_is_replaced_between_two_reads_is_read_again():

    assert ("id",) == keys_of(hoodie_properties=[None, OTHER])
    assert ("id",) == keys_of(hoodie_properties=[b"hoodie.table.na", OTHER])


def test_a_damaged_file_without_backup_is_the_problem_that_is_named():

    with pytest.raises(FormatError, match=r"hoodie\.properties: hoodie\.table\.name is missing"):
        keys_of(hoodie_properties=[b"a=b\n"])


def test_a_folder_without_properties_is_no_table():

    with pytest.raises(
        FormatError, match=r"/t: no Hudi table here: .hoodie/hoodie\.properties does not exist"
    ):
        keys_of()


def test_an_unsupported_table_is_refused_though_there_is_a_backup():
    orc = text({"hoodie.table.base.file.format": "ORC"})

    with pytest.raises(UnsupportedError, match="ORC"):
        keys_of(hoodie_properties=[orc], hoodie_properties_backup=[OTHER])


def test_a_changed_value_leaves_every_other_byte_as_it_is():
    before = b"#Updated at 2024\r\n#a=no\n  a\\:b = old\n\n!a=no\r\na\\:b=older\nz=\\u00e9\xe9 \n"
    after = b"#Updated at 2024\r\n#a=no\na\\:b=x,y\n\n!a=no\r\na\\:b=x,y\nz=\\u00e9\xe9 \n"

    assert after == replace_value(before, "a:b", "x,y", "p")


@pytest.mark.parametrize("text", [b"b=1\n", b"a=1\\\n2\n", b"b=\\\na=1\n", b"#a=1\n"])
def test_a_value_without_a_line_of_its_own_is_not_changed(text):
    with pytest.raises(FormatError, match=r"p: a has no line of its own"):
        replace_value(text, "a", "2", "p")
