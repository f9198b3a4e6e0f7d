"""Make the two Avro payloads of a clean: the requested plan and the completed record."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from reconciler.arrays import to_numpy
from reconciler.executor.deletion import DeletionBatch
from reconciler.hudi.timeline.clean import CleanedPartition, CleanerPlan, CleanMetadata
from reconciler.planners.recovery.resume_clean import DELETE_PARTITIONS
from reconciler.plans.model import NamedFiles, RemovedFiles
from reconciler.state.model import PendingClean, TableState

SAVEPOINTED: Final = "savepointed_timestamps"

#: A clean that names no file can't be executed by Hudi before 1.2 and blocks every later one; one
#: that names a missing file can. So a clean of nothing but folders names one that never existed.
PLACEHOLDER: Final = "00000000-0000-0000-0000-000000000000-0_0-0-0_00000000000000000.parquet"


def make_clean_extra(state: TableState, delete_partitions: Sequence[str]) -> dict[str, str]:
    """Return the extra metadata that a clean's requested and completed file have in addition.

    Savepoints are listed as Hudi lists them, for partitioned tables only: a later clean finds by
    them that one was removed.
    """
    extra = {}
    savepoints = sorted(s.instant for s in state.savepoints if s.completed)
    if savepoints and state.is_partitioned:
        extra[SAVEPOINTED] = ",".join(savepoints)
    if delete_partitions:
        extra[DELETE_PARTITIONS] = json.dumps(sorted(delete_partitions))
    return extra


def make_cleaner_plan(
    state: TableState,
    files: RemovedFiles,
    *,
    policy: str,
    earliest: str | None,
    delete_partitions: Sequence[str],
    extra: Mapping[str, str],
) -> CleanerPlan:
    """Return the plan that a clean requests, and that any Hudi writer may execute from then on.

    Folders to remove are entered without files: Hudi would remove those of its own field whole.
    """
    names = group_names(files)
    planned = {path: names.get(path, ()) for path in sorted({*names, *delete_partitions})}
    if not names:
        planned[min(planned)] = (PLACEHOLDER,)
    commits = state.commits_timeline
    actions = {i.requested: i.action.value for i in state.timeline.commits}
    return CleanerPlan(
        policy=policy,
        earliest_instant=earliest,
        earliest_action=actions.get(earliest or "", "commit"),
        last_completed_commit=commits[-1].requested if commits else "",
        files=planned,
        extra=extra,
    )


def make_clean_metadata(
    plan: CleanerPlan,
    *,
    instant: str,
    earliest: str | None,
    removed: Mapping[str, Sequence[str]],
    removed_partitions: Collection[str],
    took_ms: int,
) -> CleanMetadata:
    """Return what a completed clean records.

    ``removed``: partition -> names that are absent now, whoever removed them.
    """
    return CleanMetadata(
        started=instant,
        duration_ms=took_ms,
        earliest_instant=earliest or "",
        last_completed_commit=plan.last_completed_commit,
        partitions={
            path: CleanedPartition(
                policy=plan.policy,
                planned=tuple(names),
                deleted=tuple(names),
                is_folder_deleted=path in removed_partitions,
            )
            for path, names in sorted(removed.items())
        },
        extra=plan.extra,
    )


def group_names(files: RemovedFiles) -> dict[str, tuple[str, ...]]:
    """Return the file names by partition, in order."""
    return {path: tuple(names) for path, names in _group_runs(files)}


def split_batches(files: NamedFiles, largest: int) -> list[DeletionBatch]:
    """Return the files by partition, in batches of at most ``largest`` names."""
    return [
        DeletionBatch(path, tuple(names[start : start + largest]))
        for path, names in _group_runs(files)
        for start in range(0, len(names), largest)
    ]


def _group_runs(files: NamedFiles) -> Iterator[tuple[str, list[str]]]:
    """Yield each partition with its names; rows are sorted by partition."""
    paths, rows = files.partition.dictionary.to_pylist(), to_numpy(files.partition.indices)
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(rows)]):
        yield paths[rows[start]], files.name[start:end].to_pylist()


def list_planned_partitions(clean: PendingClean) -> set[str]:
    """Return the folders that a pending clean removes, by Hudi's field or by ours."""
    try:
        ours = json.loads(clean.extra.get(DELETE_PARTITIONS, "[]"))
    except ValueError:
        ours = []
    listed = ours if isinstance(ours, list) else []
    return {path for path in (*clean.delete_partitions, *listed) if path and isinstance(path, str)}
