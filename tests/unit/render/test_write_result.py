"""The result of a write, for people."""

from __future__ import annotations

import json

from reconciler.render.write_result import write_json, write_text
from reconciler.status.reconciliation import ReconciledWrite
from reconciler.writer.job import RowCounts
from reconciler.writer.request import WriteResult

NOTHING = {
    "incoming": 0,
    "dropped": 0,
    "absent_deletes": 0,
    "inserts": 0,
    "updates": 0,
    "deletes": 0,
}


def test_rows_and_file_groups_have_digits_in_groups_of_three():
    done = WriteResult(
        status="completed",
        instant="20261122000000000",
        counts=RowCounts(**{**NOTHING, "inserts": 58500, "updates": 1200}),
        created_groups=1000,
        rewritten_groups=9,
        files=1009,
        bytes=4 * 1024 * 1024,
        rewritten_bytes=1024 * 1024,
    )

    assert write_text("orders", "insert", done) == (
        "orders: insert completed as 20261122000000000\n"
        "  rows   58 500 new, 1 200 changed\n"
        "  files  1 009 new files of 4.0 MiB; file groups: 1 000 created, "
        "9 rewritten (1.0 MiB before)\n"
    )


def test_log_files_are_counted_beside_base_files():
    done = WriteResult(
        status="completed",
        instant="20261122000000000",
        counts=RowCounts(**{**NOTHING, "inserts": 5, "updates": 20, "deletes": 3}),
        created_groups=1,
        appended_groups=2,
        files=1,
        bytes=1024 * 1024,
        log_files=2,
        log_bytes=2048,
    )

    assert write_text("orders", "upsert", done) == (
        "orders: upsert completed as 20261122000000000\n"
        "  rows   5 new, 20 changed, 3 deleted\n"
        "  files  1 new file of 1.0 MiB; 2 log files of 2.0 KiB; file groups: 1 created, "
        "2 appended to\n"
    )


def test_the_document_counts_log_files_where_there_are_some():
    written = {"status": "completed", "files": 1, "bytes": 9}
    plain = json.loads(write_json("t", "upsert", ReconciledWrite(**written)))
    logged = json.loads(
        write_json(
            "t",
            "upsert",
            ReconciledWrite(**written, log_files=2, log_bytes=7, appended_groups=1),
        )
    )

    assert "logFiles" not in plain
    assert (2, 7) == (logged["logFiles"], logged["logBytesWritten"])
    assert {**plain["fileGroups"], "appended": 1} == logged["fileGroups"]


def test_a_deletion_of_missing_keys_says_so():
    done = WriteResult(
        status="nothing", counts=RowCounts(**{**NOTHING, "incoming": 2, "absent_deletes": 2})
    )

    assert write_text("orders", "delete", done) == (
        "orders: delete: none of the 2 keys is in the table\n"
    )


def test_a_deletion_of_one_missing_key_says_so():
    done = WriteResult(
        status="nothing", counts=RowCounts(**{**NOTHING, "incoming": 1, "absent_deletes": 1})
    )

    assert write_text("orders", "delete", done) == (
        "orders: delete: the 1 key is not in the table\n"
    )
