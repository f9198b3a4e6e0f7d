"""Check before an apply that a session's workers can run its steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

import pyarrow.compute as pc

from reconciler.executor.deletion import DELETED_HERE
from reconciler.index.build import MIN_FILES_FOR_JOB
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    IndexStep,
    MetadataStep,
    OrphansStep,
    ResumeStep,
    RollbackStep,
    Step,
    TablePlan,
)
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.spark.connect import refuse_connect
from reconciler.spark.workers import (
    MERGING_PACKAGES,
    READING_PACKAGES,
    WRITING_PACKAGES,
    set_up_workers,
)
from reconciler.storage.open import list_client_packages


def set_up_executors(session: Any, tables: Iterable[TablePlan]) -> None:
    """Let a session's workers run the steps of plans.

    Raises ReconcilerError if they cannot, before anything is changed, and UnsupportedError for a
    session of Spark Connect.
    """
    refuse_connect(session, "apply")
    steps = [(step, table.path) for table in tables for step in table.steps]
    if steps:
        packages = {package for step, path in steps for package in _list_packages(step, path)}
        set_up_workers(session.sparkContext, sorted(packages))


def _list_packages(step: Step, location: str) -> tuple[str, ...]:
    """Return the packages that workers import for a step of the table at a location."""
    match step:
        case (
            ClusterStep(groups=groups)
            | CompactStep(groups=groups)
            | ResumeStep(action="clustering" | "compaction", groups=groups)
        ):
            has_logs = groups is not None and pc.sum(pc.list_value_length(groups.logs)).as_py()
            packages = (*WRITING_PACKAGES, *(MERGING_PACKAGES if has_logs else ()))
        case IndexStep(files=files):
            if files < MIN_FILES_FOR_JOB:
                return ()
            packages = READING_PACKAGES
        case CleanStep() | ResumeStep():
            packages = ()
        case OrphansStep(files=orphans):
            if len(orphans) <= DELETED_HERE:
                return ()
            packages = ()
        case (
            RollbackStep()
            | MetadataStep()
            | SavepointStep()
            | DeletePartitionStep()
            | ArchiveStep()
        ):
            return ()
        case _:
            assert_never(step)
    return (*packages, *list_client_packages(location))
