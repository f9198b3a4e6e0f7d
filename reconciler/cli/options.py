"""Arguments and options that several commands share, each with its one meaning."""

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
    list[Path], typer.Argument(metavar="SPEC_OR_DIR", help="Spec files, or folders of them.")
]
OutputFormat = Annotated[Format, typer.Option("--format", help="What to write to standard output.")]
StatusOutput = Annotated[
    StatusFormat, typer.Option("--format", help="What to write to standard output.")
]
Full = Annotated[bool, typer.Option("--full", help="Name every file in the text.")]
Now = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Plan as if it were this time, as 2026-01-31T04:00:00+00:00 (default: the present).",
    ),
]
#: reading waits for the store most of the time; a local disk gains nothing and loses nothing
TABLES_AT_ONCE: Final = 4
Parallelism = Annotated[
    int, typer.Option("--parallelism", metavar="N", min=1, help="Tables at a time.")
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="GLOB",
        help="Only tables whose name matches; repeatable.",
        autocompletion=table_names,
    ),
]
Excluded = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="GLOB",
        help="No tables whose name matches; repeatable.",
        autocompletion=table_names,
    ),
]
ChangedSince = Annotated[
    str | None,
    typer.Option(
        "--changed-since",
        metavar="REF",
        help="Only tables whose spec, or a policy over it, is not as it was where HEAD and this "
        "branch, tag or commit of git parted.",
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
        help="Where tables are: environments/NAME.yaml beside the specs or above them, or a file.",
        autocompletion=environment_names,
    ),
]
