"""Sync the catalog of a table right after a change of it; a failure never loses the change."""

from __future__ import annotations

from typing import Final

from reconciler.catalogs.open import CatalogOpener
from reconciler.catalogs.sync import PartitionChanges, sync_partitions
from reconciler.errors import ReconcilerError
from reconciler.hudi.load import load_properties
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage

#: the rule of the warning that a catalog was not synced
RULE: Final = "catalogSync"
_PARTITION_FILE: Final = ".hoodie_partition_metadata"


def sync_after_change(
    spec: TableSpec, storage: Storage, changes: PartitionChanges, open_catalog: CatalogOpener
) -> str | None:
    """Sync the partitions that a change has made or removed.

    Returns None, or why the catalog does not list them, with the command to run: no error is
    raised, because the table is changed already.
    """
    if spec.catalog is None or not changes:
        return None
    try:
        properties = load_properties(storage)
        client = open_catalog(spec.catalog)
        try:
            sync_partitions(client, spec.catalog.name, spec.path, properties, changes)
        finally:
            client.close()
    except Exception as error:  # noqa: BLE001 (clients have exception classes of their own)
        is_known = isinstance(error, ReconcilerError)
        reason = str(error) if is_known else f"{type(error).__name__}: {error}"
        command = f"reconciler sync {spec.source or 'SPEC'}"
        return (
            f"the table is changed, but partitions of {spec.catalog} were not synced: {reason}; "
            f"run `{command}`"
        )
    return None


def find_removed_partitions(storage: Storage, partitions: tuple[str, ...]) -> PartitionChanges:
    """Return the partitions to drop from the catalog: no writer has begun them again by now."""
    gone = (path for path in partitions if storage.stat(f"{path}/{_PARTITION_FILE}") is None)
    return PartitionChanges(absent=tuple(gone))
