"""Work of the Python API on many tables, with its progress on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from reconciler.cli.environment import check_variables
from reconciler.cli.error_reports import report_crash
from reconciler.cli.terminal import show_progress
from reconciler.spec.model import TableSpec

_Result = TypeVar("_Result")


def work_on_tables(
    work: Callable[..., _Result],
    specs: Sequence[TableSpec],
    what: str,
    *,
    describe: Callable[[Any], str] = lambda table: str(table.name),
    **options: Any,
) -> _Result:
    """Call a function of the API with specs and options; report progress and crashes.

    ``what``: the work, as a participle. ``describe`` returns the notice about a finished table.
    Raises SpecError for variables that are not set.
    """
    check_variables(specs)
    with show_progress(what, len(specs), "tables") as report:
        return work(
            specs,
            on_table=lambda table: report(1, describe(table), table.name),
            on_crash=lambda spec, error: report_crash(spec.name, error),
            **options,
        )
