"""``reconciler plan``: what must change, and why. Writes nothing to any table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, assert_never

import typer

from reconciler.cli.environment import find_environment_name
from reconciler.cli.error_reports import report_crash
from reconciler.cli.options import (
    TABLES_AT_ONCE,
    ChangedSince,
    Env,
    Excluded,
    Format,
    Full,
    Labels,
    Names,
    Now,
    OutputFormat,
    Parallelism,
    Specs,
)
from reconciler.cli.output_files import check_output_file, replace_file
from reconciler.cli.parse_now import parse_now
from reconciler.cli.terminal import print_result, show_progress, wants_color
from reconciler.cli.webhook import Webhook, open_webhook
from reconciler.errors import UsageError
from reconciler.render import words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.plans.model import Plan, Selection, TablePlan
    from reconciler.spec.model import TableSpec

#: more rows than any insert has
_MOST_ROWS: Final = 10**15


def plan(  # noqa: PLR0913 (options of a command)
    specs: Specs,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the plan (JSON) to this file too.")
    ] = None,
    format: OutputFormat = Format.TEXT,  # noqa: A002 (the option's name)
    full: Full = False,
    now: Now = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 when there are changes.")
    ] = False,
    name: Names = None,
    exclude: Excluded = None,
    label: Labels = None,
    changed_since: ChangedSince = None,
    parallelism: Parallelism = TABLES_AT_ONCE,
    env: Env = None,
    webhook: Webhook = None,
    simulate_insert: Annotated[
        str | None,
        typer.Option(
            metavar="N[,PARTITION]",
            help="Say into how many files N new rows would go, on partitions as those of the last "
            "writes or all into one; writes none of them.",
        ),
    ] = None,
) -> int:
    """Compare tables with their specs and plan what must change. Writes nothing to any table.

    Needs no Spark, no Java and no write permission. Review the plan, then `reconciler apply` it.
    """
    from reconciler.cli.selection import Selectors, select_specs  # noqa: PLC0415

    at = parse_now(now)
    insert = None if simulate_insert is None else _parse_insert(simulate_insert)
    hook = open_webhook(webhook, "plan", env)
    if output is not None:
        check_output_file(output, "the plan")
    selectors = Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since)
    selected = select_specs(specs, selectors, env)
    made = make_plan(
        selected.tables, at, selection=selected.selection, parallelism=parallelism, insert=insert
    )
    if output is not None:
        save_plan(made, output)
    print_result(
        render_plan(made, format, full=full, file=output, environment=find_environment_name(env))
    )
    code = plan_exit_code(made, is_detailed=detailed_exitcode)
    hook.report_plan(made, code)
    return code


def make_plan(
    specs: Sequence[TableSpec],
    now: datetime,
    *,
    selection: Selection | None = None,
    parallelism: int = 1,
    insert: NextInsert | None = None,
) -> Plan:
    """Plan the specs, telling people how far it is."""
    from reconciler import api  # noqa: PLC0415
    from reconciler.cli.environment import check_variables  # noqa: PLC0415

    check_variables(specs)
    with show_progress("planning", len(specs), "tables") as tell:
        return api.plan(
            specs,
            now=now,
            selection=selection,
            parallelism=parallelism,
            insert=insert,
            on_table=lambda table: tell(1, f"{table.name}: {_describe_table(table)}", table.name),
            on_crash=lambda spec, error: report_crash(spec.name, error),
        )


def _parse_insert(text: str) -> NextInsert:
    """The rows that are to be simulated; UsageError for what is no number of rows.

    >>> _parse_insert("100,dt=2026-01-01")
    NextInsert(rows=100, partition='dt=2026-01-01')
    """
    from reconciler.layout.sizing.simulate_inserts import NextInsert  # noqa: PLC0415 (numpy)
    from reconciler.plans.validation import is_partition  # noqa: PLC0415

    digits, comma, partition = text.partition(",")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(_MOST_ROWS))
    if not is_number or not 0 < int(digits) <= _MOST_ROWS:
        raise UsageError(
            f"--simulate-insert {text}: give a number of rows from 1 to {_MOST_ROWS}, and after "
            "a comma the one partition that they go to, as 100000,dt=2026-01-31"
        )
    if comma and (not partition or not is_partition(partition)):
        raise UsageError(
            f"--simulate-insert {text}: what follows the comma is no path of a partition, as "
            "dt=2026-01-31"
        )
    return NextInsert(rows=int(digits), partition=partition or None)


def save_plan(plan: Plan, path: Path) -> None:
    """Write the plan document whole or not at all; StorageError where that cannot be."""
    from reconciler.plans.document import dump_plan  # noqa: PLC0415

    replace_file(path, dump_plan(plan))


def render_plan(
    plan: Plan,
    format: Format,  # noqa: A002
    *,
    full: bool,
    file: Path | None = None,
    environment: str | None = None,
) -> str | bytes:
    """The plan as standard output carries it; ``file`` is where all of it can be found."""
    match format:
        case Format.TEXT:
            from reconciler.render.plan_text import plan_text  # noqa: PLC0415

            return plan_text(plan, color=wants_color(), full=full)
        case Format.JSON:
            from reconciler.plans.document import dump_plan  # noqa: PLC0415

            return dump_plan(plan)
        case Format.MARKDOWN:
            from reconciler.render.plan_markdown import plan_markdown  # noqa: PLC0415

            name = None if file is None else file.name
            return plan_markdown(plan, artifact=name, environment=environment)
        case _:
            assert_never(format)


def plan_exit_code(plan: Plan, *, is_detailed: bool) -> int:
    """The worst of the tables' codes: 1 error, 3 refused, 2 changes (when asked for), 0."""
    from reconciler.executor.result import choose_worst_code  # noqa: PLC0415

    return choose_worst_code(
        _table_exit_code(table, is_detailed=is_detailed) for table in plan.tables
    )


def _table_exit_code(table: TablePlan, *, is_detailed: bool) -> int:
    if table.error is not None:
        return 1
    if table.refusals:
        return 3
    return 2 if is_detailed and table.has_changes else 0


def _describe_table(table: TablePlan) -> str:
    if table.error is not None:
        return f"error: {table.error}"
    if table.refusals:
        return "refused"
    if not table.steps:
        return "nothing to do"
    kinds = ", ".join(step.kind for step in table.steps)
    rewrite = table.impact.bytes_rewritten
    rewrites = f"{words.format_size(rewrite)} to rewrite, " if rewrite else ""
    return f"{kinds}; {rewrites}{words.format_count(table.impact.files_removed, 'file')} to remove"
