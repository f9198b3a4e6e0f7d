"""What the last clustering of a declaration is remembered by, and whom a rewrite helps."""

from __future__ import annotations

import numpy as np
import pytest

from reconciler.planners.prediction.group_benefit import PastResult, find_helped
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.measured_queries import (
    CIRCUMSTANCES_KEY,
    QUERIES_KEY,
    ClusteringContext,
    MeasuredQuery,
    encode_measurements,
)

LAYOUT = ClusteringLayout(columns=("a",), curve="linear", mapping="rank")
OTHER = ClusteringLayout(columns=("b",), curve="linear", mapping="rank")


def past(instant="1", layout=LAYOUT, *, target=100, waiting=0, share=20, unread=0):
    one = MeasuredQuery(
        query="q",
        where="a = 1",
        files=1,
        bytes=share,
        of_files=9,
        of_bytes=100,
        unread=unread,
    )
    how = ClusteringContext(target=target, remaining_slices=waiting)
    extra = {QUERIES_KEY: encode_measurements([one]), CIRCUMSTANCES_KEY: how.text}
    return PastClustering(instant=instant, layout=layout, extra=extra)


def memory(*clusterings):
    return PastResult.find(clusterings, LAYOUT, 100)


def test_a_query_that_reads_what_was_measured_has_settled_until_it_reads_a_tenth_more():
    found = memory(past())

    assert [True, True, False] == [found.has_settled("a = 1", s) for s in (0.2, 0.22, 0.23)]


def test_a_query_of_another_text_was_not_measured():
    assert not memory(past()).has_settled("a = 2", 0.1)


def test_the_last_clustering_of_the_layout_counts():
    found = memory(past("1", share=10), past("2", share=30), past("3", OTHER, share=50))

    assert ("2", {"a = 1": 0.3}) == (found.clustering.instant, found.shares)


@pytest.mark.parametrize(
    "clusterings",
    [(), (past(layout=OTHER),), (past(target=99),), (past(waiting=1),)],
    ids=["none", "another layout", "files of another size", "a part of it waits"],
)
def test_nothing_has_settled_before_the_declared_was_done(clusterings):
    assert not memory(*clusterings).has_settled("a = 1", 0.2)


@pytest.mark.parametrize("extra", [{}, {QUERIES_KEY: "{"}, past(unread=7).extra])
def test_where_nobody_measured_all_files_it_is_not_done_again_and_again(extra):
    found = memory(PastClustering(instant="1", layout=LAYOUT, extra=extra))

    assert found.has_settled("a = 1", 0.9)


def test_a_rewrite_is_for_those_below_their_limit_or_a_tenth_nearer():
    now = np.array([0.5, 0.5, 0.5, 0.5])
    after = np.array([0.49, 0.45, 0.46, 0.6])
    limits = np.array([0.49, 0.1, 0.1, 0.7])

    assert [True, True, False, False] == find_helped(now, after, limits).tolist()
