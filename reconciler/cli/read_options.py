"""The options of ``reconciler read``, and what they ask to read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler.cli.options import Env, Executor, ExecutorOption, SparkOptions, SparkSettings
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from datetime import tzinfo

    from reconciler.reader.request import ReadArguments
    from reconciler.storage.api import Storage


#: rows to show as text if no limit is given
DEFAULT_ROW_LIMIT: Final = 20


class RowFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of the command, as given."""

    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="Path or URL of the table; with --specs its name."),
    ]
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Only rows that match this condition."),
    ] = None
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="INSTANT",
            help="Read the table as of an instant of its timeline, or as of a time in its zone "
            "such as '2026-01-31 04:00:00'.",
        ),
    ] = None
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", metavar="A,B", help="Only these columns; repeatable."),
    ] = None
    read_optimized: Annotated[
        bool, typer.Option("--read-optimized", help="Skip log files: faster, but older rows.")
    ] = False
    incremental: Annotated[
        str | None,
        typer.Option(
            "--incremental",
            metavar="BEGIN..END",
            help="Only rows written after BEGIN and up to END; BEGIN.. reads up to the newest.",
        ),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=0,
            help=f"Number of rows at most (default: {DEFAULT_ROW_LIMIT} as text, else all).",
        ),
    ] = None
    format: Annotated[
        RowFormat,
        typer.Option("--format", help="Format of standard output; json is one object a line."),
    ] = RowFormat.TEXT
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which files would be read, and read no rows.")
    ] = False
    no_skipping: Annotated[
        bool,
        typer.Option("--no-skipping", help="Do not use the index to skip files."),
    ] = False
    specs: Annotated[
        list[Path] | None,
        typer.Option(
            "--specs", metavar="SPEC_OR_DIR", help="Specs that name the table; repeatable."
        ),
    ] = None
    env: Env = None
    executor: ExecutorOption = Executor.AUTO
    spark: SparkOptions

    @property
    def row_limit(self) -> int | None:
        """The number of rows to print at most, None for all."""
        is_default = self.limit is None and self.format is RowFormat.TEXT
        return DEFAULT_ROW_LIMIT if is_default else self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRead:
    """A table and what to read of it.

    ``zone``: the timeline's zone, if a spec gives it. ``index``: None if the index is not used.
    """

    storage: Storage
    request: ReadArguments
    zone: tzinfo | None
    index: Storage | None
    spark: SparkSettings
