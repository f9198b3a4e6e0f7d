"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from reconciler.cli.completion import environment_names, label_values, table_names


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class StatusFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    PROMETHEUS = "prometheus"


Specs = Annotated[
    list[Path],
    typer.Argument(metavar="SPEC_OR_DIR", help="Spec files, or folders of spec files."),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="Format of standard output.")]
StatusOutput = Annotated[StatusFormat, typer.Option("--format", help="Format of standard output.")]
Full = Annotated[bool, typer.Option("--full", help="Show every file, with its file id.")]
Now = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Plan as of this time, such as 2026-01-31T04:00:00+00:00 (default: now).",
    ),
]
#: reading mostly waits for the store; on a local disk the number makes no difference
TABLES_AT_ONCE: Final = 4
Parallelism = Annotated[
    int,
    typer.Option("--parallelism", metavar="N", min=1, help="Number of tables to plan in parallel."),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="GLOB",
        help="Only tables whose name matches the glob; repeatable.",
        autocompletion=table_names,
    ),
]
Excluded = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="GLOB",
        help="Skip tables whose name matches the glob; repeatable.",
        autocompletion=table_names,
    ),
]
ChangedSince = Annotated[
    str | None,
    typer.Option(
        "--changed-since",
        metavar="REF",
        help="Only tables whose spec or policies changed since HEAD branched off from REF (a "
        "branch, tag or commit).",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        "-l",
        metavar="LABEL=VALUE",
        help="Only tables with this label; repeatable.",
        autocompletion=label_values,
    ),
]
Env = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help="Environment with the tables' locations: environments/NAME.yaml beside or above the "
        "specs, or a file.",
        autocompletion=environment_names,
    ),
]
