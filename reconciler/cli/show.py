"""``reconciler show``: render a saved plan, however old it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.environment import find_environment_name
from reconciler.cli.files import read_plan
from reconciler.cli.options import Full, PlanFormat, PlanOutput
from reconciler.cli.plan import render_plan
from reconciler.cli.terminal import print_result


def show(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", help="A plan file, or - for standard input.")
    ],
    *,
    format: PlanOutput = PlanFormat.TEXT,  # noqa: A002 (the option's name)
    full: Full = False,
    env: Annotated[
        str | None,
        typer.Option("--env", metavar="NAME", help="Environment to name in Markdown."),
    ] = None,
) -> int:
    """Show a saved plan. Reads no table, so an old plan can be shown too."""
    print_result(
        render_plan(
            read_plan(plan), format, full=full, file=plan, environment=find_environment_name(env)
        )
    )
    return 0
