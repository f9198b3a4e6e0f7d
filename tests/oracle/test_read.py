"""Our reader answers what real Hudi answers, on every table here, now and at every instant."""

from __future__ import annotations

import pytest

from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.storage.open import open_storage
from tests.oracle.answer_checks import LATE_WRITES, is_named_refusal, judge_answers, order_columns
from tests.oracle.answers import Answer, find_differences
from tests.oracle.our_reader import read_our_answers
from tests.oracle.read_queries import (
    archived_version,
    list_judging_versions,
    list_queries,
    read_hudi_answers,
    table_folder,
)
from tests.oracle.stored_tables import CLEANED, READ, TABLES
from tests.selection import long

pytestmark = pytest.mark.oracle
TIME = "_hoodie_commit_time"
#: the only tables of which anything is refused by name, and what of them is
REFUSED = {
    "renamed_column": {
        "snapshot",
        "snapshot by listing",
        "read optimized",
        "20261121173418426",
        "20261121173419214",
    },
    "v6_bootstrap": {"00000000000001", "00000000000002"},
    "v8_bootstrap": {"00000000000001", "00000000000002"},
    "v8_mor_partial": {
        "snapshot",
        "snapshot by listing",
        "20261121050815011",
        "20261121050818701",
    },
}
#: version of Hudi -> tables that it reads otherwise, for known reasons
OTHERWISE = {
    # 0.x and 1.x do not merge log records the same: we do as those did that made the table
    "1.2.0": {
        "commit_0.15.0",
        "eventstr_0.15.0",
        "logc_0.15.0",
        "odate_0.15.0",
        "odbl_0.15.0",
        "odec_0.15.0",
        "ots_0.15.0",
        "virt_0.15.0",
    },
    # see the tests below
    "0.15.0": {"parq_0.15.0", "virt_0.15.0"},
}


def judged_tables():
    """Every table with each release of Hudi that judges it; of the cleaned ones, one release does.

    The newest release judges a table of version 6 too: each layout, and what it reads otherwise.
    What rows are merged to, the release says that made the table.
    """
    for name, archive in TABLES.items():
        own, *newest = list_judging_versions(archived_version(archive))
        yield (name, own) if name in READ else long(name, own)
        for version in newest if name not in CLEANED else ():
            is_other = name.startswith("v6_") or name in OTHERWISE[version]
            yield (name, version) if is_other else long(name, version)


@pytest.mark.parametrize(("name", "version"), list(judged_tables()))
def test_our_reader_answers_what_real_hudi_answers(name, version, real_hudi, tmp_path):
    table = table_folder(TABLES[name], tmp_path / "table")
    asked = list_queries(table)
    ours = read_our_answers(table, asked)
    refused = {query for query, answer in ours.items() if is_named_refusal(answer)}

    assert REFUSED.get(name, set(ours) if name == "v6_restore_pending" else set()) == refused
    theirs = read_hudi_answers(real_hudi(version), table, asked, tmp_path / version)
    wrong = judge_answers(version, table, theirs, ours)
    if name in OTHERWISE[version]:
        assert wrong
    else:
        assert [] == wrong


def both(hudi, name, folder, query="snapshot"):
    """An answer of Hudi's and ours."""
    table = table_folder(TABLES[name], folder / "table")
    (asked,) = [one for one in list_queries(table) if one.name == query]
    said = hudi.read_all(table, [asked.options], folder / "rows")
    return Answer.from_record(said[0]), read_our_answers(table, [asked])[query]


@pytest.mark.parametrize(
    ("name", "version"), [("v9_mor_part", "1.2.0"), ("v6_lazy_mor_tls", "0.15.0")]
)
def test_a_log_file_that_lost_its_end_is_read_as_by_hudi(name, version, real_hudi, tmp_path):
    """It is skipped from the block on that is not whole; of no bytes nothing is left to read."""
    for left in (-1, 20, 0):
        folder = tmp_path / str(left)
        table = table_folder(TABLES[name], folder / "table")
        scan = open_scan(open_storage(str(table)), ReadRequest())
        logs = next(logs for logs in scan.slices.column("logs").to_pylist() if logs)
        whole = read_our_answers(table, list_queries(table)[:1])["snapshot"]
        file = table / logs[-1]
        file.write_bytes(file.read_bytes()[:left])
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)  # with it Hadoop refuses
        asked = list_queries(table)[:2]
        ours = read_our_answers(table, asked)
        said = real_hudi(version).read_all(table, [one.options for one in asked], folder / "rows")

        assert whole != ours["snapshot"]
        for query, answer in zip(asked, said, strict=True):
            theirs, mine = Answer.from_record(answer), ours[query.name]
            theirs = order_columns(theirs, mine) if version.startswith("0.") else theirs
            assert [] == list(find_differences(theirs, mine)), (left, query.name)


def test_hudi_0_does_not_merge_records_without_meta_columns(real_hudi, tmp_path):
    """It shows the base file's rows beside those that log files put in their place."""
    theirs, ours = both(real_hudi("0.15.0"), "virt_0.15.0", tmp_path)

    merged = ["0 u0", "1 u1", "2 u2", "3 u3", "4 u4", "5 o5", "6 o6", "7 b7", "8 b8", "9 b9"]
    assert merged == rows(ours, "id", "v")
    shown_again = ["0 b0", "1 b1", "2 b2", "3 b3", "4 b4", "5 b5", "6 b6"]
    assert sorted(merged + shown_again) == rows(theirs, "id", "v")


def test_hudi_0_fails_on_parquet_logs_of_an_older_schema(real_hudi, tmp_path):
    theirs, ours = both(real_hudi("0.15.0"), "parq_0.15.0", tmp_path)

    assert "ClassCastException: required binary z (STRING) is not a group" in theirs.refusal[-1]
    assert 17 == len(ours.rows)


def test_hudi_1_loses_log_files_where_times_are_whole_seconds(real_hudi, tmp_path):
    """Of a version 6 table it takes a log file's slice from the modification time of an instant.

    A compaction that ends in the second it began in seems to end before it began, if the store has
    whole seconds: its slice's log files are given to the slice before it. Hudi 0.15, and we, go by
    the instant in the log file's name.
    """
    theirs, ours = both(real_hudi("1.2.0"), "mor_pending_compaction__0.15.0", tmp_path)

    assert ["a1 6", "b1 7"] == rows(ours, "id", "ts")
    assert ["a1 6", "b1 2"] == rows(theirs, "id", "ts")


def test_hudi_leaves_out_a_write_that_ended_after_a_later_compaction_was_planned(
    real_hudi, tmp_path
):
    """As of its own time: Hudi files its log files under the compaction's slice, which is later."""
    late = "20261121051650743"
    theirs, ours = both(real_hudi("1.2.0"), "v8_mor_overlap", tmp_path, late)

    assert late in LATE_WRITES
    assert [late] == sorted(set(rows(ours, TIME)) - set(rows(theirs, TIME)))
    assert late > max(rows(theirs, TIME))


def rows(answer, *columns):
    return sorted(
        " ".join(map(str, row.values())) for row in answer.rows.select(columns).to_pylist()
    )
