"""Merging by columns equals merging record by record, for any writes in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.file_slices.merge.ordering import pick_newest
from reconciler.file_slices.merge.precombine import pick_precombined
from reconciler.file_slices.merge.rules import MergeRules
from tests.memory_slices import (
    data_block,
    delete_block,
    parquet_block,
    read_rows,
    record_schema,
    rollback_block,
)
from tests.selection import examples

KEY = "_hoodie_record_key"
TYPES = {"int": "IntWrapper", "long": "LongWrapper", "string": "StringWrapper"}
keys = st.sampled_from("abc")
numbers = st.integers(0, 2)


def record(key, ts, v, *, gone=False):
    return {KEY: key, "ts": ts, "v": v, "_hoodie_is_deleted": gone}


def blocks(of_time):
    rows = st.lists(st.tuples(keys, of_time, st.booleans()), max_size=5)
    gone = st.lists(st.tuples(keys, st.none() | of_time), max_size=3)
    return st.lists(
        st.tuples(st.sampled_from(["avro", "parquet"]), st.sampled_from("123"), rows)
        | st.tuples(st.just("delete"), st.sampled_from("123"), gone)
        | st.tuples(st.just("rollback"), st.sampled_from("123"), st.just([])),
        max_size=8,
    )


def is_final(is_delete, ts, kind):
    return is_delete and (ts is None or (kind == "int" and ts == 0))


def in_order(written):
    """Return the blocks with their positions by instant; rollbacks remove earlier ones."""
    alive: dict[str, list] = {}
    for at, (what, instant, rows) in enumerate(written):
        if what == "rollback":
            alive.pop(instant, None)
        else:
            alive.setdefault(instant, []).append((at, what, rows))
    return [block for group in alive.values() for block in group]


@dataclass
class Merge1x:
    """Hudi 1.x: records are (gone, event time, value, final, from a delete block)."""

    event: bool
    #: of equal keys in a base file, only the first is merged
    merges_first = False

    def stays(self, old, new):
        """Return whether ``old`` wins against ``new``."""
        if not self.event:
            return False
        if old[0] and old[3]:
            return new[4]
        return not (new[0] and new[3]) and new[1] < old[1]

    def keeps_base(self, new, ts):
        return self.stays((False, ts, "", False, False), new)


@dataclass
class Merge0x(Merge1x):
    """Hudi 0.x."""

    kind: str
    merges_first = True

    def stays(self, old, new):
        if new[4]:
            return not new[3] and self.kind != "string" and not old[3] and old[1] > new[1]
        return not old[4] and old[1] > new[1]

    def keeps_base(self, new, ts):
        return self.event and not new[4] and ts > new[1]


def merge_by_hand(base, written, kind, how):
    """Merge record by record, as Hudi's readers do."""
    known = {}
    for at, what, rows in in_order(written):
        for n, (key, ts, *rest) in enumerate(rows):
            listed = what == "delete"
            gone = listed or rest[0]
            new = (gone, ts, f"{at}.{n}", is_final(gone, ts, kind), listed)
            old = known.get(key)
            if not (old and how.stays(old, new)):
                known[key] = new
    found, seen = [], set()
    for key, ts, v in base:
        new = known.get(key)
        if key in seen and how.merges_first:
            new = None
        seen.add(key)
        if new is None or how.keeps_base(new, ts):
            found.append((key, ts, v))
        elif not new[0]:
            found.append((key, new[1], new[2]))
    new_ones = ((key, new) for key, new in known.items() if key not in seen and not new[0])
    return sorted(found + [(key, new[1], new[2]) for key, new in new_ones])


def build_slices(written, text, schema, kind):
    found = []
    for at, (what, instant, rows) in enumerate(written):
        if what == "rollback":
            found.append(rollback_block("9", instant))
        elif what == "delete":
            listed = [
                (key,) if ts is None else (key, TYPES[kind], {"value": ts}) for key, ts in rows
            ]
            found.append(delete_block(instant, *listed))
        else:
            records = [
                record(key, ts, f"{at}.{n}", gone=gone) for n, (key, ts, gone) in enumerate(rows)
            ]
            make = data_block(instant, text, records)
            if what == "parquet":
                make = parquet_block(instant, text, pa.Table.from_pylist(records, schema))
            found.append(make)
    return found


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_merging_by_columns_equals_merging_record_by_record(drawn):
    kind = drawn.draw(st.sampled_from(sorted(TYPES)))
    of_time = numbers if kind != "string" else st.sampled_from(["", "a", "é", "z"])
    event, older = drawn.draw(st.booleans()), drawn.draw(st.booleans())
    how = Merge0x(event=event, kind=kind) if older else Merge1x(event=event)
    rules = MergeRules(
        ordering=("ts",) if event or older else (), overwrites=not event, precombines=older
    )
    base = drawn.draw(st.lists(st.tuples(keys, of_time, st.just("base")), min_size=2, max_size=5))
    written = drawn.draw(blocks(of_time))
    text = record_schema(
        (KEY, "string"), ("ts", kind), ("v", "string"), ("_hoodie_is_deleted", "boolean")
    )
    schema = to_arrow_schema(text, "t")
    split = drawn.draw(st.integers(0, len(written)))
    made = build_slices(written, text, schema, kind)

    found = read_rows(
        schema,
        rules,
        [made[:split], made[split:]],
        base=pa.Table.from_pylist([record(*row) for row in base], schema),
        row_group_size=2,
    )
    expected = merge_by_hand(base, written, kind, how)
    assert expected == sorted((row[KEY], row["ts"], row["v"]) for row in found)


@settings(max_examples=examples(53, many=600), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), numbers, st.sampled_from("urd")), max_size=12),
    st.sampled_from(sorted(TYPES)),
    st.booleans(),
)
def test_winner_of_each_key_equals_the_sequential_result(events, kind, older):
    """An event is an update, a record flagged as deleted, or a key in a delete block."""
    how = Merge0x(event=True, kind=kind) if older else Merge1x(event=True)
    rows = [
        (what != "u", ts, at, is_final(what != "u", ts, kind), what == "d")
        for at, (_, ts, what) in enumerate(events)
    ]
    known = {}
    for (key, *_), new in zip(events, rows, strict=True):
        old = known.get(key)
        if not (old and how.stays(old, new)):
            known[key] = new
    names = sorted({key for key, *_ in events})
    times = [ts if kind != "string" else str(ts) for _, ts, _ in events]
    merge = pick_precombined if older else pick_newest

    found = merge(
        np.array([names.index(key) for key, *_ in events], np.int64),
        len(names),
        [pa.array(times, {"int": pa.int32(), "long": pa.int64(), "string": pa.string()}[kind])],
        is_final=np.array([row[3] for row in rows], np.bool_),
        is_listed=np.array([row[4] for row in rows], np.bool_),
    )
    for name, place in zip(names, found.tolist(), strict=True):
        new = known[name]
        assert (new[0], new[3] or (older and new[4])) == (
            rows[place][0],
            rows[place][3] or (older and rows[place][4]),
        )
        assert new[0] or new[2] == place
