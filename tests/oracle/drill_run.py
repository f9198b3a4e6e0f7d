"""Plan and apply one table over and over, until this process is killed or its input ends.

``python -m tests.oracle.drill_run SPEC``: each line of stdin asks for one plan and its apply, and
gets a line of JSON: the exit code, what each step did, and the problems. Rewrites and deletions
run in this process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import reconciler
from reconciler import runtime
from reconciler.errors import ReconcilerError
from reconciler.executor.deletion import LocalDeleter
from reconciler.rewrite.local import LocalRewriter
from reconciler.spec.model import TableSpec
from tests.applying import admit_and_apply


def plan_and_apply(spec: TableSpec) -> dict[str, Any]:
    """Plan and apply once; return the exit code and what was done."""
    plan = reconciler.plan([spec])
    (planned,) = plan.tables
    found = {
        "planned": [step.kind for step in planned.steps],
        "warnings": [f"{note.rule}: {note.because}" for note in planned.warnings],
        "refusals": [f"{note.rule}: {note.because}" for note in planned.refusals],
        "error": planned.error,
        "code": 1 if planned.error else 0,
    }
    if planned.error or planned.refusals or not planned.steps:
        return found
    result = admit_and_apply(
        plan,
        open_storage=runtime.open_storage,
        deleter=LocalDeleter(runtime.open_storage),
        rewriter=LocalRewriter(runtime.open_storage),
        clock=runtime.SystemClock(),
        new_token=runtime.new_token,
        process=runtime.current_process(),
        lock_wait_s=60,
    )
    (table,) = result.tables
    done = [f"{one.kind} {one.how} {one.instant or ''}".strip() for one in table.outcomes]
    return found | {"code": result.exit_code, "done": done, "error": table.error}


def main() -> None:
    (spec,) = reconciler.load_specs(Path(sys.argv[1]))
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        try:
            answer = plan_and_apply(spec)
        except ReconcilerError as error:
            answer = {"code": error.exit_code, "error": str(error), "planned": [], "refusals": []}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
