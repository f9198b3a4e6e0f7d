"""Prepare a rollback's update of the metadata table."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.hudi.metadata.deltacommit import MetadataSync
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.rollback_sync import plan_rollback_sync
from reconciler.transaction.metadata.sync import SyncRequest


def prepare_rollback_sync(
    request: SyncRequest, target: str, logs: Mapping[str, Mapping[str, int]]
) -> MetadataSync | None:
    """Return what has to be written, None when the table has no live metadata table.

    ``target``: the write that is rolled back; ``logs``: as for ``plan_rollback_sync``. Raises
    FormatError or UnsupportedError when the metadata table cannot be written.
    """
    if not request.properties.metadata_partitions:
        return None
    completed = request.choose_time()
    table = request.open_table()
    return plan_rollback_sync(
        table,
        read_metadata_listing(table),
        instant=request.instant,
        completion_time=completed,
        target=target,
        logs=logs,
    )
