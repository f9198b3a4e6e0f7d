"""Check before an apply that a session's workers can run its steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from reconciler.index.build import MIN_FILES_FOR_JOB
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    IndexStep,
    ResumeStep,
    RollbackStep,
    Step,
    TablePlan,
)
from reconciler.spark.workers import READING_PACKAGES, WRITING_PACKAGES, set_up_workers


def set_up_executors(session: Any, tables: Iterable[TablePlan]) -> None:
    """Let a session's workers run the steps of plans.

    Raises ReconcilerError if they cannot, before anything is changed.
    """
    steps = [step for table in tables for step in table.steps]
    if steps:
        packages = {package for step in steps for package in _list_packages(step)}
        set_up_workers(session.sparkContext, sorted(packages))


def _list_packages(step: Step) -> tuple[str, ...]:
    """Return the packages that workers import for a step."""
    match step:
        case ClusterStep() | ResumeStep(action="clustering"):
            return WRITING_PACKAGES
        case IndexStep(files=files):
            return READING_PACKAGES if files >= MIN_FILES_FOR_JOB else ()
        case CleanStep() | ResumeStep() | RollbackStep():
            return ()
        case _:
            assert_never(step)
