"""Sync the partitions that a write has made or deleted with the catalog of the table."""

from __future__ import annotations

from dataclasses import replace

from reconciler.plans.model import Note
from reconciler.spec.model import TableSpec
from reconciler.state.catalogs.open import CatalogOpener
from reconciler.transaction.catalogs.after_change import (
    RULE,
    find_current_partitions,
    sync_after_change,
)
from reconciler.transaction.catalogs.sync import PartitionChanges
from reconciler.transaction.session import StorageOpener
from reconciler.writer.request import WriteResult


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
