"""Work of the Python API on many tables, with its progress on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from reconciler import runtime
from reconciler.cli.environment import check_variables
from reconciler.cli.error_reports import report_crash
from reconciler.cli.options import TABLES_AT_ONCE
from reconciler.cli.terminal import show_progress
from reconciler.spec.model import TableSpec

_Result = TypeVar("_Result")


def work_on_tables(
    work: Callable[..., _Result],
    specs: Sequence[TableSpec],
    what: str,
    *,
    parallelism: int | None = None,
    describe: Callable[[Any], str] = lambda table: str(table.name),
    **options: Any,
) -> _Result:
    """Call a function of the API with specs and options; report progress and crashes.

    ``what``: the work, as a participle. ``parallelism``: tables at a time, None for a choice by
    where they are. ``describe`` returns the notice about a finished table. Raises SpecError for
    variables that are not set.
    """
    check_variables(specs)
    at_once = parallelism or choose_parallelism(spec.path for spec in specs)
    with show_progress(what, len(specs), "tables") as report:
        return work(
            specs,
            on_table=lambda table: report(1, describe(table), table.name),
            on_crash=lambda spec, error: report_crash(spec.name, error),
            parallelism=at_once,
            **options,
        )


def choose_parallelism(locations: Iterable[str]) -> int:
    """Return how many tables to work on at a time, by where they are."""
    return 1 if runtime.are_on_this_machine(locations) else TABLES_AT_ONCE
