"""Reading the status of tables with a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.cli.error_reports import report_crash
from reconciler.cli.terminal import show_progress

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from reconciler.spec.model import TableSpec
    from reconciler.status.model import TableStatus


def read_statuses(
    specs: Sequence[TableSpec], now: datetime, parallelism: int
) -> tuple[TableStatus, ...]:
    """Return the status of every table, in the order of the specs."""
    from reconciler import api  # noqa: PLC0415 (heavy)
    from reconciler.cli.environment import check_variables  # noqa: PLC0415

    check_variables(specs)
    with show_progress("reading", len(specs), "tables") as report:
        return api.status(
            specs,
            now=now,
            on_table=lambda table: report(1, table.name, table.name),
            on_crash=lambda spec, error: report_crash(spec.name, error),
            parallelism=parallelism,
        )
