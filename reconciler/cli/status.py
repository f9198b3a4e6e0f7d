"""``reconciler status``: show table health and drift."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from reconciler.cli.environment import find_environment_name
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
from reconciler.cli.output_files import check_output_file, replace_file
from reconciler.cli.parse_now import parse_now
from reconciler.cli.table_status import read_statuses
from reconciler.cli.terminal import print_result, terminal_width, wants_color
from reconciler.cli.webhook import Webhook, open_webhook

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from reconciler.cli.selection import SelectedTables
    from reconciler.status.model import TableStatus


def status(  # noqa: PLR0913 (options of a command)
    specs: Specs,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write the status (JSON) to this file; with --format prometheus the metrics "
            "go there and nothing to standard output.",
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
    """Show table health and drift: pending work, savepoints, and differences from specs.

    Exits with 1 if a table cannot be read, else with 0. Changes no table.
    """
    time = parse_now(now)
    hook = open_webhook(webhook, "status", env)
    if output is not None:
        check_output_file(output, "the status")

    from reconciler.cli.selection import Selectors, select_specs  # noqa: PLC0415

    selectors = Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since)
    chosen = select_specs(specs, selectors, env)
    tables = read_statuses(chosen.tables, time, parallelism)
    as_format = _build_renderer(tables, chosen, time, env)
    if output is not None:
        is_metrics = format is StatusFormat.PROMETHEUS
        replace_file(output, as_format(format if is_metrics else StatusFormat.JSON))
    if output is None or format is not StatusFormat.PROMETHEUS:
        print_result(as_format(format))
    code = 1 if any(table.error is not None for table in tables) else 0
    hook.report_status(tables, code)
    return code


def _build_renderer(
    tables: tuple[TableStatus, ...], chosen: SelectedTables, now: datetime, env: str | None
) -> Callable[[StatusFormat], bytes]:
    from reconciler import runtime  # noqa: PLC0415
    from reconciler.render import prometheus, status  # noqa: PLC0415

    def rendered(format: StatusFormat) -> bytes:  # noqa: A002 (the option's name)
        match format:
            case StatusFormat.TEXT:
                text = status.status_text(
                    tables, color=wants_color(), width=terminal_width(), selection=chosen.selection
                )
                return text.encode(errors="backslashreplace")
            case StatusFormat.JSON:
                return status.status_json(
                    tables,
                    observed_at=now.isoformat(),
                    tool=runtime.tool_name(),
                    selection=chosen.selection,
                )
            case StatusFormat.PROMETHEUS:
                return prometheus.status_prometheus(
                    tables, observed_at=now, environment=find_environment_name(env)
                ).encode()
            case _:
                assert_never(format)

    return rendered
