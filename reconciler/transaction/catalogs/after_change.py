"""Sync the catalog of a table right after a change of it; a failure never loses the change."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from reconciler.errors import ReconcilerError
from reconciler.hudi.files.names import PARTITION_METAFILE
from reconciler.hudi.load import load_properties
from reconciler.spec.model import TableSpec
from reconciler.state.catalogs.open import CatalogOpener
from reconciler.state.current_files import list_current_partitions
from reconciler.state.observe import observe
from reconciler.storage.api import Storage
from reconciler.transaction.catalogs.sync import PartitionChanges, sync_partitions
from reconciler.transaction.paths import list_names
from reconciler.transaction.session import StorageOpener

#: the rule of the warning that a catalog was not synced
RULE: Final = "catalogSync"


def sync_after_change(
    spec: TableSpec,
    open_storage: StorageOpener,
    find_changes: Callable[[Storage], PartitionChanges],
    open_catalog: CatalogOpener,
    find_used: Callable[[Storage, Collection[str]], Collection[str]],
) -> str | None:
    """Sync the partitions that a change has made or removed.

    ``find_changes`` returns them and may look at the table. ``find_used`` returns which of some
    folders must keep their partitions, because a writer has come since. Returns None, or why the
    catalog does not list them, with the command to run: no error is raised, because the table is
    changed already.
    """
    if spec.catalog is None:
        return None
    try:
        storage = open_storage(spec.path, spec.storage_options)
        changes = find_changes(storage)
        if not changes:
            return None
        properties = load_properties(storage)
        client = open_catalog(spec.catalog)
        try:
            sync_partitions(
                client,
                spec.catalog.name,
                spec.path,
                properties,
                changes,
                partial(find_used, storage),
            )
        finally:
            client.close()
    except Exception as error:  # noqa: BLE001 (clients have exception classes of their own)
        is_known = isinstance(error, ReconcilerError)
        reason = str(error) if is_known else f"{type(error).__name__}: {error}"
        needs_environment = spec.catalog.options or spec.storage_options
        environment = " --env NAME" if needs_environment else ""
        command = f"reconciler sync {spec.source or 'SPEC'}{environment}"
        return (
            f"the table is changed, but partitions of {spec.catalog} were not synced: {reason}; "
            f"run `{command}`"
        )
    return None


def find_begun_partitions(storage: Storage, partitions: Collection[str]) -> frozenset[str]:
    """Return the partitions among the given ones that a writer has begun: they have a metafile."""
    return frozenset(path for path in partitions if _is_begun(storage, path))


def find_current_partitions(storage: Storage, partitions: Collection[str]) -> frozenset[str]:
    """Return the partitions among the given ones that have current files now.

    The metafile of a partition stays when a write deletes its rows. Raises as ``observe``.
    """
    state = observe(storage, None, observed_ms=0, with_history=False)
    return frozenset(list_current_partitions(state.view)).intersection(partitions)


def _is_begun(storage: Storage, partition: str) -> bool:
    """Return True if a partition has a metadata file, of whatever format its writer chose."""
    return any(name.startswith(PARTITION_METAFILE) for name in list_names(storage, partition))
