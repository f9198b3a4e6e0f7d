"""Run one step of a reviewed plan by its kind.

Only the code of the kinds that a plan has is imported: that of all kinds takes a tenth of the time
of a small clean.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Final, assert_never

from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
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

#: modules by what they run, and those outside this package that they import when they need them
_CODE: Final[Mapping[type[Step], tuple[str, ...]]] = {
    ArchiveStep: ("reconciler.executor.archive.run", "fastavro", "pyarrow.parquet"),
    CleanStep: ("reconciler.executor.clean.run", "fastavro"),
    ClusterStep: ("reconciler.executor.cluster.run", "reconciler.rewrite.local"),
    CompactStep: ("reconciler.executor.compact.run", "reconciler.rewrite.local"),
    DeletePartitionStep: (
        "reconciler.executor.expiry.run",
        "reconciler.executor.expiry.dead_deletions",
    ),
    IndexStep: ("reconciler.executor.index.run",),
    MetadataStep: ("reconciler.executor.metadata_repair",),
    OrphansStep: ("reconciler.executor.orphans",),
    ResumeStep: (
        "reconciler.executor.clean.resume",
        "reconciler.executor.cluster.finish",
        "reconciler.executor.cluster.resume",
        "reconciler.executor.compact.resume",
        "reconciler.rewrite.local",
        "fastavro",
        "pyarrow.parquet",
    ),
    RollbackStep: ("reconciler.executor.rollback", "fastavro"),
    SavepointStep: ("reconciler.executor.savepoint", "fastavro"),
}


def import_step_code(tables: Iterable[TablePlan]) -> None:
    """Import what runs the steps of tables: no import shall fail once a table has changed."""
    for kind in {type(step) for table in tables for step in table.steps}:
        _import_code(kind)


def import_resumption_code() -> None:
    """Import what finishes pending work: a plan need not name it."""
    _import_code(ResumeStep)


def _import_code(kind: type[Step]) -> None:
    for name in _CODE[kind]:
        import_module(name)


def rewrite_groups(
    session: ApplySession,
    step: DeletePartitionStep | ClusterStep | CompactStep,
    fresh: FreshPlan | None,
) -> StepOutcome:
    """Run a step that replaces file groups, or their newest slices."""
    match step:
        case DeletePartitionStep():
            from reconciler.executor.expiry.run import run_delete_partitions

            return run_delete_partitions(session, step, fresh)
        case ClusterStep():
            from reconciler.executor.cluster.run import run_cluster

            return run_cluster(session, step, fresh)
        case CompactStep():
            from reconciler.executor.compact.run import run_compact

            return run_compact(session, step, fresh)
        case _:
            assert_never(step)


def run_removal(
    session: ApplySession, step: CleanStep | OrphansStep | ArchiveStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Remove files that reads no longer need, or instants that the timeline no longer needs."""
    match step:
        case CleanStep():
            from reconciler.executor.clean.run import run_clean

            return run_clean(session, step, fresh)
        case OrphansStep():
            from reconciler.executor.orphans import run_orphans

            return run_orphans(session, step, fresh)
        case ArchiveStep():
            from reconciler.executor.archive.run import run_archive

            return run_archive(session, step, fresh)
        case _:
            assert_never(step)


def run_under_lock(
    session: ApplySession, step: RollbackStep | SavepointStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Run a step that has no instant of its own."""
    if isinstance(step, RollbackStep):
        from reconciler.executor.rollback import run_rollback

        return run_rollback(session, step, fresh)
    from reconciler.executor.savepoint import run_savepoint

    return run_savepoint(session, step, fresh)


def build_indexes(
    session: ApplySession, step: IndexStep, fresh: FreshPlan | None
) -> Iterator[StepOutcome]:
    """Run a step that builds indexes, with an outcome for each."""
    from reconciler.executor.index.run import run_index

    return run_index(session, step, fresh)


def repair_metadata(
    session: ApplySession, step: MetadataStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Run a step that drops or rebuilds parts of the metadata table."""
    from reconciler.executor.metadata_repair import run_metadata_repair

    return run_metadata_repair(session, step, fresh)
