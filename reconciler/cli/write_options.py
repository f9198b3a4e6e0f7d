"""The options of ``reconciler write``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.options import (
    Env,
    Executor,
    ExecutorOption,
    PolicyOptions,
    ShortFormat,
    ShortOutput,
    SparkOptions,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.writer.sources.formats import SourceFormat


class Service(StrEnum):
    """A table service that runs after a write."""

    RECONCILE = "reconcile"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of the command, as given."""

    spec: Annotated[
        Path,
        typer.Argument(metavar="SPEC", help="Spec of the table; with --name a folder of specs."),
    ]
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE", help="Files or folders with rows; none for delete-partition."
        ),
    ] = None
    operation: Annotated[
        str,
        typer.Option(
            "--operation",
            metavar="NAME",
            help="Operation: upsert, insert, delete, bulk-insert, insert-overwrite, "
            "insert-overwrite-table or delete-partition.",
        ),
    ] = "upsert"
    source_format: Annotated[
        SourceFormat | None,
        typer.Option(
            "--source-format", help="Format of the sources (default: by their file names)."
        ),
    ] = None
    source_options: Annotated[
        list[str] | None,
        typer.Option(
            "--source-option",
            metavar="KEY=VALUE",
            help="Option of Spark's reader of the format, such as sep=';'; repeatable.",
        ),
    ] = None
    partitions: Annotated[
        list[str] | None,
        typer.Option(
            "--partition", metavar="PATH", help="Partition for delete-partition; repeatable."
        ),
    ] = None
    dedupe: Annotated[
        bool, typer.Option("--dedupe", help="With insert, write one row per key.")
    ] = False
    fill_missing: Annotated[
        bool,
        typer.Option("--fill-missing", help="Write null to columns that the rows do not have."),
    ] = False
    then: Annotated[
        Service | None,
        typer.Option(
            "--then",
            help="Service after the write: reconcile plans the table and applies the plan.",
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the table, if there are several."),
    ] = None
    format: ShortOutput = ShortFormat.TEXT
    env: Env = None
    guards: PolicyOptions
    executor: ExecutorOption = Executor.AUTO
    spark: SparkOptions
