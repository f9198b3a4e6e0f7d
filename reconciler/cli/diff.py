"""``reconciler diff``: compare two saved plans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, assert_never

import typer

from reconciler import runtime
from reconciler.cli.files import read_plan
from reconciler.cli.options import Format, Full, OutputFormat, command
from reconciler.cli.terminal import find_terminal, print_result
from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass

_STDIN: Final = Path("-")
_CHANGES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """The options of the command, as given."""

    old: Annotated[
        Path, typer.Argument(metavar="OLD", help="A plan file, or - for standard input.")
    ]
    new: Annotated[
        Path, typer.Argument(metavar="NEW", help="The plan to compare with it; one may be -.")
    ]
    format: OutputFormat = Format.TEXT
    full: Full = False
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if the plans differ.")
    ] = False


@command
def diff(options: DiffOptions) -> int:
    """Compare two plans: which tables, steps and files are new, gone or the same, and why.

    Reads no table. Plans that decide the same about a table are equal there, whenever they were
    made.
    """
    from reconciler.plans.difference import compare_plans  # noqa: PLC0415 (slow to import)
    from reconciler.render import plan_difference  # noqa: PLC0415

    if options.old == options.new == _STDIN:
        raise UsageError("only one of the plans can be read from standard input")
    difference = compare_plans(read_plan(options.old), read_plan(options.new))
    match options.format:
        case Format.TEXT:
            text = plan_difference.difference_text(difference, find_terminal(), full=options.full)
            print_result(text)
        case Format.MARKDOWN:
            print_result(plan_difference.difference_markdown(difference))
        case Format.JSON:
            print_result(plan_difference.difference_json(difference, runtime.tool_name()))
        case _:
            assert_never(options.format)
    return _CHANGES if options.detailed_exitcode and not difference.is_empty else 0
