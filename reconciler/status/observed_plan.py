"""Plan a table from a state that is read now; what is wrong with the table stays with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from reconciler.errors import BlockedError
from reconciler.plans.model import Note, TablePlan
from reconciler.plans.unreadable_table import OnCrash, make_unreadable_plan, report_problem

if TYPE_CHECKING:
    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.spec.model import TableSpec
    from reconciler.state.model import TableState


def plan_observed(
    spec: TableSpec,
    read: Callable[[], TableState],
    now: datetime,
    on_crash: OnCrash | None,
    insert: NextInsert | None,
) -> tuple[TablePlan, TableState | None]:
    """Return a table's plan and the state it was made from; no state if it cannot be read."""
    from reconciler.planners.compose import plan_table  # noqa: PLC0415 (numpy)

    try:
        state = read()
        return plan_table(spec, state, now, next_insert=insert), state
    except BlockedError as error:  # the state of the table cannot be trusted
        refusals = (Note("pendingRestore", str(error)),)
        return replace(make_unreadable_plan(spec), refusals=refusals), None
    except Exception as error:  # noqa: BLE001 (one table must not stop the others)
        problem = report_problem(spec, error, on_crash)
    return replace(make_unreadable_plan(spec), error=problem), None
