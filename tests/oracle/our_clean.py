"""Our side of an oracle test of cleans: spec, plan and apply, without a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import reconciler
from reconciler.executor.result import ApplyResult
from reconciler.plans.model import CleanStep, RemovedFiles, TablePlan
from reconciler.plans.plan import Plan
from reconciler.spec.model import TableSpec
from tests.applying import apply_here
from tests.oracle.hudi import HudiTable

_SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: "{name}"}}
spec:
  path: "{path}"
  timezone: UTC
  retention: {retention}
  readers: {readers}
  concurrency: {{lock: {{provider: filesystem}}, staleAfter: {stale_after}}}
"""

Retention = Mapping[str, object]


def make_spec(
    table: HudiTable, retention: Retention, *, stale_after: str = "1h", readers: str = "{}"
) -> TableSpec:
    """Load the spec of a table from a file beside it."""
    said = ", ".join(f"{key}: {value}" for key, value in retention.items())
    file = table.path.parent / f"{table.path.name}.yaml"
    file.write_text(
        _SPEC.format(
            name=table.path.name,
            path=table.path,
            retention=f"{{{said}}}",
            readers=readers,
            stale_after=stale_after,
        )
    )
    (spec,) = reconciler.load_specs(file)
    return spec


def make_plan(
    table: HudiTable,
    retention: Retention,
    *,
    now: datetime | None = None,
    stale_after: str = "1h",
    readers: str = "{}",
) -> Plan:
    """Plan; an error or a refusal fails the test."""
    spec = make_spec(table, retention, stale_after=stale_after, readers=readers)
    plan = reconciler.plan(spec, now=now)
    assert [(None, ())] == [(one.error, one.refusals) for one in plan.tables]
    return plan


def clean(table: HudiTable, retention: Retention, *, stale_after: str = "1h") -> ApplyResult:
    """Plan and apply; everything planned must be done."""
    result = apply_here(make_plan(table, retention, stale_after=stale_after))
    assert result.exit_code == 0, [(t.error, t.refusals, t.outcomes) for t in result.tables]
    return result


def get_step(plan: Plan | TablePlan) -> CleanStep:
    """Return the clean step of a plan of one table."""
    table = plan.tables[0] if isinstance(plan, Plan) else plan
    (step,) = (step for step in table.steps if isinstance(step, CleanStep))
    return step


def select_partition(plan: Plan, partition: str) -> Plan:
    """Return the plan reduced to the files of one partition, as a reviewer would."""
    step = get_step(plan)
    files = step.files
    rows = [i for i, (path, _) in enumerate(list_names(step)) if path == partition]
    fewer = RemovedFiles(
        partition=files.partition.take(rows),
        name=files.name.take(rows),
        bytes=files.bytes[rows],
        kind=files.kind[rows],
        rule=files.rule[rows],
        because=files.because.take(rows),
    )
    (table,) = plan.tables
    steps = (replace(step, files=fewer, delete_partitions=()),)
    return replace(plan, tables=(replace(table, steps=steps),))


def list_names(step: CleanStep) -> list[tuple[str, str]]:
    """Return partition and name of every file to remove."""
    partitions, names = step.files.partition.to_pylist(), step.files.name.to_pylist()
    return list(zip(partitions, names, strict=True))


def list_files(root: Path) -> set[Path]:
    """Return every file below a folder, relative."""
    return {path.relative_to(root) for path in root.rglob("*") if path.is_file()}
