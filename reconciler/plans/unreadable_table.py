"""Report tables that cannot be read: their plans, and the messages of their errors."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.errors import ReconcilerError
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.model import TablePlan
from reconciler.spec.model import TableSpec

#: gets the errors that are bugs of this program
OnCrash = Callable[[TableSpec, Exception], None]


def make_unreadable_plan(spec: TableSpec) -> TablePlan:
    """Return the plan of a table that could not be read, without steps and without an error."""
    digest = compute_spec_digest(spec.document)
    return TablePlan(name=spec.name, path=spec.path, spec=spec.document, spec_digest=digest)


def report_problem(spec: TableSpec, error: Exception, on_crash: OnCrash | None) -> str:
    """Return the message of an error, which is reported if it is a bug of this program."""
    if isinstance(error, ReconcilerError):
        return str(error)
    return report_crash(spec, error, on_crash)


def report_crash(spec: TableSpec, error: Exception, on_crash: OnCrash | None) -> str:
    """Report an error that is a bug of this program, and return its message."""
    if on_crash is not None:
        on_crash(spec, error)
    return f"{type(error).__name__}: {error} (a bug in reconciler, please report it)"
