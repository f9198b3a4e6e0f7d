"""``reconciler init``: first specs, of nothing or of live tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import AlreadyExistsError, NotFoundError, StorageError


def init(  # noqa: PLR0913 (options of a command)
    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A live table, a folder or URL below which tables are searched, or a glob "
            "('s3://lake/*/orders*'); repeatable.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to this new file instead; of several tables: one file each in this folder.",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option("--depth", min=0, help="Search at most so many folders below a PATH."),
    ] = None,
    relative: Annotated[
        bool, typer.Option("--relative", help="Write local paths relative to the spec.")
    ] = False,
    env: Annotated[
        str | None,
        typer.Option(
            "--env",
            metavar="NAME",
            help="Say where tables are in environments/NAME.yaml beside the specs or above them "
            "(or a file), instead of in every spec.",
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone",
            metavar="ZONE",
            help="The writers' zone, for tables that do not tell theirs; as Europe/Berlin.",
        ),
    ] = None,
    parallelism: Annotated[
        int, typer.Option("--parallelism", min=1, help="How many tables are read at a time.")
    ] = 4,
) -> int:
    """Write a commented spec. With --from, of live tables, such that its plan is empty."""
    if output is not None and output.exists() and not output.is_dir():
        raise AlreadyExistsError(str(output), "exists already and is not overwritten")
    if not paths:
        from reconciler.adopt.spec_text import SKELETON  # noqa: PLC0415

        return _print_or_write(SKELETON, output)
    from reconciler.cli.adopt_tables import InitOptions, adopt_tables  # noqa: PLC0415

    wanted = InitOptions(
        paths=paths,
        output=output,
        depth=depth,
        is_relative=relative,
        environment=env,
        timezone=timezone,
        parallelism=parallelism,
    )
    text, code = adopt_tables(wanted)
    return code if text is None else _print_or_write(text, output)


def _print_or_write(text: str, output: Path | None) -> int:
    """Print one spec, or write it to a new file."""
    if output is None:
        print_result(text)
        return 0
    if output.is_dir():
        raise AlreadyExistsError(str(output), "is a folder; name the file to write")
    if not output.parent.is_dir():
        raise NotFoundError(str(output.parent), "is not there; make the folder first")
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(str(output), error.strerror or str(error)) from None
    log_message(f"wrote {output}; read its comments, then `reconciler plan {output}`")
    return 0
