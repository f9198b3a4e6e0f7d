"""Write a table, and sync the partitions that the write has made or deleted with its catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reconciler.plans.model import Note
from reconciler.spec.model import TableSpec
from reconciler.state.catalogs.open import CatalogOpener
from reconciler.storage.api import StorageRef
from reconciler.transaction.catalogs.after_change import (
    RULE,
    find_current_partitions,
    sync_after_change,
)
from reconciler.transaction.catalogs.sync import PartitionChanges
from reconciler.transaction.session import RunContext, StorageOpener
from reconciler.writer.job import RowWriter
from reconciler.writer.request import WriteRequest, WriteResult
from reconciler.writer.run import write_table


def write_synced(
    spec: TableSpec,
    request: WriteRequest,
    *,
    context: RunContext,
    token: str,
    writer: Callable[[StorageRef], RowWriter] | None,
    open_catalog: CatalogOpener,
) -> WriteResult:
    """Write as ``write_table`` does, then sync the table's catalog."""
    written = write_table(spec, request, context=context, token=token, writer=writer)
    return sync_catalog(spec, written, context.open_storage, open_catalog)


def sync_catalog(
    spec: TableSpec,
    written: WriteResult,
    open_storage: StorageOpener,
    open_catalog: CatalogOpener,
) -> WriteResult:
    """Sync the catalog after a write; return its result, with a warning if the sync failed."""
    changes = PartitionChanges(
        present=tuple(filter(None, written.partitions_written)),
        absent=tuple(filter(None, written.partitions_deleted)),
    )
    if spec.catalog is None or not changes:
        return written
    problem = sync_after_change(
        spec, open_storage, lambda _: changes, open_catalog, find_current_partitions
    )
    if problem is None:
        return written
    return replace(written, warnings=(*written.warnings, Note(RULE, problem)))
