"""``reconciler write``: write the rows of files into the table of a spec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.environment import find_spark_options
from reconciler.cli.options import Env, Selectors, ShortFormat, ShortOutput, SparkOptions, command
from reconciler.cli.spark import parse_spark_settings
from reconciler.errors import UsageError
from reconciler.writer.sources.formats import SourceFormat


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
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the table, if there are several."),
    ] = None
    format: ShortOutput = ShortFormat.TEXT
    env: Env = None
    spark: SparkOptions


@command
def write(options: WriteOptions) -> int:
    """Write rows into a table, all or none. The table is created if it does not exist.

    Small files are filled up to files.target of the spec. Needs no Hudi jar.
    """
    given = parse_spark_settings(options.spark)
    reader_options = dict(_parse_option(text) for text in options.source_options or ())

    from reconciler.cli.run_write import write_files  # noqa: PLC0415 (slow)
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    selectors = Selectors(names=None if options.name is None else [options.name])
    specs = select_specs([options.spec], selectors, environment=options.env).tables
    if len(specs) != 1:
        raise UsageError(
            f"{options.spec}: declares {len(specs)} tables; a write takes one: "
            "choose it with --name"
        )
    settings = find_spark_options(options.env, [options.spec], given)
    write_files(specs[0], options, reader_options, settings)
    return 0


def _parse_option(text: str) -> tuple[str, str]:
    """Return the key and value of a ``--source-option``.

    >>> _parse_option("sep=;")
    ('sep', ';')
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"--source-option {text}: write it as key=value")
    return key, value
