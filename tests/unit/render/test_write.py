"""What a write came to, as people read it."""

from __future__ import annotations

from reconciler.render.write import written_text
from reconciler.writer.asked import Outcome
from reconciler.writer.request import Totals

NOTHING = {"brought": 0, "dropped": 0, "idle": 0, "inserts": 0, "updates": 0, "deletes": 0}


def test_rows_and_file_groups_are_said_in_groups_of_three_digits():
    done = Outcome(
        how="completed",
        instant="20261122000000000",
        totals=Totals(**{**NOTHING, "inserts": 58500, "updates": 1200}),
        begun=1000,
        filled=9,
        files=1009,
        bytes=4 * 1024 * 1024,
        rewritten=1024 * 1024,
    )

    assert written_text("orders", "insert", done) == (
        "orders: insert completed as 20261122000000000\n"
        "  rows   58 500 new, 1 200 changed\n"
        "  files  1 009 new files of 4.0 MiB; file groups: 1 000 begun, "
        "9 written again (1.0 MiB before)\n"
    )


def test_a_deletion_of_what_is_not_there_says_so():
    done = Outcome(how="nothing", totals=Totals(**{**NOTHING, "brought": 2, "idle": 2}))

    assert written_text("orders", "delete", done) == (
        "orders: delete: none of the 2 keys is in the table\n"
    )


def test_a_deletion_of_one_key_that_is_not_there_says_so():
    done = Outcome(how="nothing", totals=Totals(**{**NOTHING, "brought": 1, "idle": 1}))

    assert written_text("orders", "delete", done) == (
        "orders: delete: the 1 key is not in the table\n"
    )
