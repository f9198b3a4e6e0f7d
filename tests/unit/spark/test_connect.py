from __future__ import annotations

import pytest

from reconciler.errors import UnsupportedError
from reconciler.executor.workers import set_up_executors
from reconciler.spark.connect import is_of_connect, refuse_connect
from reconciler.writer.spark import make_write_request


def make(module: str):
    """An object of a class that a module defines, or derives from."""
    base = type("Base", (), {"__module__": module})
    return type("Thing", (base,), {"__module__": "somebody.else"})()


def test_what_belongs_to_spark_connect_is_known_by_its_module():
    assert is_of_connect(make("pyspark.sql.connect.session"))
    assert is_of_connect(make("pyspark.sql.connect.dataframe"))
    assert not is_of_connect(make("pyspark.sql.session"))
    assert not is_of_connect(make("pyspark.sql.classic.dataframe"))
    assert not is_of_connect(None)


def test_a_refusal_says_what_why_and_what_to_do():
    with pytest.raises(
        UnsupportedError,
        match=r"^write needs Spark's RDDs, and a session of Spark Connect has none; pass a session "
        r"of the cluster itself, as SparkSession\.builder\.master\(\.\.\.\) or spark-submit gives$",
    ):
        refuse_connect(make("pyspark.sql.connect.dataframe"), "write")


def test_apply_and_write_refuse_spark_connect():
    with pytest.raises(UnsupportedError, match=r"^apply needs"):
        set_up_executors(make("pyspark.sql.connect.session"), ())
    with pytest.raises(UnsupportedError, match=r"^write needs"):
        make_write_request(make("pyspark.sql.connect.dataframe"), "upsert")
