from __future__ import annotations

import pyarrow as pa
import pytest

from reconciler.planners.prediction.layout_candidates import (
    MAX_SETS,
    LayoutCandidate,
    LayoutTrial,
    QueryReads,
    choose_trial,
    find_query_columns,
    list_candidates,
    rank_trials,
    weigh_queries,
)
from reconciler.plans.model import Note
from reconciler.spec.model import Query

SCHEMA = pa.schema(
    {
        "_hoodie_record_key": pa.string(),
        "customer_id": pa.int64(),
        "order_ts": pa.timestamp("us", tz="UTC"),
        "amount": pa.float64(),
        "tags": pa.list_(pa.string()),
        "address": pa.struct({"city": pa.string()}),
        "dt": pa.string(),
    }
)


def asks(*wheres):
    return find_query_columns([Query(name="q", where=where) for where in wheres], SCHEMA, ["dt"])


def trial(*sizes, columns=("a",), curve="linear"):
    reads = tuple(QueryReads(files=1, bytes=size) for size in sizes)
    candidate = LayoutCandidate(columns=columns, curve=curve)
    return LayoutTrial(
        candidate=candidate, reads=reads, errors=(0.0,) * len(sizes), table_bytes=100
    )


def test_columns_come_from_what_queries_bound_the_most_bound_first():
    found = asks("amount > 3 and Customer_ID = 7", "customer_id in (1, 2) and dt = '2026-01-01'")

    assert ("customer_id", "amount") == found.columns
    assert (("customer_id", "amount"), ("customer_id",)) == found.sets
    assert ("customer_id", "amount") == found.index_columns
    assert () == found.notes


def test_a_column_that_only_one_alternative_bounds_is_none_to_order_by():
    found = asks("customer_id = 7 or amount > 3")

    assert () == found.columns
    assert ("customer_id", "amount") == found.index_columns


def test_fields_of_structs_are_indexed_and_not_ordered_by():
    found = asks("address.city = 'Wien'")

    assert () == found.columns
    assert ("address.city",) == found.index_columns
    because = "address.city is a field of a struct, but only whole columns can order rows"
    assert (Note("columns", f"query 'q': {because}"),) == found.notes


@pytest.mark.parametrize(
    ("where", "rule", "because"),
    [
        (
            "custmer_id = 1",
            "columns",
            "query 'q': the table has no column 'custmer_id'; did you mean 'customer_id'?",
        ),
        (
            "zz = 1",
            "columns",
            (
                "query 'q': the table has no column 'zz'; its columns are customer_id, order_ts, "
                "amount, tags, address, dt"
            ),
        ),
        (
            "tags is null",
            "columns",
            "query 'q': tags is of type list<item: string>, which has no order",
        ),
        (
            "hash(dt) > 3",
            "queries",
            (
                "query 'q' does not filter on a column in every OR branch, so no layout and no "
                "index helps it; compare a column with a value in each branch, as in customer_id "
                "= 42"
            ),
        ),
        *(
            (
                where,
                "queries",
                (
                    "query 'q' does not filter on a column in every OR branch, so no layout is "
                    "tried for it; compare a column with a value in each branch, as in "
                    "customer_id = 42"
                ),
            )
            for where in (
                "dt = '2026-01-01' or customer_id = 3",
                "customer_id = 3 or amount > 5",
                "customer_id + 1 = 5",
                "customer_id is null",
            )
        ),
        (
            "dt = '2026-01-01' or dt like '2025%'",
            "queries",
            (
                "query 'q' filters only on partition columns, whose folders are skipped by name "
                "already"
            ),
        ),
        (
            "dt = '2026-01-01'",
            "queries",
            (
                "query 'q' filters only on partition columns, whose folders are skipped by name "
                "already"
            ),
        ),
    ],
)
def test_what_helps_nothing_is_said_in_a_sentence(where, rule, because):

    assert (Note(rule, because),) == asks(where).notes


def test_every_curve_is_tried_on_several_columns_and_both_ways_of_two_on_a_line():
    found = list_candidates(asks("customer_id = 1 and amount > 2"))
    both = ("customer_id", "amount")

    assert [
        LayoutCandidate(columns=both, curve="kd-tree"),
        LayoutCandidate(columns=both, curve="hilbert"),
        LayoutCandidate(columns=both, curve="z-order"),
        LayoutCandidate(columns=both, curve="linear"),
        LayoutCandidate(columns=both[::-1], curve="linear"),
        LayoutCandidate(columns=("customer_id",), curve="kd-tree"),
        LayoutCandidate(columns=("customer_id",), curve="linear"),
        LayoutCandidate(columns=("amount",), curve="kd-tree"),
        LayoutCandidate(columns=("amount",), curve="linear"),
    ] == list(found)


def test_there_is_an_end_to_what_is_tried():
    schema = pa.schema({f"c{nth}": pa.int64() for nth in range(12)})
    queries = [Query(name=str(n), where=f"c{n} = 1 and c{(n + 1) % 12} > 2") for n in range(12)]
    found = list_candidates(find_query_columns(queries, schema, ()))

    assert MAX_SETS == len({frozenset(one.columns) for one in found})
    assert 4 == max(len(one.columns) for one in found)


def test_without_a_bound_column_there_is_nothing_to_try():

    assert () == list_candidates(asks("length(dt) > 3"))


def test_the_least_bytes_come_first():
    tried = [trial(900), trial(500), trial(700)]

    assert [500, 700, 900] == [one.bytes for one in rank_trials(tried)]
    assert () == rank_trials([])


def test_a_query_counts_as_often_as_it_runs():
    queries = [Query(name="often", where="a = 1", runs="40/day"), Query(name="b", where="b = 1")]
    weights = weigh_queries(queries)
    for_often, for_other = trial(10, 500), trial(60, 20)
    today = [QueryReads(files=1, bytes=100)] * 2
    ranked = rank_trials([for_other, for_often], None, weights)

    assert (40.0, 1.0) == weights
    assert (for_often, for_other) == ranked
    assert for_often == choose_trial(today, ranked, weights)
    assert for_other == rank_trials([for_other, for_often])[0]


def test_of_layouts_that_are_as_good_the_one_of_fewer_columns_and_the_tree_come_first():
    two = ("a", "b")
    tried = [
        trial(500, columns=two, curve="linear"),
        trial(501, columns=two, curve="kd-tree"),
        trial(510, columns=("b",), curve="linear"),
        trial(511, columns=("b",), curve="kd-tree"),
    ]

    assert [tried[2], tried[1], tried[0], tried[3]] == list(rank_trials(tried))


def test_what_is_declared_is_not_changed_for_what_is_no_better():
    other, declared = trial(100, curve="kd-tree"), trial(101, columns=("a", "b"), curve="hilbert")
    worse = trial(103, columns=("a", "b"), curve="z-order")

    assert declared == rank_trials([other, declared, worse], declared.candidate)[0]
    assert other == rank_trials([other, declared, worse], worse.candidate)[0]


@pytest.mark.parametrize(("size", "is_worth"), [(90, True), (91, False), (100, False), (0, True)])
def test_a_rewrite_has_to_save_a_tenth(size, is_worth):
    best = trial(size)

    assert (best if is_worth else None) == choose_trial([QueryReads(files=1, bytes=100)], [best])


def test_nothing_is_proposed_where_nothing_is_read_or_tried():

    assert None is choose_trial([QueryReads(files=0, bytes=0)], [trial(0)])
    assert None is choose_trial([QueryReads(files=1, bytes=9)], [])
