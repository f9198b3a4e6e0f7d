"""``reconciler advise``: propose clustering and index columns for the declared queries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from reconciler.cli.environment import find_storage_options
from reconciler.cli.event_logs import DEFAULT_LIMIT, HELP, LIMIT_HELP, read_event_logs
from reconciler.cli.options import (
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
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.event_logs.report import WorkloadReport
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
            help="Spec files, or folders of them; with --query or --from-event-logs also the path "
            "or URL of a table.",
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
    event_logs: Annotated[
        str | None,
        typer.Option("--from-event-logs", metavar="DIR", help=HELP),
    ] = None
    max_queries: Annotated[
        int, typer.Option("--max-queries", metavar="N", min=1, help=LIMIT_HELP)
    ] = DEFAULT_LIMIT
    format: OutputFormat = Format.TEXT
    now: Now = None
    selectors: Selectors
    parallelism: Parallelism = None
    env: Env = None


@command
def advise(options: AdviseOptions) -> int:
    """Propose clustering and index columns for the queries of specs, --query or event logs.

    Tries layouts on sampled rows, with the predictions of plan. Exits with 1 if a table cannot be
    read, else with 0. Changes no table.
    """
    time = parse_now(options.now)
    specs, selection = _select_specs(options)
    logs = None
    if options.event_logs is not None:
        logs = _read_logs(options.event_logs, options, specs)
        specs = tuple(
            replace(spec, queries=proposal.add_to(spec.queries))
            for spec, proposal in zip(specs, logs.proposals, strict=True)
        )

    from reconciler import api  # noqa: PLC0415 (slow to import)

    asked = [spec for spec in specs if spec.queries]
    found = work_on_tables(
        api.advise, asked, "trying layouts", now=time, parallelism=options.parallelism
    )
    advices = _add_tables_without_queries(specs, found)
    print_result(_render_advice(advices, options.format, selection, logs))
    return 1 if any(advice.error is not None for advice in advices) else 0


def _read_logs(location: str, options: AdviseOptions, specs: Sequence[TableSpec]) -> WorkloadReport:
    """Return what event logs asked of the tables."""
    from reconciler.event_logs.report import (  # noqa: PLC0415
        list_known_tables,
        report_workload,
    )

    paths = [Path(table) for table in options.tables if "://" not in table]
    access = find_storage_options(options.env, paths)
    workload = read_event_logs(location, list_known_tables(specs), access)
    return report_workload(workload, specs, options.max_queries)


def _add_tables_without_queries(
    specs: Sequence[TableSpec], found: Sequence[Advice]
) -> tuple[Advice, ...]:
    """Return the advice for each spec; one without queries was not looked at."""
    from reconciler.planners.prediction.advice import Advice as Found  # noqa: PLC0415

    advices = iter(found)
    because = "no layout was tried: neither the spec nor the logs have a query with a condition"
    return tuple(
        next(advices) if spec.queries else Found(name=spec.name, path=spec.path, because=because)
        for spec in specs
    )


def _select_specs(options: AdviseOptions) -> tuple[tuple[TableSpec, ...], Selection | None]:
    """Return the tables with queries that the arguments name; UsageError if there are none."""
    if options.queries:
        return (_build_table_spec(options, options.queries),), None
    for table in options.tables:
        if "://" in table or (Path(table) / ".hoodie").is_dir():
            if options.event_logs is not None:
                return (_build_table_spec(options, ()),), None
            raise UsageError(f"{table} is a table: give its queries with --query")

    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    paths = [Path(table) for table in options.tables]
    has_logs = options.event_logs is not None
    chosen = select_specs(
        paths, options.selectors, options.env, works_on=lambda spec: has_logs or bool(spec.queries)
    )
    if has_logs:
        return chosen.tables, chosen.selection
    with_queries = tuple(spec for spec in chosen.tables if spec.queries)
    if not with_queries and chosen.tables:
        names = ", ".join(spec.name for spec in chosen.tables[:3])
        raise UsageError(
            f"no spec declares queries ({names}): declare them under queries:, or give the path of "
            "one table and --query, or logs of Spark with --from-event-logs"
        )
    return with_queries, chosen.selection


def _build_table_spec(options: AdviseOptions, queries: Sequence[str]) -> TableSpec:
    """Return a spec with nothing but a table's path and its queries."""
    table, *others = options.tables
    option = "--query" if queries else "--from-event-logs without specs"
    if others:
        raise UsageError(f"{option} needs the path of one table; specs declare their own queries")
    if options.env is not None or options.selectors.arguments():
        raise UsageError(f"{option} needs the path of a table; remove --env and selectors")
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
    logs: WorkloadReport | None,
) -> str | bytes:
    from reconciler.render import advice  # noqa: PLC0415

    match format:
        case Format.TEXT:
            return advice.advice_text(advices, find_terminal(), selection=selection, logs=logs)
        case Format.JSON:
            return advice.advice_json(advices, selection=selection, logs=logs)
        case Format.MARKDOWN:
            return advice.advice_markdown(advices, selection=selection, logs=logs)
        case _:
            assert_never(format)
