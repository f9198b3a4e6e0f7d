"""Laws of writes: histories of operations against a dictionary, whatever the order of rows."""

from __future__ import annotations

import tempfile
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.layout.sizing.assignment_rules import HudiRule
from reconciler.writer.job import RowOperation
from reconciler.writer.local import LocalWriter
from tests.selection import examples
from tests.unit.writer.ledger import BIG, Ledger, batch, few_a_file, row, wide

LAW = settings(max_examples=examples(5, many=15), deadline=None)
HUDI = HudiRule(sizes=few_a_file(6).sizes, average=1100)

rows = st.builds(
    lambda key, partition, ts, deleted: row(key, partition, ts, wide(f"{key}.{ts}"), deleted),
    st.integers(0, 15),
    st.sampled_from("ab"),
    st.integers(1, 9),
    st.sampled_from([None, False, False, True]),
)
operations = st.sampled_from([RowOperation.UPSERT, RowOperation.UPSERT, RowOperation.DELETE])
batches = st.lists(rows, max_size=20)
rules = st.sampled_from([BIG, few_a_file(6), few_a_file(1), HUDI])


def split_rows(found, count):
    """Return the rows divided among tasks, in batches of three."""
    size = -(-len(found) // count) or 1
    parts = [found[start : start + size] for start in range(0, len(found), size)]
    return [[batch(*part[at : at + 3]) for at in range(0, len(part), 3)] for part in parts]


def apply_to_model(model, operation, found):
    """Apply a write to a model with event time: the later of equal times wins; deletes remove."""
    newest = {}
    for one in found:
        key = one["p"], one["id"]
        if key not in newest or one["ts"] >= newest[key]["ts"]:
            newest[key] = one
    for key, one in newest.items():
        old = model.get(key)
        if operation is RowOperation.DELETE:
            model.pop(key, None)
        elif old is not None and old["ts"] > one["ts"]:
            continue
        elif one["_hoodie_is_deleted"]:
            model.pop(key, None)
        else:
            model[key] = one


@LAW
@given(
    st.lists(st.tuples(operations, batches), max_size=5),
    rules,
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_table_has_the_rows_of_its_history(history, rule, places, tasks):
    model = {}
    with tempfile.TemporaryDirectory() as folder:
        table = Ledger(folder, rule)
        table.writer = LocalWriter(table.storage, places)
        for operation, found in history:
            done = table.write(operation, *split_rows(found, tasks))
            apply_to_model(model, operation, found)

            assert table.rows() == Counter(
                {(p, key, one["ts"], one["name"]): 1 for (p, key), one in model.items()}
            )
            totals = done.counts
            assert totals.incoming == len(found)
            assert totals.dropped == len(found) - len({(one["p"], one["id"]) for one in found})


@LAW
@given(st.lists(batches, min_size=1, max_size=4), rules, st.integers(1, 4))
def test_inserts_neither_lose_nor_repeat_rows(history, rule, places):
    brought = Counter()
    with tempfile.TemporaryDirectory() as folder:
        table = Ledger(folder, rule)
        table.writer = LocalWriter(table.storage, places)
        for found in history:
            table.write(RowOperation.INSERT, *split_rows(found, 2))
            brought.update(
                (one["p"], one["id"], one["ts"], one["name"])
                for one in found
                if not one["_hoodie_is_deleted"]
            )
            assert table.rows() == brought


@LAW
@given(st.lists(st.integers(0, 900), min_size=1, max_size=3), st.integers(100, 300))
def test_no_file_of_new_rows_is_much_larger_than_its_target(history, per_file):
    with tempfile.TemporaryDirectory() as folder:
        table = Ledger(folder, few_a_file(per_file))
        for count in history:
            number = table.number
            table.insert(*(row(n, name=wide(f"{number}.{n}")) for n in range(count)))
        sizes = [size for _, size in table.files.values()]
        assert all(size <= 1.15 * table.rule.sizes.target for size in sizes)


@LAW
@given(batches, batches, rules, st.integers(1, 4))
def test_repeated_write_creates_the_same_files(first, second, rule, places):
    made = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            table = Ledger(folder, rule)
            table.writer = LocalWriter(table.storage, places)
            table.write(RowOperation.UPSERT, *split_rows(first, 2))
            table.write(RowOperation.UPSERT, *split_rows(second, 2))
            made.append(
                {
                    key: (
                        name,
                        pq.read_table(pa.BufferReader(table.storage.read(f"{key[0]}/{name}"))),
                    )
                    for key, (name, _) in table.files.items()
                }
            )
    assert made[0] == made[1]
