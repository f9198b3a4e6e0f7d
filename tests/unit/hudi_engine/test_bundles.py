"""A bundle executes plans only on tables that keep their version."""

from __future__ import annotations

import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi_engine.bundles import check_bundle


@pytest.mark.parametrize(
    ("bundle", "tables"),
    [
        ("0.13.1", ()),
        ("0.15.0", (6,)),
        ("1.0.2", (6, 8)),
        ("1.0.2-amzn-1", (6, 8)),
        ("1.1.1", (6, 8, 9)),
        ("1.2.0", (6, 8, 9)),
        ("somebody's", ()),
    ],
)
def test_a_bundle_executes_on_the_versions_that_it_writes(bundle, tables):
    able = []
    for version in (6, 8, 9):
        try:
            check_bundle(bundle, version, (3, 5))
        except UnsupportedError:
            continue
        able.append(version)

    assert list(tables) == able


def test_the_refusal_says_which_bundle_to_take():
    with pytest.raises(UnsupportedError) as refused:
        check_bundle("0.15.0", 9, (3, 5))

    assert str(refused.value) == (
        "the table has version 9, but Hudi 0.15.0 on Spark's class path writes tables of "
        "version 6: add --spark-conf "
        "spark.driver.extraClassPath=/path/to/hudi-spark3.5-bundle_2.12-1.2.0.jar and the same "
        "for spark.executor.extraClassPath, or use --executor native"
    )


def test_the_refusal_names_the_bundle_of_the_spark_that_runs():
    with pytest.raises(
        UnsupportedError, match=r"hudi-spark4\.0-bundle_2\.13-1\.2\.0\.jar and the same"
    ):
        check_bundle("0.15.0", 8, (4, 0))
