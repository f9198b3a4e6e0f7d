"""The result of an index step, for people and for programs."""

from __future__ import annotations

import json

import pytest

from reconciler.executor.outcomes import IndexOutcome, LeftColumn
from reconciler.executor.result import StepOutcome
from reconciler.render.result import result_json, result_text
from reconciler.render.result_markdown import result_markdown
from reconciler.render.terminal import Terminal
from tests.unit.render.test_result import result, table

DONE = IndexOutcome(
    version=".hoodie/.zindex/20260102000000000_0/index-4096.parquet",
    previous="20260101000000000_0",
    columns=("customer_id", "amount"),
    files=1200,
    bytes=4096,
    footers=31,
    kept=1169,
    dropped=12,
    tidied=1,
)
BUILT = IndexOutcome(
    target="column_stats",
    columns=("amount",),
    files=3,
    footers=3,
    partitions=("column_stats", "partition_stats"),
)
SAID = (
    "index indexed 2 columns of 1 200 files, 4.0 KiB "
    ".hoodie/.zindex/20260102000000000_0/index-4096.parquet read the footers of 31 files, "
    "kept the statistics of 1 169, dropped 12, removed 1 older version"
)
FAILED = (
    "index the existing index stays, and reads stay right ! failed /t/.hoodie: may not be written"
)
BUILT_SAID = (
    "index column_stats of the metadata table: built column_stats and partition_stats: "
    "1 column of 3 files read the footers of 3 files"
)
LEFT = LeftColumn("gone", "column gone cannot be indexed: the table has no such column")


def outcome(how="completed", done=DONE, **more):
    return StepOutcome(kind="index", how=how, indexed=done, **more)


def said(found):
    return " ".join(result_text(result(table(outcomes=(found,))), Terminal()).split())


@pytest.mark.parametrize(
    ("how", "done", "says"),
    [
        ("completed", DONE, SAID),
        ("nothing", IndexOutcome(), "index nothing left to do"),
        ("failed", IndexOutcome(error="/t/.hoodie: may not be written"), FAILED),
        ("completed", BUILT, BUILT_SAID),
        (
            "nothing",
            IndexOutcome(target="column_stats"),
            "index column_stats of the metadata table: nothing left to do",
        ),
    ],
)
def test_an_index_is_one_clause_with_its_sources(how, done, says):

    assert says in said(outcome(how, done))


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (outcome(), 0),
        (outcome("nothing", IndexOutcome()), 0),
        (outcome(done=IndexOutcome(version="v", left=(LEFT,))), 4),
        (outcome("failed", IndexOutcome(error="why")), 5),
    ],
)
def test_an_index_has_a_code(found, code):

    assert code == found.exit_code


def test_skipped_columns_are_named():
    found = outcome(done=IndexOutcome(version="v", left=(LEFT,)))

    assert f"! skipped {LEFT.because}" in said(found)
    text = result_markdown(result(table(outcomes=(found,))))
    assert f"not indexed: {LEFT.because}" in text


def test_a_comment_says_why_no_index_was_written():
    found = outcome("failed", IndexOutcome(error="/t/.hoodie: may not be written"))

    text = result_markdown(result(table(outcomes=(found,))))

    assert "the index was not written: /t/.hoodie: may not be written" in text


def test_programs_get_every_number():
    document = json.loads(result_json(result(table(outcomes=(outcome(),)))))

    assert {
        "target": "zindex",
        "version": ".hoodie/.zindex/20260102000000000_0/index-4096.parquet",
        "previous": "20260101000000000_0",
        "columns": ["customer_id", "amount"],
        "files": 1200,
        "bytes": 4096,
        "footersRead": 31,
        "footersUnread": 0,
        "filesKept": 1169,
        "filesDropped": 12,
        "versionsRemoved": 1,
        "partitions": [],
        "leftOut": [],
        "error": None,
    } == document["tables"][0]["outcomes"][0]["indexed"]


def test_the_last_line_and_a_comment_count_indexes():
    found = result(
        table(outcomes=(outcome(), outcome(done=BUILT), outcome("nothing", IndexOutcome())))
    )

    assert "; 2 indexes updated." in " ".join(result_text(found, Terminal()).split())
    assert "**2 indexes updated**." in result_markdown(found)
