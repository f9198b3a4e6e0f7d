"""``reconciler read``: print the rows of a table, or which files a read touches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli.environment import find_spark_options, find_storage_options
from reconciler.cli.options import command
from reconciler.cli.read_options import ReadOptions, RowFormat, TableRead
from reconciler.cli.spark import parse_spark_settings
from reconciler.errors import UsageError
from reconciler.render import words

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo

    from reconciler.cli.options import SparkSettings
    from reconciler.reader.request import ReadArguments
    from reconciler.storage.api import Storage


@command
def read(options: ReadOptions) -> int:
    """Print the rows of a table. Needs no Hudi jar and changes nothing.

    Rows have no order. --format json and csv print all of them.
    """
    specs, env = options.specs, options.env
    if options.explain and options.format is RowFormat.CSV:
        raise UsageError("--explain --format csv: choose text or json")
    given = parse_spark_settings(options.spark, options.executor)
    request = _build_request(options)

    from reconciler.cli.run_read import print_explanation, print_rows  # noqa: PLC0415 (slow)
    from reconciler.storage.read_only import ReadOnlyStorage  # noqa: PLC0415

    storage, zone = _open_table(options.table, specs, env)
    settings = find_spark_options(env, specs or [Path()], given, [storage.location])
    if options.where is not None:
        _check_where(options.where, settings)
    work = TableRead(
        storage=storage,
        request=request,
        zone=zone,
        index=None if options.no_skipping else ReadOnlyStorage(storage),
        spark=settings,
    )
    print_read = print_explanation if options.explain else print_rows
    print_read(work, options)
    return 0


def _check_where(where: str, settings: SparkSettings) -> None:
    """Refuse what Spark would refuse as a condition, before it starts."""
    from reconciler.index.predicates.where_rules import find_where_problem  # noqa: PLC0415

    if "spark.sql.extensions" in settings.conf:  # they may bring a parser and functions
        return
    if problem := find_where_problem(where, may_have_alias=True):
        raise UsageError(f"--where: {problem}")


def _build_request(options: ReadOptions) -> ReadArguments:
    """Return the read that the options describe. Its times are not resolved to instants yet."""
    from reconciler.reader.request import ReadArguments  # noqa: PLC0415

    names = None if options.columns is None else _split_columns(options.columns)
    if options.incremental is None:
        kind = "readOptimized" if options.read_optimized else "snapshot"
        return ReadArguments(kind=kind, as_of=options.as_of, columns=names)
    if options.read_optimized or options.as_of is not None:
        other = "--read-optimized" if options.read_optimized else "--as-of"
        raise UsageError(f"--incremental and {other} contradict each other; give one of them")
    begin, dots, end = options.incremental.partition("..")
    if not dots or not begin:
        raise UsageError(
            f"--incremental {options.incremental}: write it as BEGIN..END or BEGIN.. "
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
        return runtime.open_storage(table, find_storage_options(env, [Path()])), None
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    selected = select_specs(specs, environment=env, works_on=lambda spec: spec.name == table)
    by_name = {spec.name: spec for spec in selected.tables}
    spec = by_name.get(table)
    if spec is None:
        near, count = _suggest_name(table, by_name), words.format_count(len(by_name), "spec")
        raise UsageError(f"no spec is named {table} ({count} found); {near}")
    zone = None if spec.timezone is None else ZoneInfo(spec.timezone)
    return runtime.open_storage(spec.path, spec.storage_options), zone


def _suggest_name(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else "with --specs, TABLE is a name"
