"""``reconciler status``: how tables are, and what hangs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from reconciler.cli.environment import name_of
from reconciler.cli.looking import look
from reconciler.cli.moment import moment
from reconciler.cli.options import (
    TABLES_AT_ONCE,
    ChangedSince,
    Env,
    Excluded,
    Labels,
    Names,
    Now,
    Parallelism,
    Specs,
    StatusFormat,
    StatusOutput,
)
from reconciler.cli.targets import check_target, write_whole
from reconciler.cli.terminal import emit, wants_color
from reconciler.cli.webhook import Webhook, open_hook

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from reconciler.cli.selection import Selected
    from reconciler.status import TableStatus


def status(  # noqa: PLR0913 (options of a command)
    specs: Specs,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the status (JSON) to this file too; with --format prometheus the metrics, "
            "and nothing to standard output.",
        ),
    ] = None,
    format: StatusOutput = StatusFormat.TEXT,  # noqa: A002 (the option's name)
    now: Now = None,
    name: Names = None,
    exclude: Excluded = None,
    label: Labels = None,
    changed_since: ChangedSince = None,
    parallelism: Parallelism = TABLES_AT_ONCE,
    env: Env = None,
    webhook: Webhook = None,
) -> int:
    """Say how tables are. In sync or not, healthy or not, what hangs, what savepoints pin.

    Exits with 1 when a table cannot be read, else with 0; writes nothing to any table.
    """
    at = moment(now)
    hook = open_hook(webhook, "status", env)
    if output is not None:
        check_target(output, "the status")

    from reconciler.cli.selection import Selectors, selected_specs  # noqa: PLC0415

    selectors = Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since)
    chosen = selected_specs(specs, selectors, env)
    tables = look(chosen.tables, at, parallelism)
    as_format = _renderer(tables, chosen, at, env)
    if output is not None:
        is_metrics = format is StatusFormat.PROMETHEUS
        write_whole(output, as_format(format if is_metrics else StatusFormat.JSON))
    if output is None or format is not StatusFormat.PROMETHEUS:
        emit(as_format(format))
    code = 1 if any(table.error is not None for table in tables) else 0
    hook.tell_status(tables, code)
    return code


def _renderer(
    tables: tuple[TableStatus, ...], chosen: Selected, at: datetime, env: str | None
) -> Callable[[StatusFormat], bytes]:
    from reconciler import world  # noqa: PLC0415
    from reconciler.render import prometheus, status  # noqa: PLC0415

    def rendered(format: StatusFormat) -> bytes:  # noqa: A002 (the option's name)
        match format:
            case StatusFormat.TEXT:
                text = status.status_text(tables, color=wants_color(), selection=chosen.selection)
                return text.encode(errors="backslashreplace")
            case StatusFormat.JSON:
                return status.status_json(
                    tables,
                    observed_at=at.isoformat(),
                    tool=world.tool(),
                    selection=chosen.selection,
                )
            case StatusFormat.PROMETHEUS:
                return prometheus.status_prometheus(
                    tables, observed_at=at, environment=name_of(env)
                ).encode()
            case _:
                assert_never(format)

    return rendered
