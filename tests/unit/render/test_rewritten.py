"""What a clustering did, as people and programs are told."""

from __future__ import annotations

import json

import pytest

from reconciler.apply.result import LeftGroup, Rewritten, StepOutcome
from reconciler.render.applied import result_markdown
from reconciler.render.result import result_json, result_text
from tests.unit.render.test_result import result, table

DONE = Rewritten(
    groups=3,
    slices=40,
    files_before=52,
    files_after=4,
    bytes_read=3 << 30,
    bytes_written=2 << 30,
    rows=1_200_000,
)
LEFT = LeftGroup(partition="p=1", slices=2, because="commit 7 has written to its file group f")


def outcome(how="completed", done=DONE, **more):
    return StepOutcome(kind="cluster", how=how, instant="9", rewritten=done, **more)


def said(found):
    return " ".join(result_text(result(table(outcomes=(found,))), color=False).split())


@pytest.mark.parametrize(
    ("how", "done", "says"),
    [
        (
            "completed",
            DONE,
            "cluster 9 rewrote 52 files, 3.0 GiB, into 4 files, 2.0 GiB; 1 200 000 rows",
        ),
        ("adopted", DONE, "cluster 9 completed by another writer: rewrote 52 files"),
        ("undone", Rewritten(), "no group of it could be rewritten"),
        ("nothing", Rewritten(gone=2), "nothing to do any more, 2 groups rewritten before"),
    ],
)
def test_a_clustering_is_one_clause(how, done, says):

    assert says in said(outcome(how, done))


def test_groups_that_stayed_are_named_and_make_the_result_stale():
    found = outcome(done=Rewritten(groups=1, splits=2, left=(LEFT,)))

    assert 4 == found.exit_code
    assert "! left out 1 group of the plan stayed" in said(found)
    assert "2 file slices of p=1: commit 7 has written to its file group f" in said(found)
    assert "2 files more than planned, because others grew too large" in said(found)


def test_the_last_line_sums_clusterings_up():

    assert "52 files (3.0 GiB) rewritten into 4 files." in said(outcome())


def test_a_comment_says_what_was_rewritten_and_what_stayed():
    found = outcome(done=Rewritten(files_before=2, files_after=1, bytes_read=2048, left=(LEFT,)))
    text = result_markdown(result(table(outcomes=(found,))))

    assert "**2 files (2.0 KiB) rewritten into 1 file**." in text
    assert "| 1 group |" in text
    assert "stayed: 2 file slices of p=1: commit 7 has written to its file group f" in text


def test_programs_get_every_number():
    found = outcome(done=Rewritten(groups=1, left=(LEFT,)))
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
    } == document["tables"][0]["outcomes"][0]["rewritten"]
