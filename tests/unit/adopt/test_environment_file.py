"""An environment's file gains lines and loses nothing."""

from __future__ import annotations

import pytest

from reconciler.adopt.environment_file import add_tables_to_text

HEAD = "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
NEW = {"sales.orders": "s3://lake/o", "a": 'x "y"'}


A = '"a": "x \\"y\\""'
ORDERS = '"sales.orders": "s3://lake/o"'


@pytest.mark.parametrize(
    ("before", "rest"),
    [
        ("spec:\n  tables:\n    b: s3://b\n", ""),
        ("spec:\n  tables:\n    b: {path: s3://b}  # kept\n", "\n# next\n  timezone: UTC\n"),
        ("spec:\n  tables:\n    b:\n      path: s3://b\n      timezone: UTC\n", "    # last"),
        ("spec:\n  tables:\n    b: |-\n      s3://b\n", "  timezone: UTC\n"),
    ],
)
def test_tables_are_added_after_the_last_one(before, rest):
    assert (
        add_tables_to_text(HEAD + before + rest, NEW)
        == f"{HEAD}{before}    {A}\n    {ORDERS}\n{rest}"
    )


def test_a_list_is_begun_where_there_is_none():
    text = f"{HEAD}spec:\n  pattern: s3://lake/{{name}}"

    assert add_tables_to_text(text, NEW) == f"{text}\n  tables:\n    {A}\n    {ORDERS}"


def test_lines_end_as_the_others_do():
    text = f"{HEAD}spec:\n  tables:\n    b: s3://b\n"
    more = add_tables_to_text(text.replace("\n", "\r\n"), NEW)

    assert more == f"{text}    {A}\n    {ORDERS}\n".replace("\n", "\r\n")


@pytest.mark.parametrize(
    "before",
    [
        "spec: {tables: {b: s3://b}}\n",
        "spec:\n  tables: {b: s3://b}\n",
        "spec:\n  tables:\n",
        "spec:\n  tables:\n    - no\n    - mapping\n",
        "spec: {}\n",
        "spec:\n  tables:\n    ? b\n    : s3://b\n",
        "spec:\n  tables:\n    b: 'a\u2028b'\n",
    ],
)
def test_a_file_written_in_another_way_is_left_to_people(before):
    assert add_tables_to_text(HEAD + before, NEW) is None


def test_a_table_that_is_listed_already_is_not_listed_twice():
    assert add_tables_to_text(f"{HEAD}spec:\n  tables:\n    a: s3://a\n", {"a": "s3://a"}) is None
