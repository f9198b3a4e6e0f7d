"""Our reader, which skips by an index, gives the rows that Hudi's data skipping loses."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path

import pytest

import reconciler
from tests.published_indexes import publish_index
from tests.trees import unpack

pytestmark = pytest.mark.spark
TESTS = Path(__file__).parent.parent
LYING = TESTS / "tables" / "lying"
#: rows by filter; Hudi 1.2.0 finds 1, 0 and 3 rows
EVOLVED = {
    "c IS NULL AND a >= 0": 6,
    "c <=> NULL AND a = 2": 1,
    "(c IS NULL OR c > 2) AND a >= 0": 8,
}


def counted(spark, table, wheres):
    """By filter the rows that are read with it, all in one job."""
    frames = [
        reconciler.read(spark, table, where, columns=["id"]).selectExpr(f"{at} as at")
        for at, where in enumerate(wheres)
    ]
    found = dict(
        reduce(lambda one, other: one.unionAll(other), frames).groupBy("at").count().collect()
    )
    return {where: found.get(at, 0) for at, where in enumerate(wheres)}


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_every_row_that_hudi_loses_is_read(version, spark, tmp_path):
    table = unpack(LYING / f"statistics_{version}.zip", tmp_path) / version
    text = (TESTS / "cases" / "index" / f"statistics_{version}.json").read_text("utf-8")
    lost = {
        case["where"]: case["rows"] for case in json.loads(text) if case["rows"] > case["hudiRows"]
    }
    assert len(lost) > 11
    publish_index(table, ["id", "s", "y", "f", "ls", "n"])

    assert lost == counted(spark, table, lost)


def test_rows_from_before_a_column_are_read(spark, tmp_path):
    table = unpack(LYING / "evolution_1.2.0.zip", tmp_path) / "1.2.0"
    publish_index(table, ["a", "c"])

    assert counted(spark, table, EVOLVED) == EVOLVED
