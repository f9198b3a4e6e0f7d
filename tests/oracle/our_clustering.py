"""Our side of an oracle test of clusterings: spec of a shape, plan, apply by Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import reconciler
from reconciler.plans.model import ClusterStep
from reconciler.plans.plan import Plan
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.open import open_storage
from reconciler.transaction.process import Clock, Process
from tests import applying
from tests.oracle.clustered_tables import Clusterer, Shape, Subject
from tests.oracle.hudi import HudiTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.executor.result import ApplyResult

_SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: "{name}"}}
spec:
  path: "{path}"
  timezone: UTC
  files: {{target: {target}, small: {target}}}
  clustering: {{columns: [{columns}]{curve}, when: always}}
  concurrency: {{lock: {{provider: filesystem}}, staleAfter: {stale_after}}}
"""
#: small enough that a partition's group becomes more than one file
TARGET = "24KiB"


def make_spec(
    table: HudiTable, shape: Shape, *, stale_after: str = "1h", target: str = TARGET
) -> TableSpec:
    """Load the spec of a table from a file beside it."""
    file = table.path.parent / f"{table.path.name}.yaml"
    curve = f", curve: {shape.curve}, mapping: {shape.mapping}" if shape.columns else ""
    file.write_text(
        _SPEC.format(
            name=table.path.name,
            path=table.path,
            columns=", ".join(shape.columns),
            curve=curve,
            target=target,
            stale_after=stale_after,
        )
    )
    (spec,) = reconciler.load_specs(file)
    return spec


def make_plan(subject: Subject, *, now: datetime | None = None, stale_after: str = "1h") -> Plan:
    """Plan; an error or a refusal fails the test."""
    spec = make_spec(subject.table, subject.shape, stale_after=stale_after)
    plan = reconciler.plan(spec, now=now)
    said = [(one.error, one.refusals) for one in plan.tables]
    assert [(None, ())] == said, said
    return plan


def get_step(plan: Plan) -> ClusterStep:
    """Return the cluster step of a plan of one table."""
    (table,) = plan.tables
    (step,) = (step for step in table.steps if isinstance(step, ClusterStep))
    return step


def apply_here(
    plan: Plan,
    *,
    around: Callable[[Storage], Storage] = lambda storage: storage,
    process: Process | None = None,
    clock: Clock | None = None,
) -> ApplyResult:
    """Apply in this process, including workers; ``around`` wraps their one storage."""
    stores: dict[str, Storage] = {}

    def opened(ref: StorageRef | str) -> Storage:
        storage = open_storage(ref)
        if storage.location not in stores:
            stores[storage.location] = around(storage)
        return stores[storage.location]

    return applying.apply_here(plan, storage=opened, process=process, clock=clock)


def cluster_by_us(spark: Callable[[], SparkSession]) -> Clusterer:
    """Return a function that clusters everything with ``plan`` and ``apply``."""

    def cluster(subject: Subject) -> str:
        plan = make_plan(subject)
        assert len(get_step(plan).groups) > 0
        assert_done(reconciler.apply(plan, spark=spark()))
        assert () == make_plan(subject).tables[0].steps
        return subject.table.last_instant()

    return cluster


def assert_done(result: ApplyResult) -> None:
    """Check that everything planned was done."""
    assert result.exit_code == 0, [(t.error, t.refusals, t.outcomes) for t in result.tables]
