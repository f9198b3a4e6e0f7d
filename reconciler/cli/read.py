"""``reconciler read``: the rows of a table, or what reading them touches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.options import Env
from reconciler.cli.read_options import DEFAULT_ROW_LIMIT, ReadOptions, RowFormat
from reconciler.cli.spark import parse_spark_settings
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from datetime import tzinfo

    from reconciler.reader.request import ReadArguments
    from reconciler.storage.api import Storage


def read(  # noqa: PLR0913 (options of a command)
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="The table's path or URL; with --specs the name of one of them."
        ),
    ],
    *,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Only rows for which this is true."),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="INSTANT",
            help="The table as it was: an instant of its timeline, or a time in its zone as "
            "'2026-01-31 04:00:00'.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", metavar="A,B", help="Only these columns; repeatable."),
    ] = None,
    read_optimized: Annotated[
        bool, typer.Option("--read-optimized", help="Leave log files out: faster, and older rows.")
    ] = False,
    incremental: Annotated[
        str | None,
        typer.Option(
            "--incremental",
            metavar="BEGIN..END",
            help="Only rows written after BEGIN up to END; BEGIN.. goes on to the newest.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=0,
            help=f"At most so many rows (default: {DEFAULT_ROW_LIMIT} as text, else all).",
        ),
    ] = None,
    format: Annotated[  # noqa: A002 (the option's name)
        RowFormat,
        typer.Option("--format", help="What to write to standard output; json is a line a row."),
    ] = RowFormat.TEXT,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what would be read, and read no rows.")
    ] = False,
    no_skipping: Annotated[
        bool,
        typer.Option("--no-skipping", help="Leave no file out by the statistics of the index."),
    ] = False,
    specs: Annotated[
        list[Path] | None,
        typer.Option(
            "--specs", metavar="SPEC_OR_DIR", help="Where the table's spec is; repeatable."
        ),
    ] = None,
    env: Env = None,
    master: Annotated[
        str | None, typer.Option("--master", help="Spark's master (default: local[*]).")
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option("--spark-conf", metavar="KEY=VALUE", help="A Spark setting; repeatable."),
    ] = None,
) -> int:
    """Write the rows of a table to standard output. Needs no Hudi jar and changes nothing.

    The order of the rows means nothing; --format json and csv write all of them.
    """
    if env is not None and not specs:
        raise UsageError("--env goes with --specs: it says where their tables are")
    if explain and format is RowFormat.CSV:
        raise UsageError("--explain --format csv: say text or json")
    settings: Mapping[str, str] = parse_spark_settings(spark_conf)
    asked = _build_request(as_of, columns, incremental, read_optimized=read_optimized)

    from reconciler.cli.environment import find_spark_options  # noqa: PLC0415
    from reconciler.cli.run_read import print_explanation, print_rows  # noqa: PLC0415 (heavy)

    storage, zone = _open_table(table, specs, env)
    master, settings = find_spark_options(env, specs or [Path()], master, settings)
    reading = ReadOptions(
        storage=storage,
        request=asked,
        zone=zone,
        where=where,
        limit=limit,
        format=format,
        master=master,
        settings=settings,
        uses_index=not no_skipping,
    )
    if explain:
        print_explanation(reading)
    else:
        print_rows(reading)
    return 0


def _build_request(
    as_of: str | None,
    columns: list[str] | None,
    incremental: str | None,
    *,
    read_optimized: bool,
) -> ReadArguments:
    """The read of the options, whose times are not yet instants."""
    from reconciler.reader.request import ReadArguments  # noqa: PLC0415

    names = None if columns is None else _split_columns(columns)
    if incremental is None:
        kind = "readOptimized" if read_optimized else "snapshot"
        return ReadArguments(kind=kind, as_of=as_of, columns=names)
    if read_optimized or as_of is not None:
        other = "--read-optimized" if read_optimized else "--as-of"
        raise UsageError(f"--incremental and {other}: say one of them")
    begin, dots, end = incremental.partition("..")
    if not dots or not begin:
        raise UsageError(
            f"--incremental {incremental}: write it as BEGIN..END or BEGIN.. "
            "(000 is before the first write)"
        )
    return ReadArguments(kind="incremental", begin=begin, end=end or None, columns=names)


def _split_columns(texts: list[str]) -> tuple[str, ...]:
    """The columns of every ``--columns``.

    >>> _split_columns(["a, b", "c"])
    ('a', 'b', 'c')
    """
    names = tuple(name.strip() for text in texts for name in text.split(","))
    if "" in names:
        raise UsageError(f"--columns {','.join(texts)}: one of the names is empty")
    return names


def _open_table(
    table: str, specs: list[Path] | None, env: str | None
) -> tuple[Storage, tzinfo | None]:
    """The storage of a table, and the zone of its timeline where its spec says it."""
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
        raise UsageError(f"{table}: none of the {len(known)} specs is called so; {near}")
    zone = None if spec.timezone is None else ZoneInfo(spec.timezone)
    return runtime.open_storage(spec.path, spec.storage_options), zone


def _suggest_name(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else "TABLE is a name where --specs is given"
