"""The catalog of a table that a plan is applied to: where it is, and which partitions it has."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import replace
from functools import partial

from reconciler.errors import (
    CatalogError,
    NoCatalogTableError,
    PartialError,
    SpecError,
    StaleError,
    choose_worst_code,
)
from reconciler.executor.result import TableResult
from reconciler.executor.session import ApplyContext
from reconciler.plans.model import Note
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage
from reconciler.transaction.catalogs.after_change import (
    RULE,
    find_begun_partitions,
    find_current_partitions,
    sync_after_change,
)
from reconciler.transaction.catalogs.sync import PartitionChanges, is_at


def check_catalog_location(spec: TableSpec, context: ApplyContext) -> None:
    """Raise StaleError unless the catalog still has the table where it was reviewed.

    Without an answer of the catalog the reviewed place counts, and the sync warns afterwards.
    """
    if spec.catalog is None or context.open_catalog is None:
        return
    try:
        with closing(context.open_catalog(spec.catalog)) as client:
            entry = client.find_table(spec.catalog.name)
    except NoCatalogTableError as error:
        raise StaleError(f"{error} any more; plan again") from None
    except (CatalogError, SpecError):
        return
    if not is_at(entry, spec.path):
        raise StaleError(
            f"{spec.catalog} is at {entry.location} now and was reviewed at {spec.path}; plan again"
        )


def sync_catalog(spec: TableSpec, result: TableResult, context: ApplyContext) -> TableResult:
    """Sync the catalog with what was applied, also before an error.

    Returns the result, with a warning and at least exit code 5 if the sync failed.
    """
    removed = {path for done in result.outcomes for path in done.partitions_removed}
    deletions = (done.deletion for done in result.outcomes if done.deletion is not None)
    deleted = {path for deletion in deletions for path in deletion.partitions}
    if spec.catalog is None or context.open_catalog is None or not (removed or deleted):
        return result
    find_used = partial(_find_used, frozenset(deleted))
    problem = sync_after_change(
        spec,
        context.open_storage,
        partial(_find_changes, tuple(sorted(removed | deleted)), find_used),
        context.open_catalog,
        find_used,
    )
    if problem is None:
        return result
    warnings = (*result.warnings, Note(RULE, problem))
    code = choose_worst_code((result.code, PartialError.exit_code))
    return replace(result, warnings=warnings, code=code)


def _find_changes(
    paths: tuple[str, ...],
    find_used: Callable[[Storage, Collection[str]], frozenset[str]],
    storage: Storage,
) -> PartitionChanges:
    """Return the partitions to drop from the catalog: those that no writer has filled again."""
    used = find_used(storage, paths)
    return PartitionChanges(absent=tuple(path for path in paths if path not in used))


def _find_used(
    deleted: Collection[str], storage: Storage, partitions: Collection[str]
) -> frozenset[str]:
    """Return the partitions that a writer has filled again.

    A deleted partition keeps its folder and metadata file until a clean; Hudi's sync drops it at
    once, too. One whose folder is removed has a metadata file if it is begun again.
    """
    gone = [path for path in partitions if path not in deleted]
    current = [path for path in partitions if path in deleted]
    used = find_begun_partitions(storage, gone) if gone else frozenset()
    return used | (find_current_partitions(storage, current) if current else frozenset())
