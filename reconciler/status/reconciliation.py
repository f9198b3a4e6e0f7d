"""Plan and apply a table right after a write, as Hudi's inline table services do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass
from reconciler.transaction.catalogs.after_change import RULE as CATALOG_RULE
from reconciler.writer.request import WriteResult

if TYPE_CHECKING:
    from reconciler.executor.result import ApplyResult
    from reconciler.plans.plan import Plan
    from reconciler.spec.model import TableSpec

#: the exit code of a committed write after which the table could not be reconciled in whole
INCOMPLETE: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The reconciling of a table after a write.

    ``result``: of the apply, None if it ended with an error. ``error``: that error, one sentence.
    """

    result: ApplyResult | None = None
    error: str | None = None

    @property
    def exit_code(self) -> int:
        """0 if the table is as declared, or its part of the code of an apply."""
        return 1 if self.result is None else self.result.exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledWrite(WriteResult):
    """The result of a write, and of reconciling the table after it (None if that is not asked for).

    The write is committed whatever ``reconciliation`` says.
    """

    reconciliation: Reconciliation | None = None

    @property
    def exit_code(self) -> int:
        """0, or 5 if the write is committed and the table not reconciled or synced in whole."""
        is_whole = self.reconciliation is None or self.reconciliation.exit_code == 0
        is_synced = all(note.rule != CATALOG_RULE for note in self.warnings)
        return 0 if is_whole and is_synced else INCOMPLETE


def reconcile_written(
    written: WriteResult,
    spec: TableSpec,
    make_plan: Callable[[TableSpec], Plan],
    apply_plan: Callable[[Plan], ApplyResult],
) -> ReconciledWrite:
    """Plan and apply the table of a write that is done, and add the outcome to the write's result.

    No error is raised, because the write is committed: errors are in the result.
    """
    try:
        made = Reconciliation(result=apply_plan(make_plan(spec)))
    except Exception as error:  # noqa: BLE001 (it must not hide the write)
        is_known = isinstance(error, ReconcilerError)
        message = str(error) if is_known else f"{type(error).__name__}: {error}"
        made = Reconciliation(error=message)
    return add_reconciliation(written, made)


def add_reconciliation(written: WriteResult, made: Reconciliation | None) -> ReconciledWrite:
    """Return the result of a write with what was done after it."""
    values = {field.name: getattr(written, field.name) for field in fields(WriteResult)}
    return ReconciledWrite(**values, reconciliation=made)
