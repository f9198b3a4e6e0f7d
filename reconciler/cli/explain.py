"""``reconciler explain``: say why a file, an instant or a partition stays or goes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from reconciler import runtime
from reconciler.cli.environment import check_variables
from reconciler.cli.options import (
    Env,
    Now,
    Selectors,
    ShortFormat,
    ShortOutput,
    command,
    parse_now,
)
from reconciler.cli.terminal import find_terminal, print_result
from reconciler.errors import ReconcilerError, quote_value
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """The options of the command, as given."""

    spec: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC_OR_DIR", help="Spec of the table, or specs that selectors choose from."
        ),
    ]
    name: Annotated[
        str,
        typer.Argument(
            metavar="FILE|INSTANT|PARTITION",
            help="Path or name of a file, id of a file group, time of an instant, or a partition.",
        ),
    ]
    format: ShortOutput = ShortFormat.TEXT
    now: Now = None
    selectors: Selectors
    env: Env = None


@command
def explain(options: ExplainOptions) -> int:
    """Say why a file, an instant or a partition of a table stays or goes. Changes no table.

    The reasons are those of the plan that is made now: retention, savepoints, readers, pending work
    and the steps that take it.
    """
    from reconciler import api  # noqa: PLC0415 (slow to import)
    from reconciler.cli.selection import select_one_spec  # noqa: PLC0415
    from reconciler.render.answers import answers_json, answers_text  # noqa: PLC0415

    moment = parse_now(options.now)
    spec = select_one_spec([options.spec], options.selectors, options.env, "explain")
    check_variables([spec])
    search = api.explain(spec, _locate_name(options.name), now=moment)
    if not search.answers:
        near = f"; near: {', '.join(search.near)}" if search.near else "; check the name"
        what = quote_value(options.name)
        raise ReconcilerError(f"{spec.name}: no file, instant or partition is named {what}{near}")
    if options.format is ShortFormat.TEXT:
        print_result(answers_text(search, find_terminal()))
        return 0
    at, tool = moment.isoformat(), runtime.tool_name()
    print_result(answers_json(search, table=spec.name, path=spec.path, created_at=at, tool=tool))
    return 0


def _locate_name(name: str) -> str:
    """Return the absolute path of a name that is a path from here; other names as they are."""
    is_path = "/" in name and "://" not in name and os.path.lexists(name)
    return os.path.abspath(name) if is_path else name  # noqa: PTH100 (links stay)
