"""Java's HashSet order; the recorded orders are a JVM's (Java 17)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reconciler.layout.sizing.hash_order import sort_as_hash_set

#: ids with base files | ids of log files alone | the order of a HashSet of both
RECORDED = (Path(__file__).parent / "hash_set_orders.txt").read_text().splitlines()


def ids(text):
    return text.split(",") if text else []


@pytest.mark.parametrize("line", RECORDED, ids=lambda line: f"{line.count('-0')} ids")
def test_file_ids_are_in_the_order_of_a_java_hash_set(line):
    bases, logs, expected = map(ids, line.split("|"))
    listed = [*bases, *logs]

    found = sort_as_hash_set(pa.array(listed), np.array([i in logs for i in listed]))

    assert expected == [listed[at] for at in found]


def test_log_files_may_be_listed_before_base_files():
    bases, logs, expected = map(ids, RECORDED[-1].split("|"))
    listed = [*logs, *bases]
    is_log_only = np.array([i in logs for i in listed])

    assert expected == [listed[at] for at in sort_as_hash_set(pa.array(listed), is_log_only)]


def test_last_listed_id_of_a_slot_comes_first():
    """``Aa`` and ``BB`` have one hash in Java."""
    for listed in (["Aa", "BB"], ["BB", "Aa"]):
        found = sort_as_hash_set(pa.array(listed), np.zeros(2, np.bool_))

        assert listed[::-1] == [listed[at] for at in found]


def test_no_files_give_an_empty_order():

    assert [] == sort_as_hash_set(pa.array([], pa.string()), np.zeros(0, np.bool_)).tolist()
