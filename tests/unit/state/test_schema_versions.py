"""Columns that changed their name while files under the old one are still there."""

from __future__ import annotations

import json

import pytest

from reconciler.errors import FormatError
from reconciler.state.schema_versions import find_renamed_columns, parse_schema_versions


def field(number, name, kind="int"):
    return {"id": number, "name": name, "optional": True, "type": kind}


def record(*fields):
    return {"type": "record", "fields": list(fields)}


def versions(*schemas):
    """Versions of (since, fields), as Hudi writes them: newest first."""
    said = [{"max_column_id": 9, "version_id": since, **record(*f)} for since, f in schemas]
    return parse_schema_versions(json.dumps({"schemas": said[::-1]}).encode(), "h")


PLAIN = versions((0, [field(0, "a"), field(1, "b")]), (20, [field(0, "c"), field(1, "b")]))


def test_a_renamed_column_is_found_where_older_files_are_read():

    assert {"c": "a"} == find_renamed_columns(PLAIN, oldest="10", as_of="30")


def test_files_written_since_hold_the_new_name():

    assert {} == find_renamed_columns(PLAIN, oldest="20", as_of="30")


def test_before_the_renaming_nothing_was_renamed():

    assert {} == find_renamed_columns(PLAIN, oldest="10", as_of="19")


def test_added_and_dropped_columns_keep_theirs():
    found = versions((0, [field(0, "a"), field(1, "b")]), (20, [field(1, "b"), field(2, "c")]))

    assert {} == find_renamed_columns(found, oldest="10", as_of="30")


def test_a_column_that_was_dropped_and_made_again_is_another():
    found = versions((0, [field(0, "a")]), (20, []), (25, [field(1, "a", "string")]))

    assert {"a": "a"} == find_renamed_columns(found, oldest="10", as_of="30")
    assert {} == find_renamed_columns(found, oldest="21", as_of="30")


def test_every_version_since_the_oldest_file_counts():
    found = versions((0, [field(0, "a")]), (20, [field(0, "b")]), (25, [field(0, "a")]))

    assert {"a": "b"} == find_renamed_columns(found, oldest="10", as_of="30")


def test_columns_that_took_each_others_names_are_others():
    found = versions((0, [field(0, "a"), field(1, "b")]), (20, [field(0, "b"), field(1, "a")]))

    assert {"a": "a", "b": "b"} == find_renamed_columns(found, oldest="10", as_of="30")


def test_fields_of_structs_lists_and_maps_have_names_too():
    def nested(name):
        inner = record(field(7, name))
        items = {"type": "array", "element_id": 6, "element_optional": True, "element": inner}
        return record(field(5, "x", {"type": "map", "key_id": 8, "value_id": 9, "value": items}))

    found = versions((0, [field(0, "s", nested("old"))]), (20, [field(0, "s", nested("new"))]))

    assert {"s.x.value.element.new": "s.x.value.element.old"} == find_renamed_columns(
        found, oldest="10", as_of="30"
    )


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"schemas": {}}', b'{"schemas": [{}]}', b'{"schemas": [{"version_id": "x"}]}'],
)
def test_a_damaged_history_names_its_file(data):

    with pytest.raises(FormatError, match=r"^h: the history of the schema"):
        parse_schema_versions(data, "h")
