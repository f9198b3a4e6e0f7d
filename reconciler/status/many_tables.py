"""Do the same work for many tables, some of them in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from reconciler.spec.model import TableSpec
from reconciler.storage.parallel import run_parallel
from reconciler.storage.silent_endpoints import SILENT_ENDPOINTS

#: seconds to wait, after Ctrl-C, for tables that are being read; nothing has to be undone
_INTERRUPT_WAIT_S: Final = 0.5
_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


def take_first(on_item: Callable[[_Item], None] | None) -> Callable[[tuple[_Item, Any]], None]:
    """Return a callback for pairs that hands on the first of each."""
    return lambda pair: None if on_item is None else on_item(pair[0])


def run_for_each(
    specs: TableSpec | Iterable[TableSpec],
    work: Callable[[TableSpec], _Result],
    parallelism: int,
    on_done: Callable[[_Result], None] | None,
) -> tuple[_Result, ...]:
    """Do the work for every table, some in parallel; return the results in the order of specs."""
    tables = [specs] if isinstance(specs, TableSpec) else specs
    options: Any = {"parallelism": parallelism, "wait_s": _INTERRUPT_WAIT_S}
    with SILENT_ENDPOINTS.remember():
        return tuple(run_parallel(work, tables, on_done=on_done, **options))
