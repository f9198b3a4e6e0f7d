"""``reconciler plan``: show what must change in tables, and why. Changes no table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, assert_never

import typer

from reconciler import runtime
from reconciler.cli.environment import find_environment_name
from reconciler.cli.files import check_output_file, replace_file, replace_file_by
from reconciler.cli.options import (
    Env,
    Full,
    Now,
    Parallelism,
    PlanFormat,
    PlanOutput,
    PolicyOptions,
    Selectors,
    Specs,
    command,
    parse_now,
)
from reconciler.cli.request_stats import Stats, report_requests
from reconciler.cli.table_work import work_on_tables
from reconciler.cli.terminal import find_terminal, print_result
from reconciler.cli.webhook import Webhook, WebhookReporter, open_webhook
from reconciler.errors import UsageError, choose_worst_code
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words

if TYPE_CHECKING:
    from datetime import datetime

    from reconciler.cli.selection import SelectedTables
    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.plans.model import TablePlan
    from reconciler.plans.plan import Plan

#: more rows than any insert has
_MAX_ROWS: Final = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of the command, as given."""

    specs: Specs
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write the plan (JSON) to this file; with --format html the page goes there "
            "and nothing to standard output.",
        ),
    ] = None
    format: PlanOutput = PlanFormat.TEXT
    full: Full = False
    now: Now = None
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")
    ] = False
    selectors: Selectors
    guards: PolicyOptions
    parallelism: Parallelism = None
    env: Env = None
    webhook: Webhook = None
    stats: Stats = False
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache",
            envvar="RECONCILER_NO_CACHE",
            help="List every folder, also those of large local tables that have not changed since "
            "the last plan.",
        ),
    ] = False
    simulate_insert: Annotated[
        str | None,
        typer.Option(
            metavar="N[,PARTITION]",
            help="Show into how many files N new rows would be written: spread over partitions as "
            "in recent writes, or all into PARTITION. Writes no rows.",
        ),
    ] = None


@command
@runtime.small_pages()
def plan(options: PlanOptions) -> int:
    """Compare tables with their specs and plan what must change. Changes no table.

    Needs no Spark, no Java and no write permission. Review the plan, then run `reconciler apply`.
    """
    with report_requests(is_wanted=options.stats):
        return _plan(options)


def _plan(options: PlanOptions) -> int:
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    time = parse_now(options.now)
    insert = None if options.simulate_insert is None else _parse_insert(options.simulate_insert)
    hook = open_webhook(options.webhook, "plan", options.env)
    file, environment = options.output, find_environment_name(options.env)
    if file is not None:
        check_output_file(file, "the plan")
    selected = select_specs(options.specs, options.selectors, options.env, guards=options.guards)
    if options.format is PlanFormat.HTML:
        from reconciler.cli.html_pages import make_plan_page  # noqa: PLC0415

        made, page = make_plan_page(
            selected,
            time,
            parallelism=options.parallelism,
            insert=insert,
            environment=environment,
            describe=describe_planned,
        )
        write_page(page, file)
        return _report_outcome(made, options, hook)
    made = make_plan(
        selected,
        time,
        parallelism=options.parallelism,
        insert=insert,
        cache_folder=None if options.no_cache else runtime.find_cache_folder(),
    )
    if file is not None:
        save_plan(made, file)
    print_result(
        render_plan(made, options.format, full=options.full, file=file, environment=environment)
    )
    return _report_outcome(made, options, hook)


def _report_outcome(made: Plan, options: PlanOptions, hook: WebhookReporter) -> int:
    code = plan_exit_code(made, is_detailed=options.detailed_exitcode)
    hook.report_plan(made, code)
    return code


def write_page(page: bytes, file: Path | None) -> None:
    """Write a page to its file, or to standard output if there is none."""
    if file is None:
        print_result(page)
    else:
        replace_file(file, page)


def make_plan(
    selected: SelectedTables,
    now: datetime,
    *,
    parallelism: int | None,
    insert: NextInsert | None = None,
    cache_folder: Path | None = None,
) -> Plan:
    """Plan the selected tables and show progress."""
    from reconciler import api  # noqa: PLC0415 (slow to import)

    return work_on_tables(
        api.plan,
        selected.tables,
        "planning",
        describe=describe_planned,
        now=now,
        selection=selected.selection,
        parallelism=parallelism,
        insert=insert,
        cache_folder=cache_folder,
    )


def _parse_insert(text: str) -> NextInsert:
    """Return the rows to simulate; UsageError if the text is no number of rows.

    >>> _parse_insert("100,dt=2026-01-01")
    NextInsert(rows=100, partition='dt=2026-01-01')
    """
    from reconciler.layout.sizing.simulate_inserts import NextInsert  # noqa: PLC0415 (numpy)
    from reconciler.plans.validation import is_partition  # noqa: PLC0415

    digits, comma, partition = text.partition(",")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(_MAX_ROWS))
    if not is_number or not 0 < int(digits) <= _MAX_ROWS:
        raise UsageError(
            f"--simulate-insert {text}: expected a number of rows from 1 to {_MAX_ROWS}, and a "
            "partition after a comma if all go there, such as 100000,dt=2026-01-31"
        )
    if comma and (not partition or not is_partition(partition)):
        raise UsageError(
            f"--simulate-insert {text}: the text after the comma is not a partition path such as "
            "dt=2026-01-31"
        )
    return NextInsert(rows=int(digits), partition=partition or None)


def save_plan(plan: Plan, path: Path) -> None:
    """Write the plan document whole or not at all; StorageError if that fails."""
    from reconciler.plans.document import write_plan  # noqa: PLC0415

    replace_file_by(path, lambda file: write_plan(plan, file))


def render_plan(
    plan: Plan,
    format: PlanFormat,  # noqa: A002
    *,
    full: bool,
    file: Path | None = None,
    environment: str | None = None,
) -> str | bytes:
    """Return the plan in a format; ``file`` is the saved plan that the text refers to."""
    match format:
        case PlanFormat.TEXT:
            from reconciler.render.plan_text import plan_text  # noqa: PLC0415

            return plan_text(plan, find_terminal(), full=full)
        case PlanFormat.JSON:
            from reconciler.plans.document import dump_plan  # noqa: PLC0415

            return dump_plan(plan)
        case PlanFormat.MARKDOWN:
            from reconciler.render.plan_markdown import plan_markdown  # noqa: PLC0415

            name = None if file is None else file.name
            return plan_markdown(plan, artifact=name, environment=environment)
        case PlanFormat.HTML:
            from reconciler.render.html.pages import render_saved_plan  # noqa: PLC0415

            return render_saved_plan(plan, environment=environment)
        case _:
            assert_never(format)


def plan_exit_code(plan: Plan, *, is_detailed: bool) -> int:
    """Return the worst code of the tables: 1 error, 3 refused, 2 changes if detailed, 0."""
    return choose_worst_code(
        _table_exit_code(table, is_detailed=is_detailed) for table in plan.tables
    )


def _table_exit_code(table: TablePlan, *, is_detailed: bool) -> int:
    if table.error is not None:
        return 1
    if table.refusals:
        return 3
    return 2 if is_detailed and table.has_changes else 0


def describe_planned(table: TablePlan) -> str:
    """Return the notice that a table is planned."""
    return f"{table.name}: {_describe_table(table)}"


def _describe_table(table: TablePlan) -> str:
    from reconciler.plans.partition_deletion import deleted_partitions  # noqa: PLC0415 (numpy)
    from reconciler.plans.refused_steps import list_applied_steps  # noqa: PLC0415

    if table.error is not None:
        return f"error: {table.error}"
    if table.is_blocked:
        return "refused"
    left = "".join(f"; {words.describe_refused(note.step)}" for note in table.refusals)
    if not (steps := list_applied_steps(table)):
        return f"nothing to do{left}"
    kinds = ", ".join(step.kind for step in steps)
    rewrite = table.impact.bytes_rewritten
    deleted = len(deleted_partitions(steps))
    deletes = f"{words.format_count(deleted, 'partition')} to delete, " if deleted else ""
    rewrites = f"{words.format_size(rewrite)} to rewrite, " if rewrite else ""
    removes = f"{words.format_count(table.impact.files_removed, 'file')} to remove"
    return f"{kinds}; {deletes}{rewrites}{removes}{left}"
