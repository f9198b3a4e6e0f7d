"""What Spark 4 has and Spark 3.5 does not: collations, more types, ANSI mode without a setting."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from pyspark.errors import AnalysisException

import reconciler
from reconciler.errors import UnsupportedError, UsageError
from reconciler.reader import spark as reader
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.spark.java_api import read_spark_version
from reconciler.storage.open import open_storage
from reconciler.writer.spark import make_arrow_schema
from tests.spark.frames import PYSPARK
from tests.spark.test_skipping import PLAIN, fates, table

pytestmark = PYSPARK
#: the table's name is v400_11
CONDITIONS = (
    "name COLLATE UTF8_LCASE = 'V400_11'",
    "collate(name, 'UTF8_LCASE') IN ('V400_11', 'V0')",
    "name = 'V400_11' COLLATE UTF8_LCASE",
    "startswith(name COLLATE UTF8_LCASE, 'V400_11')",
    "name COLLATE UNICODE_CI = 'V400_11'",
)


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_collation_is_compared_by_spark_alone(where, spark, tmp_path):
    if read_spark_version(spark) < (4, 0):
        with pytest.raises(UsageError):
            reconciler.read(spark, table("v9_cow_part", tmp_path, PLAIN), where)
        return
    path = table("v9_cow_part", tmp_path, PLAIN)
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())
    pruned = reader.prune_by_condition(spark, scan, where, storage)

    assert ["notUnderstood"] * 4 == fates(pruned)
    found = reconciler.read(spark, path, where, columns=["id"]).collect()
    assert [400] == [row["id"] for row in found]


@pytest.mark.parametrize(
    "column", ["parse_json('1')", "array(parse_json('1'))", "map('a', parse_json('1'))",
               "named_struct('a', parse_json('1'))"]
)  # fmt: skip
def test_rows_of_type_variant_are_refused_by_name(column, spark):
    """Arrow has them as structs, and so would the table."""
    if read_spark_version(spark) < (4, 0):
        with pytest.raises(AnalysisException, match="parse_json"):
            spark.sql("SELECT parse_json('1')")
        return
    with pytest.raises(UnsupportedError, match=r"^column v: rows of type .* cannot be written"):
        make_arrow_schema(spark.sql(f"SELECT 1 id, {column} v"))


def test_ansi_mode_is_on_by_default_from_spark_4_on_and_loses_no_row(spark, tmp_path):
    """In ANSI mode a text is cast to the number's type, and is an error if it is none."""
    is_on = spark.conf.get("spark.sql.ansi.enabled") == "true"
    path = table("v9_cow_part", tmp_path, PLAIN)

    assert is_on == (read_spark_version(spark) >= (4, 0))
    for where in ("id = '400'", "id IN ('400', '403')", "id < 2147483648", "x = '0.5' OR id = 400"):
        few, every = (
            sorted(map(str, reconciler.read(spark, path, where, skipping=skips).collect()))
            for skips in (True, False)
        )
        assert few == every
        assert few
    with pytest.raises(Exception, match="CAST_INVALID_INPUT") if is_on else nullcontext():
        assert [] == reconciler.read(spark, path, "id = 'x'").collect()
