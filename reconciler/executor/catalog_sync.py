"""The catalog of a table that a plan is applied to: where it is, and which partitions it has."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from reconciler.errors import CatalogError, NoCatalogTableError, PartialError, SpecError, StaleError
from reconciler.executor.result import TableResult, choose_worst_code
from reconciler.executor.session import ApplyContext
from reconciler.plans.model import Note
from reconciler.spec.model import TableSpec
from reconciler.transaction.catalogs.after_change import (
    RULE,
    find_begun_partitions,
    find_removed_partitions,
    sync_after_change,
)
from reconciler.transaction.catalogs.sync import is_at


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
    paths = sorted({path for done in result.outcomes for path in done.partitions_removed})
    if spec.catalog is None or context.open_catalog is None or not paths:
        return result
    problem = sync_after_change(
        spec,
        context.open_storage,
        lambda storage: find_removed_partitions(storage, tuple(paths)),
        context.open_catalog,
        find_begun_partitions,
    )
    if problem is None:
        return result
    warnings = (*result.warnings, Note(RULE, problem))
    code = choose_worst_code((result.code, PartialError.exit_code))
    return replace(result, warnings=warnings, code=code)
