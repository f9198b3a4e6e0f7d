"""``reconciler init``: write a first spec, from scratch or from existing tables."""

from __future__ import annotations

from pathlib import Path

from reconciler.cli.init_options import InitOptions
from reconciler.cli.options import command
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import AlreadyExistsError, NotFoundError, StorageError, UsageError


@command
def init(options: InitOptions) -> int:
    """Write a commented spec. With --from, write specs whose plans are empty for their tables."""
    output = options.output
    if output is not None and output.exists() and not output.is_dir():
        raise AlreadyExistsError(str(output), "already exists and is not overwritten")
    if not options.paths:
        if options.event_logs is not None:
            raise UsageError("--from-event-logs: name the tables with --from, whose specs it fills")
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
