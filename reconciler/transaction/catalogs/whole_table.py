"""Sync all partitions of a table with its catalog."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from functools import partial

from reconciler.hudi.load import load_properties
from reconciler.spec.model import CatalogTable
from reconciler.state.catalogs.open import CatalogOpener
from reconciler.storage.api import Storage
from reconciler.transaction.catalogs.after_change import find_current_partitions
from reconciler.transaction.catalogs.sync import PartitionChanges, PartitionSync, sync_partitions


def sync_all_partitions(
    storage: Storage,
    location: str,
    present: Collection[str],
    table: CatalogTable,
    open_catalog: CatalogOpener,
) -> PartitionSync:
    """Add the partitions that are ``present``, and drop all others that have no files by now.

    Raises as ``sync_partitions`` and ``observe``.
    """
    properties = load_properties(storage)
    changes = PartitionChanges(present=present, is_complete=True)
    find_used = partial(find_current_partitions, storage)
    with closing(open_catalog(table)) as client:
        return sync_partitions(client, table.name, location, properties, changes, find_used)
