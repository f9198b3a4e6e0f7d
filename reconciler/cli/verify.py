"""``reconciler verify``: compare the metadata table with the folders and files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, assert_never

import typer

from reconciler.cli.files import check_output_file, replace_file
from reconciler.cli.options import (
    Env,
    Now,
    Parallelism,
    PolicyOptions,
    Selectors,
    ShortFormat,
    ShortOutput,
    Specs,
    command,
    parse_now,
)
from reconciler.cli.table_work import work_on_tables
from reconciler.cli.terminal import find_terminal, print_result
from reconciler.errors import UsageError, choose_worst_code
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from reconciler.cli.selection import SelectedTables
    from reconciler.verification.table_verification import TableVerification

_PERCENT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """The options of the command, as given."""

    specs: Specs
    sample: Annotated[
        str,
        typer.Option(
            "--sample",
            metavar="SHARE",
            help="Share of the file groups whose footers and keys are read, such as 1%; the "
            "listing of files is always compared whole.",
        ),
    ] = "100%"
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Also write the result (JSON) to this file."
        ),
    ] = None
    format: ShortOutput = ShortFormat.TEXT
    full: Annotated[bool, typer.Option("--full", help="Show every difference.")] = False
    now: Now = None
    selectors: Selectors
    guards: PolicyOptions
    parallelism: Parallelism = None
    env: Env = None


@command
def verify(options: VerifyOptions) -> int:
    """Compare the metadata table and the index with folders, footers and keys. Changes no table.

    Exits with 0 if nothing differs, with 3 if something does, with 1 if a table cannot be read.
    """
    time, sample = parse_now(options.now), _parse_sample(options.sample)
    if options.output is not None:
        check_output_file(options.output, "the result")

    from reconciler import api  # noqa: PLC0415 (slow to import)
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    chosen = select_specs(options.specs, options.selectors, options.env, guards=options.guards)
    tables = work_on_tables(
        api.verify,
        chosen.tables,
        "verifying",
        now=time,
        sample=sample,
        parallelism=options.parallelism,
    )
    render = _build_renderer(tables, chosen, time, sample, full=options.full)
    if options.output is not None:
        replace_file(options.output, render(ShortFormat.JSON))
    print_result(render(options.format))
    return choose_worst_code(table.exit_code for table in tables)


def _parse_sample(text: str) -> float:
    """Return the share of a percentage; UsageError if the text is none.

    >>> _parse_sample("1%"), _parse_sample("100%")
    (0.01, 1.0)
    """
    number = text.removesuffix("%")
    try:
        percent = float(number) if number.replace(".", "", 1).isdigit() else 0.0
    except ValueError:
        percent = 0.0
    if not text.endswith("%") or not 0 < percent <= _PERCENT:
        raise UsageError(
            f"--sample {text}: expected a percentage greater than 0 and at most 100, such as 1%"
        )
    return percent / _PERCENT


def _build_renderer(
    tables: tuple[TableVerification, ...],
    chosen: SelectedTables,
    now: datetime,
    sample: float,
    *,
    full: bool,
) -> Callable[[ShortFormat], bytes]:
    from reconciler import runtime  # noqa: PLC0415
    from reconciler.render import verification  # noqa: PLC0415

    def render(format: ShortFormat) -> bytes:  # noqa: A002 (the option's name)
        match format:
            case ShortFormat.TEXT:
                text = verification.verification_text(
                    tables, find_terminal(), selection=chosen.selection, full=full
                )
                return text.encode(errors="backslashreplace")
            case ShortFormat.JSON:
                return verification.verification_json(
                    tables,
                    created_at=now.isoformat(),
                    tool=runtime.tool_name(),
                    sample=sample,
                    selection=chosen.selection,
                )
            case _:
                assert_never(format)

    return render
