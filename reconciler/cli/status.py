"""``reconciler status``: how tables are, and what hangs."""

from __future__ import annotations

from reconciler.cli.failures import explain_crash
from reconciler.cli.moment import moment
from reconciler.cli.options import (
    ChangedSince,
    Env,
    Excluded,
    Labels,
    Names,
    Now,
    Specs,
    StatusFormat,
    StatusOutput,
)
from reconciler.cli.terminal import emit, progress, wants_color


def status(  # noqa: PLR0913 (options of a command)
    specs: Specs,
    *,
    format: StatusOutput = StatusFormat.TEXT,  # noqa: A002 (the option's name)
    now: Now = None,
    name: Names = None,
    exclude: Excluded = None,
    label: Labels = None,
    changed_since: ChangedSince = None,
    env: Env = None,
) -> int:
    """Say how tables are. In sync or not, what is pending or stuck, what savepoints pin.

    Exits with 1 when a table cannot be read, else with 0; writes nothing.
    """
    at = moment(now)

    from reconciler import api  # noqa: PLC0415 (heavy)
    from reconciler.cli.environment import check_variables  # noqa: PLC0415
    from reconciler.cli.selection import Selectors, selected_specs  # noqa: PLC0415
    from reconciler.render.status import status_json, status_text  # noqa: PLC0415

    chosen = selected_specs(
        specs,
        Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since),
        env,
    )
    check_variables(chosen.tables)
    with progress("looking", len(chosen.tables), "tables") as tell:
        tables = api.status(
            chosen.tables,
            now=at,
            on_table=lambda table: tell(1, table.name, table.name),
            on_crash=lambda spec, error: explain_crash(spec.name, error),
        )
    if format is StatusFormat.JSON:
        emit(status_json(tables, observed_at=at.isoformat(), selection=chosen.selection))
    else:
        emit(status_text(tables, color=wants_color(), selection=chosen.selection))
    return 1 if any(table.error is not None for table in tables) else 0
