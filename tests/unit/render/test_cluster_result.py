"""The result of a clustering, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.executor.outcomes import ClusterOutcome, LeftGroup
from reconciler.executor.result import StepOutcome
from reconciler.render.result import result_json, result_text
from reconciler.render.result_markdown import result_markdown
from reconciler.render.terminal import Terminal
from reconciler.state.measured_queries import MeasuredQuery
from tests.unit.render.test_result import result, table

DONE = ClusterOutcome(
    groups=3,
    slices=40,
    files_before=52,
    files_after=4,
    bytes_read=3 << 30,
    bytes_written=2 << 30,
    rows=1_200_000,
)
LEFT = LeftGroup(partition="p=1", slices=2, because="commit 7 has written to its file group f")

MEASURED = MeasuredQuery(
    query="one customer",
    where="customer = 42",
    files=2,
    bytes=2048,
    of_files=31,
    of_bytes=40960,
    predicted_files=3,
    predicted_bytes=3072,
)


def outcome(how="completed", done=DONE, **more):
    return StepOutcome(kind="cluster", how=how, instant="9", rewritten=done, **more)


def said(found):
    return " ".join(result_text(result(table(outcomes=(found,))), Terminal()).split())


@pytest.mark.parametrize(
    ("how", "done", "says"),
    [
        (
            "completed",
            DONE,
            "cluster 9 rewrote 52 files, 3.0 GiB, into 4 files, 2.0 GiB; 1 200 000 rows",
        ),
        ("adopted", DONE, "cluster 9 completed by another writer: rewrote 52 files"),
        ("undone", ClusterOutcome(), "no group could be rewritten"),
        ("nothing", ClusterOutcome(gone=2), "nothing left to do, 2 groups already rewritten"),
    ],
)
def test_a_clustering_is_one_clause(how, done, says):

    assert says in said(outcome(how, done))


def test_skipped_groups_are_named_and_make_the_result_stale():
    found = outcome(done=ClusterOutcome(groups=1, splits=2, left=(LEFT,)))

    assert 4 == found.exit_code
    assert "! skipped 1 group of the plan" in said(found)
    assert "2 file slices of p=1: commit 7 has written to its file group f" in said(found)
    assert "2 files more than planned, because others grew too large" in said(found)


def test_measured_reads_are_shown_with_predicted_ones():
    found = outcome(done=replace(DONE, queries=(MEASURED,)))
    text = "query one customer reads 2 of 31 files, 2.0 KiB (5 %); predicted: 3 files, 3.0 KiB"

    assert text in said(found)
    assert text in " ".join(result_markdown(result(table(outcomes=(found,)))).split())


def test_unmeasured_files_are_counted():
    some = replace(MEASURED, predicted_files=None, predicted_bytes=None, unread=7000)
    found = outcome(done=replace(DONE, queries=(some,)))
    text = (
        "reads 2 of 31 new files, 2.0 KiB (5 %); 7 000 other files not measured, because there "
        "are too many"
    )

    assert text in said(found)
    assert "predicted" not in said(found)


def test_a_failed_measurement_is_a_warning():
    found = outcome(done=replace(DONE, unmeasured="the queries could not be measured: why"))

    assert "! warning the queries could not be measured: why" in said(found)
    assert 0 == found.exit_code


def test_only_the_first_ten_queries_are_shown():
    found = outcome(done=replace(DONE, queries=(MEASURED,) * 12))

    assert 10 == said(found).count("query one customer")
    assert "… and 2 more queries" in said(found)


def test_the_summary_counts_clusterings():

    assert "52 files (3.0 GiB) rewritten into 4 files." in said(outcome())


def test_a_comment_shows_rewritten_and_skipped_groups():
    found = outcome(
        done=ClusterOutcome(files_before=2, files_after=1, bytes_read=2048, left=(LEFT,))
    )
    text = result_markdown(result(table(outcomes=(found,))))

    assert "**2 files (2.0 KiB) rewritten into 1 file**." in text
    assert "| 1 group |" in text
    assert "skipped: 2 file slices of p=1: commit 7 has written to its file group f" in text


def test_programs_get_every_number():
    found = outcome(done=ClusterOutcome(groups=1, left=(LEFT,), queries=(MEASURED,)))
    document = json.loads(result_json(result(table(outcomes=(found,)))))

    assert {
        "groups": 1,
        "fileGroups": 0,
        "filesBefore": 0,
        "filesAfter": 0,
        "bytesRead": 0,
        "bytesWritten": 0,
        "rows": 0,
        "splits": 0,
        "groupsGone": 0,
        "leftOut": [
            {
                "partition": "p=1",
                "slices": 2,
                "because": "commit 7 has written to its file group f",
            }
        ],
        "queries": [
            {
                "query": "one customer",
                "where": "customer = 42",
                "predictedFiles": 3,
                "predictedBytes": 3072,
                "files": 2,
                "bytes": 2048,
                "ofFiles": 31,
                "ofBytes": 40960,
                "unread": 0,
            }
        ],
        "unmeasured": None,
    } == document["tables"][0]["outcomes"][0]["rewritten"]
