"""Statistics of a new base file are those of the rows of the old one and of its log files."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.planners.prediction.compacted_reads import _unite
from reconciler.planners.prediction.sample_statistics import SampleStatistics
from tests.selection import examples

KINDS = {
    "int": (pa.int64(), st.integers(-9, 9)),
    "text": (pa.string(), st.text("ab", max_size=3)),
    "float": (pa.float64(), st.sampled_from([-1.5, -0.0, 0.0, 2.5, math.nan])),
    "bool": (pa.bool_(), st.booleans()),
}


def measure(rows, kind):
    """Return the statistics of files given as lists of values."""
    file = np.repeat(np.arange(len(rows)), [len(values) for values in rows])
    flat = pa.table({"x": pa.array([value for values in rows for value in values], kind)})
    index, _ = SampleStatistics.build(flat, ["x = 1"]).build_index(file, len(rows))
    return index.columns["x"].take(np.arange(len(index) - len(rows), len(index)))


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def drop_null(values):
    return [value for value in values if value is not None]


@settings(max_examples=examples(12, many=500), deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(KINDS)))
def test_united_statistics_are_those_of_all_rows(data, name):
    kind, values = KINDS[name]
    some = st.lists(st.none() | values, max_size=4)
    files = data.draw(st.lists(st.tuples(some, some), min_size=1, max_size=4))
    base, logs = [one for one, _ in files], [other for _, other in files]
    everything = np.ones(len(files), np.bool_)
    found = _unite(measure(base, kind), measure(logs, kind), everything, everything)
    expected = measure([a + b for a, b in files], kind)

    # a base file of NaN alone has no bounds, like one of which nothing is known
    is_unknown = [any(values) and all(map(is_nan, values)) for values in map(drop_null, base)]
    least, greatest = (
        [None if unknown else bound for bound, unknown in zip(bounds, is_unknown, strict=True)]
        for bounds in (expected.least.to_pylist(), expected.greatest.to_pylist())
    )
    assert least == found.least.to_pylist()
    assert greatest == found.greatest.to_pylist()
    assert expected.nulls.tolist() == found.nulls.tolist()
    assert expected.values.tolist() == found.values.tolist()
    assert expected.is_nan_free.tolist() == found.is_nan_free.tolist()
