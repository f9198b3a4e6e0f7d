"""Take each table's plan, status and state at one moment together, for what shows all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import TablePlan
from reconciler.plans.unreadable_table import OnCrash, make_unreadable_plan, report_crash
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.state.write_history import read_known_writes
from reconciler.status import lock
from reconciler.status.many_tables import run_for_each, take_first
from reconciler.status.model import TableStatus
from reconciler.status.table import table_status
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.transaction.process import Clock, Process
from reconciler.transaction.session import StorageOpener

_Result = TypeVar("_Result")
#: the plan of a table, and the state that it was made from, if the table could be read
Planned = tuple[TablePlan, TableState | None]
#: how to open a storage, the process that asks, and a clock
Tools = tuple[StorageOpener, Process, Clock]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSurvey:
    """A table as it was at one moment; ``state``: None if the table could not be read."""

    spec: TableSpec
    plan: TablePlan
    status: TableStatus
    state: TableState | None


def survey_tables(  # noqa: PLR0913 (the options of a plan)
    specs: TableSpec | Iterable[TableSpec],
    use: Callable[[TableSurvey], _Result],
    make_plan: Callable[..., Planned],
    tools: Tools,
    *,
    on_table: Callable[[TablePlan], None] | None = None,
    on_crash: OnCrash | None = None,
    parallelism: int = 1,
) -> tuple[_Result, ...]:
    """Return what ``use`` makes of every table, in the order of the specs.

    ``make_plan``: plans the table of a spec. No state is kept, so that many large tables need
    little memory.
    """

    def work(spec: TableSpec) -> tuple[TablePlan, _Result]:
        planned = make_plan(spec, on_crash=on_crash)
        return planned[0], use(_survey_table(spec, planned, tools, on_crash))

    pairs = run_for_each(specs, work, parallelism, take_first(on_table))
    return tuple(result for _, result in pairs)


def _survey_table(
    spec: TableSpec, planned: Planned, tools: Tools, on_crash: OnCrash | None
) -> TableSurvey:
    """Return a table's survey; of an unreadable table, if its status cannot be found."""
    plan, state = planned
    open_storage, process, clock = tools
    try:
        storage = ReadOnlyStorage(open_storage(spec.path, spec.storage_options))
        writes = () if state is None else read_known_writes(storage, spec, state)
        held = lock.read_lock_status(spec, open_storage, process=process, clock=clock)
        status = table_status(spec, state, plan, lock=held, writes=writes)
    except Exception as error:  # noqa: BLE001 (one table must not stop the others)
        problem = report_crash(spec, error, on_crash)
        plan, state = replace(make_unreadable_plan(spec), error=problem), None
        status = table_status(spec, None, plan)
    return TableSurvey(spec=spec, plan=plan, status=status, state=state)
