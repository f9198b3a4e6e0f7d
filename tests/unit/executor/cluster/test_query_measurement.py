from __future__ import annotations

import numpy as np

from reconciler.state.measured_queries import (
    MeasuredQuery,
    QueryMeasurement,
    encode_measurements,
    parse_measurements,
)


def make_measurement(**more):
    """Two groups: their old slices, a slice that stays, a new file each."""
    given = {
        "queries": (("one", "a = 1"), ("all", "f(a)")),
        "reads": np.array([[1, 1, 0, 0, 1], [1, 1, 1, 1, 1]], np.bool_),
        "group": np.array([0, 1, -1, 0, 1]),
        "is_new": np.array([0, 0, 0, 1, 1], np.bool_),
        "bytes": np.array([1, 20, 300, 4000, 50000]),
        "predicted": {"a = 1": (7, 8)},
    }
    return QueryMeasurement(**{**given, **more})


def test_files_of_published_groups_are_new_and_those_of_dropped_groups_old():
    one = {"query": "one", "where": "a = 1", "predicted_files": 7, "predicted_bytes": 8}
    every = {"query": "all", "where": "f(a)"}

    assert (
        MeasuredQuery(**one, files=1, bytes=50000, of_files=3, of_bytes=54300),
        MeasuredQuery(**every, files=3, bytes=54300, of_files=3, of_bytes=54300),
    ) == make_measurement().select_groups([0, 1])
    assert (
        MeasuredQuery(**one, files=1, bytes=20, of_files=3, of_bytes=4320),
        MeasuredQuery(**every, files=3, bytes=4320, of_files=3, of_bytes=4320),
    ) == make_measurement().select_groups([0])


def test_a_query_of_the_same_name_and_another_text_was_not_predicted():
    renamed = make_measurement(queries=(("1", "a = 1"), ("one", "a = 2"))).select_groups([0, 1])

    assert [("1", 7), ("one", None)] == [(one.query, one.predicted_files) for one in renamed]


def test_what_was_not_looked_at_does_not_count():
    found = make_measurement(unread=9).select_groups([0, 1])

    assert [(1, 2, 9), (2, 2, 9)] == [(one.files, one.of_files, one.unread) for one in found]


def test_an_instant_says_what_was_measured():
    found = make_measurement(unread=9).select_groups([0, 1])

    assert found == parse_measurements({"reconciler.queries": encode_measurements(found)})


def test_a_damaged_figure_is_none():

    assert () == parse_measurements({})
    for text in ("", "{", "7", "[7]", '[{"query":"q"}]', "null", '[{"query":1,"files":"x"}]'):
        assert () == parse_measurements({"reconciler.queries": text})
