"""Our side of a clustering's oracle test: the spec of a shape, a plan of it, an apply by Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import reconciler
from reconciler import world
from reconciler.apply.executor import InProcess
from reconciler.apply.run import apply_plan
from reconciler.plan.model import ClusterStep, Plan
from reconciler.rewrite import local
from reconciler.spec.model import Option, TableSpec
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.open import open_storage
from reconciler.transaction.process import Process
from tests.oracle.hudi import HudiTable
from tests.oracle.layouts import Clusterer, Shape, Subject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.apply.result import Result

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
#: a few rows; more than one file comes out of a partition's group
TARGET = "24KiB"


def spec_of(
    table: HudiTable, shape: Shape, *, stale_after: str = "1h", target: str = TARGET
) -> TableSpec:
    """The spec of a table, loaded from a file beside it as a person's would be."""
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


def planned(subject: Subject, *, now: datetime | None = None, stale_after: str = "1h") -> Plan:
    """The plan; an error or a refusal fails the test."""
    spec = spec_of(subject.table, subject.shape, stale_after=stale_after)
    plan = reconciler.plan(spec, now=now)
    said = [(one.error, one.refusals) for one in plan.tables]
    assert [(None, ())] == said, said
    return plan


def step_of(plan: Plan) -> ClusterStep:
    """The cluster step of a plan of one table."""
    (table,) = plan.tables
    (step,) = (step for step in table.steps if isinstance(step, ClusterStep))
    return step


def applied_here(
    plan: Plan,
    *,
    around: Callable[[Storage], Storage] = lambda storage: storage,
    process: Process | None = None,
) -> Result:
    """Apply in this process, workers included; ``around`` wraps the one storage of them all."""
    stores: dict[str, Storage] = {}

    def opened(ref: StorageRef | str, options: Mapping[str, Option] | None = None) -> Storage:
        del options
        storage = open_storage(ref)
        if storage.location not in stores:
            stores[storage.location] = around(storage)
        return stores[storage.location]

    return apply_plan(
        plan,
        open_storage=opened,
        executor=InProcess(opened),
        rewriter=local.InProcess(opened),
        clock=world.SystemClock(),
        new_token=world.token,
        who=process or world.process(),
    )


def by_us(spark: Callable[[], SparkSession]) -> Clusterer:
    """Clusters everything as ``plan`` and ``apply`` do."""

    def cluster(subject: Subject) -> str:
        plan = planned(subject)
        assert len(step_of(plan).groups) > 0
        assert_done(reconciler.apply(plan, spark=spark()))
        assert () == planned(subject).tables[0].steps
        return subject.table.last_instant()

    return cluster


def assert_done(result: Result) -> None:
    """Everything that was planned was done."""
    assert result.exit_code == 0, [(t.error, t.refusals, t.outcomes) for t in result.tables]
