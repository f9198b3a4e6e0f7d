"""``reconciler read``: print the rows of a table, or which files a read touches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.options import Env
from reconciler.cli.read_options import DEFAULT_ROW_LIMIT, ReadOptions, RowFormat
from reconciler.cli.spark import parse_spark_settings
from reconciler.errors import UsageError
from reconciler.render import words

if TYPE_CHECKING:
    from datetime import tzinfo

    from reconciler.reader.request import ReadArguments
    from reconciler.storage.api import Storage


def read(  # noqa: PLR0913 (options of a command)
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="Path or URL of the table; with --specs its name."),
    ],
    *,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Only rows that match this condition."),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="INSTANT",
            help="Read the table as of an instant of its timeline, or as of a time in its zone "
            "such as '2026-01-31 04:00:00'.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", metavar="A,B", help="Only these columns; repeatable."),
    ] = None,
    read_optimized: Annotated[
        bool, typer.Option("--read-optimized", help="Skip log files: faster, but older rows.")
    ] = False,
    incremental: Annotated[
        str | None,
        typer.Option(
            "--incremental",
            metavar="BEGIN..END",
            help="Only rows written after BEGIN and up to END; BEGIN.. reads up to the newest.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=0,
            help=f"Number of rows at most (default: {DEFAULT_ROW_LIMIT} as text, else all).",
        ),
    ] = None,
    format: Annotated[  # noqa: A002 (the option's name)
        RowFormat,
        typer.Option("--format", help="Format of standard output; json is one object a line."),
    ] = RowFormat.TEXT,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which files would be read, and read no rows.")
    ] = False,
    no_skipping: Annotated[
        bool,
        typer.Option("--no-skipping", help="Do not use the index to skip files."),
    ] = False,
    specs: Annotated[
        list[Path] | None,
        typer.Option(
            "--specs", metavar="SPEC_OR_DIR", help="Specs that name the table; repeatable."
        ),
    ] = None,
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
    """Print the rows of a table. Needs no Hudi jar and changes nothing.

    Rows have no order. --format json and csv print all of them.
    """
    if env is not None and not specs:
        raise UsageError("--env needs --specs: an environment locates the tables of specs")
    if explain and format is RowFormat.CSV:
        raise UsageError("--explain --format csv: choose text or json")
    settings: Mapping[str, str] = parse_spark_settings(spark_conf)
    request = _build_request(as_of, columns, incremental, read_optimized=read_optimized)

    from reconciler.cli.environment import find_spark_options  # noqa: PLC0415
    from reconciler.cli.run_read import print_explanation, print_rows  # noqa: PLC0415 (slow)

    storage, zone = _open_table(table, specs, env)
    master, settings = find_spark_options(env, specs or [Path()], master, settings)
    options = ReadOptions(
        storage=storage,
        request=request,
        zone=zone,
        where=where,
        limit=limit,
        format=format,
        master=master,
        settings=settings,
        uses_index=not no_skipping,
    )
    if explain:
        print_explanation(options)
    else:
        print_rows(options)
    return 0


def _build_request(
    as_of: str | None,
    columns: list[str] | None,
    incremental: str | None,
    *,
    read_optimized: bool,
) -> ReadArguments:
    """Return the read that the options describe. Its times are not resolved to instants yet."""
    from reconciler.reader.request import ReadArguments  # noqa: PLC0415

    names = None if columns is None else _split_columns(columns)
    if incremental is None:
        kind = "readOptimized" if read_optimized else "snapshot"
        return ReadArguments(kind=kind, as_of=as_of, columns=names)
    if read_optimized or as_of is not None:
        other = "--read-optimized" if read_optimized else "--as-of"
        raise UsageError(f"--incremental and {other} contradict each other; give one of them")
    begin, dots, end = incremental.partition("..")
    if not dots or not begin:
        raise UsageError(
            f"--incremental {incremental}: write it as BEGIN..END or BEGIN.. "
            "(000 is before the first write)"
        )
    return ReadArguments(kind="incremental", begin=begin, end=end or None, columns=names)


def _split_columns(texts: list[str]) -> tuple[str, ...]:
    """Return the columns of every ``--columns``.

    >>> _split_columns(["a, b", "c"])
    ('a', 'b', 'c')
    """
    names = tuple(name.strip() for text in texts for name in text.split(","))
    if "" in names:
        raise UsageError(f"--columns {','.join(texts)}: a name is empty; remove the extra comma")
    return names


def _open_table(
    table: str, specs: list[Path] | None, env: str | None
) -> tuple[Storage, tzinfo | None]:
    """Return the storage of a table, and the zone of its timeline if its spec gives it."""
    from reconciler import runtime  # noqa: PLC0415

    if not specs:
        return runtime.open_storage(table), None
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    found = select_specs(specs, environment=env).tables
    spec = next((each for each in found if each.name == table), None)
    if spec is None:
        known = [each.name for each in found]
        near = _suggest_name(table, known)
        count = words.format_count(len(known), "spec")
        raise UsageError(f"no spec is named {table} ({count} found); {near}")
    zone = None if spec.timezone is None else ZoneInfo(spec.timezone)
    return runtime.open_storage(spec.path, spec.storage_options), zone


def _suggest_name(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else "with --specs, TABLE is a name"
