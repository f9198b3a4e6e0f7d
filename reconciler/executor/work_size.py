"""Measure the work of plans: what is rewritten, deleted and read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from reconciler.lazy_dataclass import dataclass
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
from reconciler.plans.rewrites import Rewrites
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.storage.open import find_bulk_size

#: files that a local disk deletes in the time that a store takes for a request
_LOCAL_FILES_PER_REQUEST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSize:
    """The work of steps that workers may do.

    ``rewritten_bytes``: of base and log files that are rewritten. ``deleted_files``: files of
    cleans and orphans, in about ``delete_requests`` requests. ``footers``: files whose footers are
    read.
    """

    rewritten_bytes: int = 0
    deleted_files: int = 0
    delete_requests: int = 0
    footers: int = 0

    def add(self, other: WorkSize) -> WorkSize:
        """Return the sum of both."""
        return WorkSize(
            rewritten_bytes=self.rewritten_bytes + other.rewritten_bytes,
            deleted_files=self.deleted_files + other.deleted_files,
            delete_requests=self.delete_requests + other.delete_requests,
            footers=self.footers + other.footers,
        )


def measure_work(tables: Iterable[TablePlan]) -> WorkSize:
    """Return the work of the steps of tables, all together."""
    total = WorkSize()
    for table in tables:
        for step in table.steps:
            total = total.add(_measure_step(step, table.path))
    return total


def _measure_step(step: Step, location: str) -> WorkSize:
    match step:
        case ClusterStep(groups=groups) | CompactStep(groups=groups):
            return WorkSize(rewritten_bytes=_sum_bytes(groups))
        case ResumeStep(groups=groups, files=files):
            deleted = _measure_deletion(len(files), location)
            return deleted.add(WorkSize(rewritten_bytes=_sum_bytes(groups)))
        case CleanStep(files=files):
            return _measure_deletion(len(files), location)
        case OrphansStep(files=orphans):
            return _measure_deletion(len(orphans), location)
        case IndexStep(files=footers):
            return WorkSize(footers=footers)
        case (
            RollbackStep()
            | MetadataStep()
            | SavepointStep()
            | DeletePartitionStep()
            | ArchiveStep()
        ):
            return WorkSize()
        case _:
            assert_never(step)


def _sum_bytes(groups: Rewrites | None) -> int:
    return 0 if groups is None else int(groups.bytes.sum())


def _measure_deletion(files: int, location: str) -> WorkSize:
    in_store = find_bulk_size(location) if "://" in location else _LOCAL_FILES_PER_REQUEST
    return WorkSize(deleted_files=files, delete_requests=-(-files // in_store))
