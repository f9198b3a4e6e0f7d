"""Several tables at a time on one Spark session."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import reconciler
from reconciler.executor import spark
from tests.bench.many_tables import make_tables

#: PySpark leaves the sockets of ``collect`` to the garbage collector
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def test_every_table_has_jobs_of_its_own_and_ends_as_planned(tmp_path, sessions, monkeypatch):
    specs = reconciler.load_specs(make_tables(tmp_path, 5))
    plan = reconciler.plan(specs, now=NOW)
    described = {}
    session = sessions.with_conf()
    context = session.sparkContext
    reporting = spark.report_progress

    def told(*arguments):
        group, said = map(context.getLocalProperty, ("spark.jobGroup.id", "spark.job.description"))
        described[said.rpartition("/")[2]] = group
        return reporting(*arguments)

    monkeypatch.setattr(spark, "report_progress", told)
    result = reconciler.apply(plan, spark=session, now=NOW, parallelism=5)

    assert 0 == result.exit_code
    assert [spec.name for spec in specs] == [table.name for table in result.tables]
    assert [table.impact.files_removed for table in plan.tables] == [
        table.removed for table in result.tables
    ]
    assert {table.name for table in plan.tables if table.steps} == set(described)
    assert len(described) == len(set(described.values())) > 1
    assert [] == [t.name for t in reconciler.plan(specs, now=NOW).tables if t.steps]
