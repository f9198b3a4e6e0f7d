"""``reconciler write``: write the rows of files into the table of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.options import Env
from reconciler.cli.spark import parse_spark_settings
from reconciler.errors import UsageError


class RowsFormat(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    AVRO = "avro"


class WriteFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def write(  # noqa: PLR0913 (options of a command)
    spec: Annotated[
        Path,
        typer.Argument(metavar="SPEC", help="Spec of the table; with --name a folder of specs."),
    ],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE", help="Files or folders with rows; none for delete-partition."
        ),
    ] = None,
    *,
    operation: Annotated[
        str,
        typer.Option(
            "--operation",
            metavar="NAME",
            help="Operation: upsert, insert, delete, bulk-insert, insert-overwrite, "
            "insert-overwrite-table or delete-partition.",
        ),
    ] = "upsert",
    source_format: Annotated[
        RowsFormat | None,
        typer.Option(
            "--source-format", help="Format of the sources (default: by their file names)."
        ),
    ] = None,
    source_options: Annotated[
        list[str] | None,
        typer.Option(
            "--source-option",
            metavar="KEY=VALUE",
            help="Option of Spark's reader of the format, such as sep=';'; repeatable.",
        ),
    ] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option(
            "--partition", metavar="PATH", help="Partition for delete-partition; repeatable."
        ),
    ] = None,
    dedupe: Annotated[
        bool, typer.Option("--dedupe", help="With insert, write one row per key.")
    ] = False,
    fill_missing: Annotated[
        bool,
        typer.Option("--fill-missing", help="Write null to columns that the rows do not have."),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the table, if there are several."),
    ] = None,
    format: Annotated[  # noqa: A002 (the option's name)
        WriteFormat,
        typer.Option("--format", help="Format of standard output."),
    ] = WriteFormat.TEXT,
    env: Env = None,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Spark's master (default: local[*])."),
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option("--spark-conf", metavar="KEY=VALUE", help="Setting of Spark; repeatable."),
    ] = None,
) -> int:
    """Write rows into a table, all or none. The table is created if it does not exist.

    Small files are filled up to files.target of the spec. Needs no Hudi jar.
    """
    settings: Mapping[str, str] = parse_spark_settings(spark_conf)
    options = dict(_parse_option(text) for text in source_options or ())

    from reconciler.cli.environment import find_spark_options  # noqa: PLC0415
    from reconciler.cli.run_write import WriteOptions, write_files  # noqa: PLC0415 (slow)
    from reconciler.cli.selection import Selectors, select_specs  # noqa: PLC0415

    selectors = Selectors(names=None if name is None else [name])
    found = select_specs([spec], selectors, environment=env).tables
    if len(found) != 1:
        raise UsageError(
            f"{spec}: declares {len(found)} tables; a write takes one: choose it with --name"
        )
    master, settings = find_spark_options(env, [spec], master, settings)
    write_files(
        WriteOptions(
            spec=found[0],
            sources=tuple(sources or ()),
            operation=operation,
            format=None if source_format is None else source_format.value,
            options=options,
            partitions=None if partitions is None else tuple(partitions),
            dedupe=dedupe,
            fill_missing=fill_missing,
            as_json=format is WriteFormat.JSON,
            master=master,
            settings=settings,
        )
    )
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
