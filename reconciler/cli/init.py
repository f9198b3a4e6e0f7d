"""``reconciler init``: write a first spec, from scratch or from existing tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.options import TABLES_AT_ONCE, command
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import AlreadyExistsError, NotFoundError, StorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions:
    """The options of the command, as given."""

    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Existing table, folder or URL to search for tables, or glob "
            "('s3://lake/*/orders*'); repeatable.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write to this new file; for several tables, to one file each in this folder.",
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option("--depth", metavar="N", min=0, help="Search at most N folders below a PATH."),
    ] = None
    is_relative: Annotated[
        bool, typer.Option("--relative", help="Write local paths relative to the spec file.")
    ] = False
    environment: Annotated[
        str | None,
        typer.Option(
            "--env",
            metavar="NAME",
            help="Write locations to environments/NAME.yaml beside or above the specs (or to a "
            "file), not to every spec.",
        ),
    ] = None
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone",
            metavar="ZONE",
            help="Time zone of the writers, such as Europe/Berlin, for tables that do not record "
            "it.",
        ),
    ] = None
    parallelism: Annotated[
        int,
        typer.Option(
            "--parallelism", metavar="N", min=1, help="Number of tables to read in parallel."
        ),
    ] = TABLES_AT_ONCE


@command
def init(options: InitOptions) -> int:
    """Write a commented spec. With --from, write specs whose plans are empty for their tables."""
    output = options.output
    if output is not None and output.exists() and not output.is_dir():
        raise AlreadyExistsError(str(output), "already exists and is not overwritten")
    if not options.paths:
        from reconciler.adopt.spec_text import SKELETON  # noqa: PLC0415

        return _print_or_write(SKELETON, output)
    from reconciler.cli.adopt_tables import adopt_tables  # noqa: PLC0415

    text, code = adopt_tables(options, options.paths)
    return code if text is None else _print_or_write(text, output)


def _print_or_write(text: str, output: Path | None) -> int:
    """Print one spec, or write it to a new file."""
    if output is None:
        print_result(text)
        return 0
    if output.is_dir():
        raise AlreadyExistsError(str(output), "is a folder; name a file")
    if not output.parent.is_dir():
        raise NotFoundError(str(output.parent), "does not exist; create the folder first")
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(str(output), error.strerror or str(error)) from None
    log_message(f"wrote {output}; read its comments, then run `reconciler plan {output}`")
    return 0
