"""Our side of a test of compactions: spec, plan and apply in this process, without Spark."""

from __future__ import annotations

import os
from pathlib import Path

import reconciler
from reconciler.executor.result import ApplyResult
from reconciler.plans.model import ResumeStep
from reconciler.plans.plan import Plan
from reconciler.spec.model import TableSpec
from tests.applying import apply_here

_SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: "{name}"}}
spec:
  path: "{path}"
  timezone: UTC
  retention: {{commits: {commits}}}
  concurrency: {{lock: {{provider: {lock}}}, pending: {pending}}}
{more}"""
FINISH = "{compaction: finish, after: 1m}"
REPAIR = "  metadata: {verify: each-apply, repair: rebuild}\n"
#: longer than the time after which writers count as dead, shorter than zones differ
_LONG_AGO_S = 200


def make_spec(
    path: Path,
    *,
    pending: str = FINISH,
    lock: str = "filesystem",
    commits: int = 50,
    more: str = "",
) -> TableSpec:
    """Load the spec of a table from a file beside it; ``more``: further lines."""
    file = path.parent / f"{path.name}.yaml"
    said = {"pending": pending, "lock": lock, "commits": commits, "more": more}
    text = _SPEC.format(name=path.name, path=path, **said)
    file.write_text(text)
    (spec,) = reconciler.load_specs(file)
    return spec


def make_plan(path: Path, **options: object) -> Plan:
    """Plan; an error or a refusal fails the test."""
    plan = reconciler.plan(make_spec(path, **options))  # type: ignore[arg-type]
    assert [(None, ())] == [(one.error, one.refusals) for one in plan.tables]
    return plan


def finish(path: Path, instant: str) -> ApplyResult:
    """Let nobody have worked on a compaction for long, plan and apply; it must be completed."""
    make_old(path, instant)
    plan = make_plan(path)
    assert instant == get_step(plan).instant
    result = apply_here(plan)
    assert result.exit_code == 0, [(t.error, t.refusals, t.outcomes) for t in result.tables]
    return result


def get_step(plan: Plan) -> ResumeStep:
    """Return the only resume of a plan."""
    (step,) = (step for step in plan.tables[0].steps if isinstance(step, ResumeStep))
    assert step.action == "compaction"
    return step


def find_timeline(path: Path) -> Path:
    """Return the folder of a table's timeline."""
    folder = path / ".hoodie" / "timeline"
    return folder if folder.is_dir() else path / ".hoodie"


def make_old(path: Path, instant: str) -> None:
    """Move the times of what a writer left of an instant into the past, without waiting."""
    hoodie = path / ".hoodie"
    left = [hoodie / ".heartbeat" / instant, *find_timeline(path).glob(f"{instant}*")]
    for file in (*left, *(hoodie / ".temp" / instant).rglob("*")):
        if file.is_file():
            before = file.stat().st_mtime - _LONG_AGO_S
            os.utime(file, (before, before))
