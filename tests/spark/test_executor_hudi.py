"""Executor ``hudi`` where there is no Hudi."""

from __future__ import annotations

import pytest

from reconciler.errors import ReconcilerError
from reconciler.hudi_engine.spark import SparkHudiExecutor

pytestmark = pytest.mark.spark


def test_without_a_bundle_the_error_says_how_to_add_one(spark):
    with pytest.raises(ReconcilerError) as refused:
        SparkHudiExecutor(spark).read_version()

    release = spark.version.rpartition(".")[0]
    scala = {"3.5": "2.12"}.get(release, "2.13")
    assert str(refused.value) == (
        "--executor hudi needs a Hudi bundle on Spark's class path, and there is none: add "
        f"--spark-conf spark.driver.extraClassPath=/path/to/hudi-spark{release}-bundle_{scala}-"
        "VERSION.jar and the same for spark.executor.extraClassPath"
    )
