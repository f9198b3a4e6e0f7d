"""``reconciler options``: print options that align Hudi's own writers with a spec. Offline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.options import Env, Selectors, ShortFormat, ShortOutput, Specs, command
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import UnsupportedError
from reconciler.hudi_engine.model import HudiRelease, WriterEngine
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.hudi_engine.model import WriterOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionsOptions:
    """The options of the command, as given."""

    specs: Specs
    engine: Annotated[
        WriterEngine, typer.Option("--for", help="Engine of the writers, for the form of options.")
    ]
    hudi: Annotated[
        HudiRelease | None,
        typer.Option(
            "--hudi",
            help="Hudi release of the writers (default: all; renamed options have both names).",
        ),
    ] = None
    format: ShortOutput = ShortFormat.TEXT
    selectors: Selectors
    env: Env = None


@command
def options(given: OptionsOptions) -> int:
    """Print the options that align Hudi's own writers with specs, with the reasons.

    The text can be pasted: Python for spark, a properties file for streamer, SQL for sql and flink.
    Reads no table. Exits with 1 if the given Hudi cannot write a declared table.
    """
    from reconciler.cli.selection import select_specs  # noqa: PLC0415
    from reconciler.hudi_engine.writer_options import make_writer_options  # noqa: PLC0415
    from reconciler.render import writer_options as render  # noqa: PLC0415

    engine, chosen = given.engine, select_specs(given.specs, given.selectors, given.env)
    tables = [make_writer_options(spec, engine, given.hudi) for spec in chosen.tables]
    if given.format is ShortFormat.JSON:
        from reconciler import runtime  # noqa: PLC0415

        tool = runtime.tool_name()
        print_result(render.options_json(tables, engine, tool=tool, selection=chosen.selection))
    else:
        print_result(render.options_text(tables, engine))
    return _report_missing(tables)


def _report_missing(options: list[WriterOptions]) -> int:
    """Report the tables without options and return the exit code."""
    for table in options:
        if table.error is not None:
            log_message(
                words.escape_text(f"{table.name}: {table.error}"), level="error", table=table.name
            )
    return UnsupportedError.exit_code if any(table.error is not None for table in options) else 0
