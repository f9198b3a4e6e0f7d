"""Merge base files and log blocks: what wins, what is dropped, what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.merge_counts import MergeCounts
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from reconciler.hudi.codecs.log_blocks import BlockType, encode_block
from tests.memory_slices import (
    MemoryFiles,
    data_block,
    delete_block,
    log_block,
    parquet_block,
    parquet_bytes,
    read_rows,
    record_schema,
    rollback_block,
)

KEY = "_hoodie_record_key"
TEXT = record_schema((KEY, "string"), ("ts", "int"), ("v", "string"))
SCHEMA = to_arrow_schema(TEXT, "t")
COMMIT = MergeRules()
EVENT = MergeRules(ordering=("ts",))


def row(key, ts, v):
    return {KEY: key, "ts": ts, "v": v}


def base(*rows):
    return pa.Table.from_pylist([row(*r) for r in rows], SCHEMA)


def log(instant, *rows):
    return data_block(instant, TEXT, [row(*r) for r in rows])


def test_the_later_write_wins_by_commit_time():
    found = read_rows(
        SCHEMA,
        COMMIT,
        [[log("1", ("a", 9, "log 1"), ("c", 1, "new"))], [log("2", ("a", 1, "log 2"))]],
        base=base(("a", 10, "base"), ("b", 1, "base")),
    )

    assert [row("a", 1, "log 2"), row("b", 1, "base"), row("c", 1, "new")] == found


def test_the_greater_event_time_wins_and_of_equals_the_later_write():
    found = read_rows(
        SCHEMA,
        EVENT,
        [
            [log("1", ("a", 9, "log"), ("b", 2, "log 1"), ("c", 5, "x"))],
            [log("2", ("b", 2, "2"))],
        ],
        base=base(("a", 10, "base"), ("b", 1, "base"), ("c", 5, "base")),
    )

    assert [row("a", 10, "base"), row("b", 2, "2"), row("c", 5, "x")] == found


def test_several_ordering_fields_compare_one_after_the_other():
    text = record_schema((KEY, "string"), ("ts", "long"), ("n", "string"))
    schema = to_arrow_schema(text, "t")
    rules = MergeRules(ordering=("ts", "n"))
    records = [{KEY: "a", "ts": 1, "n": "b"}, {KEY: "b", "ts": 1, "n": "a"}]
    stored = pa.Table.from_pylist(
        [{KEY: "a", "ts": 1, "n": "a"}, {KEY: "b", "ts": 1, "n": "b"}], schema
    )

    found = read_rows(schema, rules, [[data_block("1", text, records)]], base=stored)
    assert [{KEY: "a", "ts": 1, "n": "b"}, {KEY: "b", "ts": 1, "n": "b"}] == found
    array = {"wrappedValues": [("org.apache.hudi.avro.model.LongWrapper", {"value": 1})] * 1}
    array["wrappedValues"].append(("org.apache.hudi.avro.model.StringWrapper", {"value": "aa"}))
    found = read_rows(
        schema,
        rules,
        [[delete_block("1", ("a", "ArrayWrapper", array), ("b", "ArrayWrapper", array))]],
        base=stored,
    )
    assert [{KEY: "b", "ts": 1, "n": "b"}] == found


def test_a_deletion_without_event_time_deletes_anything():
    found = read_rows(
        SCHEMA,
        EVENT,
        [
            [log("1", ("a", 10, "log"))],
            [delete_block("2", ("a",), ("b", "IntWrapper", {"value": 0}))],
        ],
        base=base(("a", 9, "base"), ("b", 9, "base"), ("c", 9, "base")),
    )

    assert [row("c", 9, "base")] == found


def test_a_deletion_with_an_event_time_only_deletes_what_is_not_newer():
    found = read_rows(
        SCHEMA,
        EVENT,
        [
            [log("1", ("a", 5, "log"), ("b", 4, "log"))],
            [delete_block("2", *((key, "IntWrapper", {"value": 4}) for key in "abcd"))],
        ],
        base=base(("b", 5, "base"), ("c", 4, "base"), ("d", 5, "base")),
    )

    assert [row("a", 5, "log"), row("b", 5, "base"), row("d", 5, "base")] == found


def test_a_record_after_a_final_deletion_comes_back_whatever_its_event_time():
    found = read_rows(
        SCHEMA,
        EVENT,
        [[log("1", ("a", 9, "old"))], [delete_block("2", ("a",))], [log("3", ("a", 1, "new"))]],
    )

    assert [row("a", 1, "new")] == found


def test_deletions_inside_data_blocks_go_by_flag_operation_and_marker():
    text = record_schema(
        (KEY, "string"), ("_hoodie_is_deleted", "boolean"), ("_hoodie_operation", "string"),
        ("op", "string"),
    )  # fmt: skip
    schema = to_arrow_schema(text, "t")
    names = schema.names
    stored = pa.Table.from_pylist([dict.fromkeys(names) | {KEY: k} for k in "abcde"], schema)
    records = [
        dict(zip(names, values, strict=True))
        for values in [
            ("a", True, None, None),
            ("b", None, "D", None),
            ("c", None, None, "x"),
            ("d", False, "U", "y"),
        ]
    ]
    rules = MergeRules(delete_marker=("op", "x"))

    found = read_rows(
        schema, rules, [[data_block("1", text, records)]], base=stored, columns=(KEY,)
    )
    assert [{KEY: "d"}, {KEY: "e"}] == found


@pytest.mark.parametrize(
    ("kind", "left"), [("int", []), ("long", ["a"]), (["null", "int"], []), (["null", "long"], [])]
)
def test_a_flagged_deletion_is_final_for_event_time_0_of_an_int_and_for_none(kind, left):
    text = record_schema((KEY, "string"), ("ts", kind), ("_hoodie_is_deleted", "boolean"))
    schema = to_arrow_schema(text, "t")
    time = None if isinstance(kind, list) else 0
    deletion = data_block("1", text, [{KEY: "a", "ts": time, "_hoodie_is_deleted": True}])
    stored = pa.Table.from_pylist([{KEY: "a", "ts": 5}], schema)

    found = read_rows(schema, EVENT, [[deletion]], base=stored)
    assert left == [row[KEY] for row in found]


@pytest.mark.parametrize(("made_by_0", "second"), [(False, "log"), (True, "second")])
def test_of_equal_keys_in_a_base_file_readers_of_hudi_0_merge_the_first(made_by_0, second):
    stored = base(("a", 1, "first"), ("a", 2, "second"), ("b", 1, "b"))
    rules = replace(COMMIT, precombines=made_by_0)

    found = read_rows(SCHEMA, rules, [[log("1", ("a", 0, "log"))]], base=stored, row_group_size=1)
    assert ["log", second, "b"] == [one["v"] for one in found]


@pytest.mark.parametrize("made_by_0", [False, True])
def test_a_compaction_merges_every_row_of_a_key_that_is_there_twice(made_by_0):
    """Else its base file would have what was changed or deleted before."""
    stored = base(("a", 1, "a1"), ("a", 3, "a2"), ("b", 1, "b1"), ("b", 2, "b2"), ("c", 1, "c"))
    logs = [[log("1", ("a", 2, "new"), ("d", 1, "d")), delete_block("2", ["b"])]]
    rules = replace(EVENT, precombines=made_by_0)
    counts = MergeCounts()
    counts.base_rows = len(stored)

    found = read_rows(
        SCHEMA, rules, logs, base=stored, row_group_size=1, compacts=True, counts=counts
    )
    assert [("a", "new"), ("a", "a2"), ("c", "c"), ("d", "d")] == [
        (one[KEY], one["v"]) for one in found
    ]
    assert (1, 2, 1, 4) == (counts.updates, counts.deletes, counts.inserts, counts.rows)


def test_a_record_that_wins_over_several_rows_takes_the_place_of_each():
    stored = base(("a", 1, "a1"), ("a", 2, "a2"), ("b", 1, "b"))

    found = read_rows(SCHEMA, EVENT, [[log("1", ("a", 2, "log"))]], base=stored)
    assert [row("a", 2, "log"), row("a", 2, "log"), row("b", 1, "b")] == found


def test_a_rollback_removes_the_earlier_blocks_of_its_target():
    found = read_rows(
        SCHEMA,
        COMMIT,
        [
            [log("1", ("a", 1, "kept"), ("b", 1, "kept"))],
            [log("2", ("a", 2, "gone")), delete_block("2", ("b",)), log("3", ("c", 1, "kept"))],
            [rollback_block("4", "2"), log("2", ("d", 1, "again"))],
        ],
    )

    assert ["kept", "kept", "kept", "again"] == [r["v"] for r in found]


def test_an_unknown_command_is_refused():
    unknown = log_block(BlockType.COMMAND, "1", b"", command_block_type="1")

    with pytest.raises(UnsupportedError, match="command '1'"):
        read_rows(SCHEMA, COMMIT, [[unknown]])


def test_a_compacted_block_stands_where_its_last_original_stood():
    compacted = data_block("9", TEXT, [row("a", 2, "compacted")], compacted_block_times="1,2")
    found = read_rows(
        SCHEMA,
        COMMIT,
        [
            [log("1", ("a", 1, "1")), log("2", ("a", 2, "2"))],
            [log("3", ("a", 3, "3"))],
            [compacted],
        ],
    )

    assert [row("a", 3, "3")] == found


def test_a_block_compacted_twice_counts_once():
    found = read_rows(
        SCHEMA,
        COMMIT,
        [
            [log("1", ("a", 1, "1")), log("2", ("b", 1, "2"))],
            [data_block("3", TEXT, [row("a", 1, "once")], compacted_block_times="1")],
            [data_block("4", TEXT, [row("a", 1, "twice")], compacted_block_times="3,2")],
        ],
    )

    assert [row("a", 1, "twice")] == found


def test_corrupt_half_written_and_change_blocks_are_skipped():
    whole = log("1", ("a", 1, "kept"))
    torn = log("2", ("a", 2, "torn"))[:-9]
    bad = bytearray(log("2", ("a", 2, "bad")))
    bad[-1] ^= 1
    changes = log_block(BlockType.CDC_DATA, "2", b"anything", schema="{}")

    found = read_rows(SCHEMA, COMMIT, [[whole, bytes(bad), changes, torn]])
    assert [row("a", 1, "kept")] == found


def test_uncommitted_blocks_are_skipped_in_version_6():
    committed = CommittedInstants(
        completed=frozenset({"3", "5"}), pending=frozenset({"2", "4"}), start="3"
    )
    logs = [[log(str(n), (str(n), n, "x")) for n in range(1, 7)]]

    found = read_rows(SCHEMA, COMMIT, logs, committed=committed)
    assert ["1", "3", "5"] == [r[KEY] for r in found]


def test_time_travel_leaves_out_later_blocks():
    logs = [[log("1", ("a", 1, "1")), log("2", ("a", 1, "2")), delete_block("3", ("a",))]]

    for as_of, value in (("1", ["1"]), ("2", ["2"]), ("3", [])):
        found = read_rows(SCHEMA, COMMIT, logs, committed=CommittedInstants(as_of=as_of))
        assert value == [r["v"] for r in found]


def test_columns_that_decide_the_merge_need_not_be_returned():
    found = read_rows(
        SCHEMA,
        EVENT,
        [[log("1", ("a", 1, "log"), ("b", 3, "log"))]],
        base=base(("a", 2, "base"), ("b", 2, "base")),
        columns=("v",),
    )

    assert [{"v": "base"}, {"v": "log"}] == found


def test_no_column_at_all_still_counts_rows():
    files = {"a.log": log("1", ("a", 1, "log"), ("b", 3, "log"))}
    reading = SliceReadOptions(rules=EVENT, schema=SCHEMA, columns=())

    found = list(read_slice(SliceFiles(logs=("a.log",)), reading, MemoryFiles(files)))
    assert 2 == sum(batch.num_rows for batch in found)


def test_columns_that_files_lack_are_null_or_of_the_given_value():
    text = record_schema((KEY, "string"), ("ts", "long"), ("p", "string"), ("new", "double"))
    schema = to_arrow_schema(text, "t")

    found = read_rows(
        schema,
        COMMIT,
        [[log("1", ("a", 1, "log"))]],
        base=base(("b", 2, "base")).select([KEY, "ts"]),
        missing={"p": "2026"},
    )
    assert [
        {KEY: "a", "ts": 1, "p": "2026", "new": None},
        {KEY: "b", "ts": 2, "p": "2026", "new": None},
    ] == found


def test_timestamps_of_older_writers_are_instants():
    text = record_schema(
        (KEY, "string"), ("t", {"type": "long", "logicalType": "timestamp-micros"})
    )
    schema = to_arrow_schema(text, "t")
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    stored = pa.Table.from_pylist([{KEY: "a", "t": moment}], schema)
    files = {"b.parquet": parquet_bytes(stored, use_deprecated_int96_timestamps=True)}
    ref = SliceFiles(base="b.parquet", base_size=len(files["b.parquet"]))

    (batch,) = read_slice(ref, SliceReadOptions(rules=COMMIT, schema=schema), MemoryFiles(files))
    assert [{KEY: "a", "t": moment}] == batch.to_pylist()


def test_read_options_can_be_pickled():
    how = SliceReadOptions(
        rules=EVENT,
        schema=SCHEMA,
        columns=("v",),
        committed=CommittedInstants(as_of="1"),
        missing={"v": 1},
    )
    back = pickle.loads(pickle.dumps(how))

    assert how.wanted.columns == back.wanted.columns
    assert (how.rules, how.committed, how.missing) == (back.rules, back.committed, back.missing)


def test_parquet_blocks_are_read_as_avro_blocks_are():
    found = read_rows(
        SCHEMA,
        EVENT,
        [[parquet_block("1", TEXT, base(("a", 1, "older"), ("b", 3, "newer")))]],
        base=base(("a", 2, "base"), ("b", 2, "base")),
    )

    assert [row("a", 2, "base"), row("b", 3, "newer")] == found


def test_keys_that_are_not_stored_are_made_of_their_columns():
    text = record_schema(("id", "long"), ("k", "string"), ("v", "string"))
    schema = to_arrow_schema(text, "t")
    stored = pa.Table.from_pylist(
        [{"id": 1, "k": "x", "v": "base"}, {"id": 2, "k": None, "v": "base"}], schema
    )
    update = data_block("1", text, [{"id": 1, "k": "x", "v": "log"}])

    one = read_rows(
        schema, MergeRules(key_columns=("id",)), [[update, delete_block("1", ("2",))]], base=stored
    )
    assert [{"id": 1, "k": "x", "v": "log"}] == one
    both = read_rows(
        schema,
        MergeRules(key_columns=("id", "k"), has_named_keys=True),
        [[update, delete_block("1", ("id:2,k:__null__",))]],
        base=stored,
    )
    assert [{"id": 1, "k": "x", "v": "log"}] == both


@pytest.mark.parametrize(
    ("logs", "message"),
    [
        ([data_block("1", TEXT, [], is_partial="true")], "partial update"),
        ([log_block(BlockType.HFILE_DATA, "1", b"")], "HFile data block"),
    ],
)
def test_what_cannot_be_merged_is_refused_by_name(logs, message):
    with pytest.raises(UnsupportedError, match=message):
        read_rows(SCHEMA, COMMIT, [logs])


def test_a_table_with_custom_rules_is_refused_only_when_there_are_logs():
    rules = MergeRules(refusal="table t: payload class a.B is not known")

    assert [row("a", 1, "x")] == read_rows(SCHEMA, rules, [], base=base(("a", 1, "x")))
    with pytest.raises(UnsupportedError, match=r"payload class a\.B"):
        read_rows(SCHEMA, rules, [[log("1", ("a", 1, "y"))]], base=base(("a", 1, "x")))


def test_damage_inside_a_block_names_the_file():
    good = log("1", ("a", 1, "x"))
    (at,) = [good.index(b"\x02a\x02\x02")]
    bad = good[:at] + b"\x09" + good[at + 1 :]

    with pytest.raises(FormatError, match=r"log\.1_0-1-1: the Avro block at byte 0"):
        read_rows(SCHEMA, COMMIT, [[bad]])
    with pytest.raises(FormatError, match="parquet block"):
        read_rows(SCHEMA, COMMIT, [[log_block(BlockType.PARQUET_DATA, "1", b"PAR1", schema=TEXT)]])
    with pytest.raises(FormatError, match="no instant"):
        read_rows(SCHEMA, COMMIT, [[encode_block(BlockType.DELETE, [], b"")]])
    with pytest.raises(FormatError, match="1 records have no _hoodie_record_key"):
        read_rows(SCHEMA, COMMIT, [[log("1", (None, 1, "x"))]])


@pytest.mark.parametrize("part", ["file", "name of a column"])
def test_a_damaged_base_file_is_named(part):
    reading, data = SliceReadOptions(rules=COMMIT, schema=SCHEMA), b"123456789"
    if part != "file":
        whole = parquet_bytes(base(("a", 1, "x")))
        data = whole.replace(KEY.encode(), b"\xe8\x28" + KEY[2:].encode())
    files = SliceFiles(base="a.parquet", base_size=len(data))
    rows = read_slice(files, reading, MemoryFiles({"a.parquet": data}))

    with pytest.raises(FormatError, match=r"a\.parquet: cannot be read as parquet"):
        list(rows)


def test_the_header_of_a_block_may_hold_record_positions():
    found = read_rows(
        SCHEMA, COMMIT, [[data_block("1", TEXT, [row("a", 1, "x")], record_positions="AQAA")]]
    )

    assert [row("a", 1, "x")] == found


def test_old_dates_of_a_base_file_in_the_hybrid_calendar_keep_their_year_month_and_day():
    schema = pa.schema([(KEY, pa.string()), ("d", pa.date32())])
    metadata = {"org.apache.spark.version": "3.5.9", "org.apache.spark.legacyDateTime": ""}
    rows = pa.table(
        [["a", "b"], [date(1000, 2, 25), date(1600, 1, 1)]], schema.with_metadata(metadata)
    )

    found = read_rows(schema, COMMIT, [], base=rows)

    assert [{KEY: "a", "d": date(1000, 2, 20)}, {KEY: "b", "d": date(1600, 1, 1)}] == found
