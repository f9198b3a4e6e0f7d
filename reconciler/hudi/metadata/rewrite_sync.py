"""What to write so that the metadata table knows of new files into which rows were moved.

One deltacommit of the data instant, as of a clean: nobody sees any of it before the data table's
instant completes. Files that the new ones replace stay listed until a clean removes them.
Source: HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.hudi.metadata.listing import MetadataListing
from reconciler.hudi.metadata.partition_logs import (
    KeyReader,
    NewBaseFile,
    NewFiles,
    PartitionLogBuilder,
    SyncPlan,
    plan_sync,
    require_pending_action,
)
from reconciler.hudi.metadata.sync_decisions import NewFilesFacts, PartitionDecision, decide_sync
from reconciler.hudi.metadata.table import MetadataTable
from reconciler.hudi.timeline.instant import Action

__all__ = [
    "REWRITES",
    "KeyReader",
    "NewBaseFile",
    "SyncPlan",
    "NewFilesOfRewrite",
    "plan_rewrite_sync",
]

REWRITES: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewFilesOfRewrite(NewFiles):
    """One rewrite as the metadata table is told of it; ``keys`` gives all keys of a new file."""


def plan_rewrite_sync(
    table: MetadataTable,
    listing: MetadataListing,
    new_files: NewFilesOfRewrite,
    *,
    inflight: Sequence[str] = (),
) -> SyncPlan:
    """Tell every live partition of the metadata table of new files, or say that it must go.

    ``inflight``: partitions that are being built. What an earlier attempt at the same instant wrote
    is taken back and written again. Raises FormatError, UnsupportedError; StaleError when the
    table's data timeline doesn't show the instant as pending; BusyError when a partition must go
    while another write is pending, which may be counting on it.
    """
    action = require_pending_action(table, new_files.instant, REWRITES, "clustering")
    rows = sum(file.rows for _path, file in new_files.files)
    teller = PartitionLogBuilder.from_listing(table, listing, new_files)

    def judged(obstacles: Mapping[str, str]) -> dict[str, PartitionDecision]:
        facts = NewFilesFacts(table_version=table.version, rows=rows, obstacles=obstacles)
        return decide_sync(action, table.live_partitions, inflight, facts)

    return plan_sync(teller, teller.builders(), judged)
