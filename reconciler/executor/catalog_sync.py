"""Drop the partitions that an apply has removed from the catalog of the table."""

from __future__ import annotations

from dataclasses import replace

from reconciler.errors import PartialError
from reconciler.executor.result import TableResult, choose_worst_code
from reconciler.executor.session import ApplyContext
from reconciler.plans.model import Note
from reconciler.spec.model import TableSpec
from reconciler.transaction.catalogs.after_change import (
    RULE,
    find_removed_partitions,
    sync_after_change,
)


def sync_catalog(spec: TableSpec, result: TableResult, context: ApplyContext) -> TableResult:
    """Sync the catalog with what was applied, also before an error.

    Returns the result, with a warning and at least exit code 5 if the sync failed.
    """
    paths = sorted({path for done in result.outcomes for path in done.partitions_removed})
    if spec.catalog is None or context.open_catalog is None or not paths:
        return result
    storage = context.open_storage(spec.path, spec.storage_options)
    changes = find_removed_partitions(storage, tuple(paths))
    problem = sync_after_change(spec, storage, changes, context.open_catalog)
    if problem is None:
        return result
    warnings = (*result.warnings, Note(RULE, problem))
    code = choose_worst_code((result.code, PartialError.exit_code))
    return replace(result, warnings=warnings, code=code)
