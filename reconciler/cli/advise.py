"""``reconciler advise``: propose clustering and index columns for the declared queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from reconciler.cli.error_reports import report_crash
from reconciler.cli.options import (
    TABLES_AT_ONCE,
    ChangedSince,
    Env,
    Excluded,
    Format,
    Labels,
    Names,
    Now,
    OutputFormat,
    Parallelism,
)
from reconciler.cli.parse_now import parse_now
from reconciler.cli.terminal import print_result, show_progress, terminal_width, wants_color
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.cli.selection import Selectors
    from reconciler.planners.prediction.advice import Advice
    from reconciler.plans.model import Selection
    from reconciler.spec.model import TableSpec


def advise(  # noqa: PLR0913 (options of a command)
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC_OR_DIR",
            help="Spec files, or folders of them; with --query the path or URL of a table.",
        ),
    ],
    *,
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            metavar="SQL",
            help='Condition of a query on one table, such as "customer_id = 42"; repeatable.',
        ),
    ] = None,
    format: OutputFormat = Format.TEXT,  # noqa: A002 (the option's name)
    now: Now = None,
    name: Names = None,
    exclude: Excluded = None,
    label: Labels = None,
    changed_since: ChangedSince = None,
    parallelism: Parallelism = TABLES_AT_ONCE,
    env: Env = None,
) -> int:
    """Propose clustering and index columns for the queries of specs, or for those of --query.

    Tries layouts on sampled rows, with the predictions of plan. Exits with 1 if a table cannot be
    read, else with 0. Changes no table.
    """
    time = parse_now(now)

    from reconciler.cli.selection import Selectors  # noqa: PLC0415

    selectors = Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since)
    specs, selection = _select_specs(tables, query, selectors, env)

    from reconciler import api  # noqa: PLC0415 (slow to import)
    from reconciler.cli.environment import check_variables  # noqa: PLC0415

    check_variables(specs)
    with show_progress("trying layouts", len(specs), "tables") as report:
        found = api.advise(
            specs,
            now=time,
            on_table=lambda spec: report(1, spec.name, spec.name),
            on_crash=lambda spec, error: report_crash(spec.name, error),
            parallelism=parallelism,
        )
    print_result(_render_advice(found, format, selection))
    return 1 if any(each.error is not None for each in found) else 0


def _select_specs(
    tables: Sequence[str], queries: Sequence[str] | None, selectors: Selectors, env: str | None
) -> tuple[tuple[TableSpec, ...], Selection | None]:
    """Return the tables with queries that the arguments name; UsageError if there are none."""
    if queries:
        return (_build_table_spec(tables, queries, selectors, env),), None
    for table in tables:
        if "://" in table or (Path(table) / ".hoodie").is_dir():
            raise UsageError(f"{table} is a table: give its queries with --query")

    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    chosen = select_specs([Path(table) for table in tables], selectors, env)
    with_queries = tuple(spec for spec in chosen.tables if spec.queries)
    if not with_queries and chosen.tables:
        names = ", ".join(spec.name for spec in chosen.tables[:3])
        raise UsageError(
            f"no spec declares queries ({names}): declare them under queries:, or give the path of "
            "one table and --query"
        )
    return with_queries, chosen.selection


def _build_table_spec(
    tables: Sequence[str], queries: Sequence[str], selectors: Selectors, env: str | None
) -> TableSpec:
    """Return a spec with nothing but a table's path and its queries."""
    if len(tables) > 1:
        raise UsageError("--query needs the path of one table; specs declare their own queries")
    if env is not None or selectors.arguments():
        raise UsageError("--query needs the path of a table; remove --env and selectors")
    if Path(tables[0]).suffix in (".yaml", ".yml"):
        raise UsageError(f"{tables[0]} is a spec: declare its queries there, or name the table")
    if any(not where.strip() for where in queries):
        raise UsageError('--query: the condition is empty; write it as "customer_id = 42"')

    from reconciler.spec.locations import resolve_location  # noqa: PLC0415
    from reconciler.spec.model import Query, TableSpec  # noqa: PLC0415

    path = resolve_location(tables[0], str(Path.cwd()))
    wanted = tuple(Query(name=where, where=where) for where in dict.fromkeys(queries))
    return TableSpec(name=path.rpartition("/")[2] or path, path=path, queries=wanted)


def _render_advice(
    advices: Sequence[Advice],
    format: Format,  # noqa: A002 (the option's name)
    selection: Selection | None,
) -> bytes:
    from reconciler.render import advice  # noqa: PLC0415

    match format:
        case Format.TEXT:
            text = advice.advice_text(
                advices, color=wants_color(), width=terminal_width(), selection=selection
            )
            return text.encode(errors="backslashreplace")
        case Format.JSON:
            return advice.advice_json(advices, selection=selection)
        case Format.MARKDOWN:
            return advice.advice_markdown(advices, selection=selection).encode()
        case _:
            assert_never(format)
