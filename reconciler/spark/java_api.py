"""Call what Spark's Java side has under other names in its releases 3.5 and 4.

In Spark 4 a Column holds a tree of its own, and ExpressionUtils converts it to and from Catalyst's
expressions. Java's objects are passed in, so nothing is imported.
"""

from __future__ import annotations

from typing import Any, Final

#: the first release whose Columns do not hold an expression of Catalyst
_COLUMN_NODES: Final = (4, 0)
#: the first release that has the index of a manifest in another package
_STREAMING_RUNTIME: Final = (4, 1)


def read_spark_version(session: Any) -> tuple[int, int]:
    """Return the first two numbers of the Spark of a session."""
    major, minor, *_ = session.version.split(".")
    return int(major), int(minor)


def to_java_column(session: Any, expression: Any) -> Any:
    """Return a Column of Java for an expression of Catalyst."""
    sql = session._jvm.org.apache.spark.sql  # noqa: SLF001 (Java's side has no public name)
    if read_spark_version(session) < _COLUMN_NODES:
        return sql.Column(expression)
    return sql.classic.ExpressionUtils.column(expression)


def map_in_arrow(frame: Any, call: Any) -> Any:
    """Return Java's frame of the Arrow batches that a call of a Python function returns.

    ``call``: a Column, of type SQL_MAP_ARROW_ITER_UDF, over all columns of the frame.
    """
    java, column = frame._jdf, call._jc  # noqa: SLF001
    if read_spark_version(frame.sparkSession) < _COLUMN_NODES:
        return java.pythonMapInArrow(column.expr(), False)
    return java.mapInArrow(column, False, None)


def find_manifest_index(session: Any) -> Any:
    """Return Java's class for the files that a manifest of a streaming sink lists."""
    streaming = session._jvm.org.apache.spark.sql.execution.streaming  # noqa: SLF001
    if read_spark_version(session) < _STREAMING_RUNTIME:
        return streaming.MetadataLogFileIndex
    return streaming.runtime.MetadataLogFileIndex
