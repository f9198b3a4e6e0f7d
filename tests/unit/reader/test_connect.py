"""Which columns a condition may name, and which partitions it may match, without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from reconciler.reader.connect import _find_doubt, _list_extra_columns
from reconciler.reader.model import PATH
from reconciler.reader.skipping import mark_matching_partitions, parse_condition

TABLE = pa.schema([(name, pa.int64()) for name in ("id", "Zip", "a`b", "größe", "day")])


@pytest.mark.parametrize(
    ("where", "extra"),
    [
        ("id = 1", {"größe"}),
        ("zip = 1", {"Zip", "größe"}),
        ("`ZIP` = 1 AND `a``b` > 0", {"Zip", "a`b", "größe"}),
        ("struct(*) IS NOT NULL", {"Zip", "a`b", "größe", "day"}),
        ("DAY > 1 or friday", {"day", "größe"}),
        ("friday", {"day", "größe"}),
    ],
)
def test_every_column_that_a_condition_may_name_is_read(where, extra):
    """Names of other letters have other spellings, too; a name in another one is no harm."""
    scan = SimpleNamespace(schema=pa.schema([TABLE.field("id")]), table_schema=TABLE)

    assert extra == set(_list_extra_columns(scan, where))


def make_scan(values):
    partition = pa.schema([("p", pa.string()), ("h", pa.int32())])
    columns = {PATH: [f"{p}/{h}" for p, h in values], "p": [p for p, _ in values]}
    columns["h"] = pa.array([h for _, h in values], pa.int32())
    return SimpleNamespace(
        table_schema=pa.schema([("id", pa.int64()), *partition]),
        partition_schema=partition,
        partitions=pa.table(columns),
    )


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("p = 'a'", [1, 1, 0, 0]),
        ("p = 'a' AND id = 7 AND hash(id) = 2", [1, 1, 0, 0]),
        ("(p = 'a' AND h = 1) OR (p = 'b' AND h > 1)", [1, 0, 0, 1]),
        ("(p = 'a' AND h = 1) OR id = 5", [1, 1, 1, 1]),
        ("h IN (2, 9)", [0, 1, 0, 1]),
        ("rand() < h", [1, 1, 1, 1]),
        ("p > 'x'", [0, 0, 0, 0]),
    ],
)
def test_partitions_that_cannot_match_are_left_out(where, kept):
    scan = make_scan([("a", 1), ("a", 2), ("b", 1), ("b", 2)])
    mask = mark_matching_partitions(scan, parse_condition(where, zone=""))

    assert kept == mask.astype(np.int8).tolist()


def test_a_table_without_partition_columns_is_not_pruned():
    scan = SimpleNamespace(
        table_schema=pa.schema([("id", pa.int64())]),
        partition_schema=pa.schema([]),
        partitions=pa.table({PATH: [""]}),
    )

    assert [True] == mark_matching_partitions(scan, parse_condition("id = 1", zone="")).tolist()


class PySparkException(Exception):  # noqa: N818 (PySpark's)
    """What a server refuses."""


class Remote:
    """A session of Spark Connect that answers SQL from a mapping."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def sql(self, text):
        self.asked.append(text)
        answer = self.answers["set" if text == "SET" else text.split("`")[1]]
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(collect=lambda: answer)


def setting(key):
    return {"key": key, "value": "whatever"}


OF_SPARK = [("Function: upper",), ("Class: org.apache.spark.sql.catalyst.expressions.Upper",)]
OF_SESSION = [("Function: upper",), ("Class: org.apache.spark.sql.UDFRegistration$$Lambda",)]


@pytest.mark.parametrize(
    ("answers", "where", "doubt"),
    [
        ({"set": [setting("spark.sql.ansi.enabled"), setting("spark.app.name")]}, "id = 1", None),
        ({"set": [setting("spark.sql.timestampType")]}, "id = 1",
         "the session sets spark.sql.timestampType, so only Spark interprets the condition"),
        ({"set": [setting("spark.sql.legacy.x")]}, "id = 1",
         "the session sets spark.sql.legacy.x, so only Spark interprets the condition"),
        ({"set": [], "upper": OF_SPARK}, "upper(s) = 'A'", None),
        ({"set": [], "upper": OF_SESSION}, "upper(s) = 'A'",
         "the session has its own upper(), so only Spark interprets the condition"),
        ({"set": PySparkException("no")}, "id = 1",
         "the server does not show its settings, so only Spark interprets the condition"),
    ],
)  # fmt: skip
def test_only_a_session_that_is_as_spark_is_lets_conditions_skip_files(answers, where, doubt):
    assert doubt == _find_doubt(Remote(**answers), where)


def test_another_error_than_sparks_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        _find_doubt(Remote(set=ZeroDivisionError()), "id = 1")


def test_functions_that_are_not_used_are_not_asked_for():
    remote = Remote(set=[])
    _find_doubt(remote, "id = 1 AND other(id) = 2")

    assert ["SET"] == remote.asked
