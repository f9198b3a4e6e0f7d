"""``reconciler options``: how Hudi's own writers are brought in line with a spec. Offline."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.bridge.model import Engine, Release
from reconciler.cli.options import ChangedSince, Env, Excluded, Labels, Names, Specs
from reconciler.cli.terminal import emit, say
from reconciler.errors import UnsupportedError
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.bridge.model import WriterOptions


class OptionsFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def options(  # noqa: PLR0913 (options of a command)
    specs: Specs,
    *,
    engine: Annotated[
        Engine, typer.Option("--for", help="Who writes: the form and names of the options.")
    ],
    hudi: Annotated[
        Release | None,
        typer.Option(
            "--hudi",
            help="The writers' Hudi (default: every one; options with a newer name have both).",
        ),
    ] = None,
    format: Annotated[  # noqa: A002 (the option's name)
        OptionsFormat, typer.Option("--format", help="What to write to standard output.")
    ] = OptionsFormat.TEXT,
    name: Names = None,
    exclude: Excluded = None,
    label: Labels = None,
    changed_since: ChangedSince = None,
    env: Env = None,
) -> int:
    """Print the options that bring writers with Hudi itself in line with specs, with the reasons.

    The text can be pasted: Python for spark, a properties file for streamer, SQL for sql and flink.
    Looks at no table. Exits with 1 where the given Hudi cannot write a declared table.
    """
    from reconciler.bridge.choose import writer_options  # noqa: PLC0415
    from reconciler.cli.selection import Selectors, selected_specs  # noqa: PLC0415
    from reconciler.render import writer_options as render  # noqa: PLC0415

    by = Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since)
    chosen = selected_specs(specs, by, env)
    found = [writer_options(spec, engine, hudi) for spec in chosen.tables]
    if format is OptionsFormat.JSON:
        from reconciler import world  # noqa: PLC0415

        emit(render.options_json(found, engine, tool=world.tool(), selection=chosen.selection))
    else:
        emit(render.options_text(found, engine))
    return _complain(found)


def _complain(found: list[WriterOptions]) -> int:
    """Say of which tables there are no options; the exit code."""
    for table in found:
        if table.error is not None:
            say(words.plain(f"{table.name}: {table.error}"), level="error", table=table.name)
    return UnsupportedError.exit_code if any(table.error is not None for table in found) else 0
