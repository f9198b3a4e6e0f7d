"""``reconciler advise``: propose clustering and index columns for the declared queries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from reconciler.cli.options import (
    TABLES_AT_ONCE,
    Env,
    Format,
    Now,
    OutputFormat,
    Parallelism,
    Selectors,
    command,
    parse_now,
)
from reconciler.cli.table_work import work_on_tables
from reconciler.cli.terminal import find_terminal, print_result
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.planners.prediction.advice import Advice
    from reconciler.plans.model import Selection
    from reconciler.spec.model import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseOptions:
    """The options of the command, as given."""

    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC_OR_DIR",
            help="Spec files, or folders of them; with --query the path or URL of a table.",
        ),
    ]
    queries: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            metavar="SQL",
            help='Condition of a query on one table, such as "customer_id = 42"; repeatable.',
        ),
    ] = None
    format: OutputFormat = Format.TEXT
    now: Now = None
    selectors: Selectors
    parallelism: Parallelism = TABLES_AT_ONCE
    env: Env = None


@command
def advise(options: AdviseOptions) -> int:
    """Propose clustering and index columns for the queries of specs, or for those of --query.

    Tries layouts on sampled rows, with the predictions of plan. Exits with 1 if a table cannot be
    read, else with 0. Changes no table.
    """
    time = parse_now(options.now)
    specs, selection = _select_specs(options)

    from reconciler import api  # noqa: PLC0415 (slow to import)

    advices = work_on_tables(
        api.advise, specs, "trying layouts", now=time, parallelism=options.parallelism
    )
    print_result(_render_advice(advices, options.format, selection))
    return 1 if any(advice.error is not None for advice in advices) else 0


def _select_specs(options: AdviseOptions) -> tuple[tuple[TableSpec, ...], Selection | None]:
    """Return the tables with queries that the arguments name; UsageError if there are none."""
    if options.queries:
        return (_build_table_spec(options, options.queries),), None
    for table in options.tables:
        if "://" in table or (Path(table) / ".hoodie").is_dir():
            raise UsageError(f"{table} is a table: give its queries with --query")

    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    paths = [Path(table) for table in options.tables]
    chosen = select_specs(
        paths, options.selectors, options.env, works_on=lambda spec: bool(spec.queries)
    )
    with_queries = tuple(spec for spec in chosen.tables if spec.queries)
    if not with_queries and chosen.tables:
        names = ", ".join(spec.name for spec in chosen.tables[:3])
        raise UsageError(
            f"no spec declares queries ({names}): declare them under queries:, or give the path of "
            "one table and --query"
        )
    return with_queries, chosen.selection


def _build_table_spec(options: AdviseOptions, queries: Sequence[str]) -> TableSpec:
    """Return a spec with nothing but a table's path and its queries."""
    table, *others = options.tables
    if others:
        raise UsageError("--query needs the path of one table; specs declare their own queries")
    if options.env is not None or options.selectors.arguments():
        raise UsageError("--query needs the path of a table; remove --env and selectors")
    if Path(table).suffix in (".yaml", ".yml"):
        raise UsageError(f"{table} is a spec: declare its queries there, or name the table")
    if any(not where.strip() for where in queries):
        raise UsageError('--query: the condition is empty; write it as "customer_id = 42"')

    from reconciler.index.predicates.where_rules import find_where_problem  # noqa: PLC0415

    if problem := next(filter(None, map(find_where_problem, queries)), None):
        raise UsageError(f"--query: {problem}")

    from reconciler.spec.locations import resolve_location  # noqa: PLC0415
    from reconciler.spec.model import Query, TableSpec  # noqa: PLC0415

    path = resolve_location(table, str(Path.cwd()))
    wanted = tuple(Query(name=where, where=where) for where in dict.fromkeys(queries))
    return TableSpec(name=path.rpartition("/")[2] or path, path=path, queries=wanted)


def _render_advice(
    advices: Sequence[Advice],
    format: Format,  # noqa: A002 (the option's name)
    selection: Selection | None,
) -> str | bytes:
    from reconciler.render import advice  # noqa: PLC0415

    match format:
        case Format.TEXT:
            return advice.advice_text(advices, find_terminal(), selection=selection)
        case Format.JSON:
            return advice.advice_json(advices, selection=selection)
        case Format.MARKDOWN:
            return advice.advice_markdown(advices, selection=selection)
        case _:
            assert_never(format)
