"""``reconciler status``: show table health and drift."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, assert_never

import typer

from reconciler import runtime
from reconciler.cli.environment import find_environment_name
from reconciler.cli.files import check_output_file, replace_file
from reconciler.cli.options import (
    Env,
    Now,
    Parallelism,
    PolicyOptions,
    Selectors,
    Specs,
    StatusFormat,
    StatusOutput,
    command,
    parse_now,
)
from reconciler.cli.table_work import work_on_tables
from reconciler.cli.terminal import find_terminal, print_result
from reconciler.cli.webhook import Webhook, WebhookReporter, open_webhook
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from reconciler.cli.selection import SelectedTables
    from reconciler.status.model import TableStatus

_TextFormat = Literal[StatusFormat.TEXT, StatusFormat.JSON, StatusFormat.PROMETHEUS]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOptions:
    """The options of the command, as given."""

    specs: Specs
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write the status (JSON) to this file; with --format prometheus or html the "
            "metrics or the page go there and nothing to standard output.",
        ),
    ] = None
    format: StatusOutput = StatusFormat.TEXT
    now: Now = None
    selectors: Selectors
    guards: PolicyOptions
    parallelism: Parallelism = None
    env: Env = None
    webhook: Webhook = None


@command
@runtime.small_pages()
def status(options: StatusOptions) -> int:
    """Show table health and drift: pending work, savepoints, and differences from specs.

    Exits with 1 if a table cannot be read, else with 0. Changes no table.
    """
    time = parse_now(options.now)
    hook = open_webhook(options.webhook, "status", options.env)
    if options.output is not None:
        check_output_file(options.output, "the status")

    from reconciler import api  # noqa: PLC0415 (slow to import)
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    chosen = select_specs(options.specs, options.selectors, options.env, guards=options.guards)
    if options.format is StatusFormat.HTML:
        return _write_page(chosen, time, options, hook)
    tables = work_on_tables(
        api.status, chosen.tables, "reading", now=time, parallelism=options.parallelism
    )
    render = _build_renderer(tables, chosen, time, options.env)
    is_metrics = options.format is StatusFormat.PROMETHEUS
    if options.output is not None:
        replace_file(options.output, render(options.format if is_metrics else StatusFormat.JSON))
    if options.output is None or not is_metrics:
        print_result(render(options.format))
    return _report_outcome(tables, hook)


def _report_outcome(tables: tuple[TableStatus, ...], hook: WebhookReporter) -> int:
    code = 1 if any(table.error is not None for table in tables) else 0
    hook.report_status(tables, code)
    return code


def _write_page(
    chosen: SelectedTables, now: datetime, options: StatusOptions, hook: WebhookReporter
) -> int:
    from reconciler.cli.html_pages import make_status_page  # noqa: PLC0415

    environment = find_environment_name(options.env)
    tables, page = make_status_page(
        chosen, now, parallelism=options.parallelism, environment=environment
    )
    if options.output is None:
        print_result(page)
    else:
        replace_file(options.output, page)
    return _report_outcome(tables, hook)


def _build_renderer(
    tables: tuple[TableStatus, ...], chosen: SelectedTables, now: datetime, env: str | None
) -> Callable[[_TextFormat], bytes]:
    from reconciler import runtime  # noqa: PLC0415
    from reconciler.render import prometheus, status  # noqa: PLC0415

    def render(format: _TextFormat) -> bytes:  # noqa: A002 (the option's name)
        match format:
            case StatusFormat.TEXT:
                text = status.status_text(tables, find_terminal(), selection=chosen.selection)
            case StatusFormat.PROMETHEUS:
                environment = find_environment_name(env)
                text = prometheus.status_prometheus(
                    tables, observed_at=now, environment=environment
                )
            case StatusFormat.JSON:
                at, tool = now.isoformat(), runtime.tool_name()
                return status.status_json(
                    tables, observed_at=at, tool=tool, selection=chosen.selection
                )
            case _:
                assert_never(format)
        return text.encode(errors="backslashreplace")

    return render
