"""What tests look at of a DataFrame."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

#: PySpark leaves the sockets of ``collect`` to the garbage collector
PYSPARK = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # where a test looks at rows as Arrow
    pytest.mark.filterwarnings("ignore:distutils Version classes:DeprecationWarning"),
]


def arrow(frame, schema):
    """The frame's rows as Spark's own Arrow conversion gives them, but for the session's zone."""
    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def in_order(rows):
    """Every value by its text, so that NaN is NaN and -0.0 is not 0.0."""
    return sorted(map(repr, rows.to_pylist()))


def by_text(rows):
    return sorted(rows, key=lambda row: [str(value) for value in row])


def types(frame):
    """With nullability."""
    return json.loads(frame.schema.json())


def plan(frame):
    return frame._jdf.queryExecution().executedPlan().toString()
