"""Clusterings of real Hudi that nobody finishes, and our finishing of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import reconciler
from reconciler.executor.result import ApplyResult
from reconciler.plans.model import ResumeStep
from reconciler.plans.plan import Plan
from tests.oracle import failed_writes, our_clustering
from tests.oracle.hudi import HudiFailedError, HudiTable, RealHudi

_SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: "{name}"}}
spec:
  path: "{path}"
  timezone: UTC
  concurrency:
    lock: {{provider: filesystem}}
    staleAfter: 1m
    pending: {{clustering: finish, after: 1m}}
"""
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "n,id"}
#: what a writer says of the layout, which no plan records
CURVED = {**SORTED, "hoodie.layout.optimize.strategy": "hilbert"}


def leave_clustering(
    hudi: RealHudi, table: HudiTable, how: str, options: Mapping[str, str] | None = None
) -> str:
    """Have Hudi leave a clustering; return its instant.

    ``how``: ``requested`` only; ``dead`` while its files and markers are there; ``broken`` off
    after its entries in the metadata table.
    """
    instant = hudi.schedule(table, "CLUSTER", options)
    assert instant
    if how == "dead":
        with suppress(HudiFailedError):
            hudi.cluster(table, instant, failed_writes.FAILING)
        assert failed_writes.list_written(table, instant)
    elif how == "broken":
        hudi.cluster(table, instant)
        failed_writes.remove_completed(table, instant)
    failed_writes.make_old(table, instant)
    return instant


def make_plan(table: HudiTable) -> Plan:
    """Plan with a short patience; an error or a refusal fails the test."""
    file = table.path.parent / f"{table.path.name}.yaml"
    file.write_text(_SPEC.format(name=table.path.name, path=table.path))
    plan = reconciler.plan(reconciler.load_specs(file))
    assert [(None, ())] == [(one.error, one.refusals) for one in plan.tables]
    return plan


def get_step(plan: Plan) -> ResumeStep:
    (step,) = plan.tables[0].steps
    assert isinstance(step, ResumeStep), plan.tables[0].warnings
    return step


def finish(table: HudiTable) -> ApplyResult:
    """Plan and apply; everything planned must be done, and nothing is left."""
    result = our_clustering.apply_here(make_plan(table))
    our_clustering.assert_done(result)
    assert () == make_plan(table).tables[0].steps
    return result
