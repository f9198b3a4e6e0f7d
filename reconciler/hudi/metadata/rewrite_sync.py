"""Plan the metadata table's update for new files into which rows were moved.

It is one deltacommit of the data instant, as for a clean; readers see it only when the data table's
instant completes. Replaced files stay listed until a clean removes them. Source:
HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.hudi.metadata.listing import MetadataListing
from reconciler.hudi.metadata.partition_logs import (
    NewFiles,
    PartitionLogBuilder,
    SyncPlan,
    plan_sync,
    require_pending_action,
)
from reconciler.hudi.metadata.sync_decisions import NewFilesFacts
from reconciler.hudi.metadata.table import MetadataTable
from reconciler.hudi.timeline.instant import Action

REWRITES: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewFilesOfRewrite(NewFiles):
    """The new files of a rewrite; ``read_keys`` returns all keys of a new file."""


def plan_rewrite_sync(
    table: MetadataTable,
    listing: MetadataListing,
    new_files: NewFilesOfRewrite,
    *,
    inflight: Sequence[str] = (),
) -> SyncPlan:
    """Plan the update of every live metadata partition for new files; drop what cannot be updated.

    ``inflight``: partitions that are being built. An earlier attempt at the same instant is removed
    and written again. Raises FormatError, UnsupportedError; StaleError when the data timeline does
    not show the instant as pending; BusyError when a partition must be dropped while another write
    is pending, which may rely on it.
    """
    action = require_pending_action(table, new_files.instant, REWRITES, "clustering")
    rows = sum(file.rows for _path, file in new_files.files)
    facts = NewFilesFacts(table_version=table.version, rows=rows)
    builder = PartitionLogBuilder.from_listing(table, listing, new_files)
    return plan_sync(builder, builder.builders(), action, facts, inflight)
