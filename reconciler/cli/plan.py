"""``reconciler plan``: show what must change in tables, and why. Changes no table."""

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
from reconciler.cli.terminal import print_result, show_progress, terminal_width, wants_color
from reconciler.cli.webhook import Webhook, open_webhook
from reconciler.errors import UsageError
from reconciler.render import words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.plans.model import Selection, TablePlan
    from reconciler.plans.plan import Plan
    from reconciler.spec.model import TableSpec

#: more rows than any insert has
_MOST_ROWS: Final = 10**15


def plan(  # noqa: PLR0913 (options of a command)
    specs: Specs,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Also write the plan (JSON) to this file."
        ),
    ] = None,
    format: OutputFormat = Format.TEXT,  # noqa: A002 (the option's name)
    full: Full = False,
    now: Now = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")
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
            help="Show into how many files N new rows would be written: spread over partitions as "
            "in recent writes, or all into PARTITION. Writes no rows.",
        ),
    ] = None,
) -> int:
    """Compare tables with their specs and plan what must change. Changes no table.

    Needs no Spark, no Java and no write permission. Review the plan, then run `reconciler apply`.
    """
    from reconciler.cli.selection import Selectors, select_specs  # noqa: PLC0415

    time = parse_now(now)
    insert = None if simulate_insert is None else _parse_insert(simulate_insert)
    hook = open_webhook(webhook, "plan", env)
    if output is not None:
        check_output_file(output, "the plan")
    selectors = Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since)
    selected = select_specs(specs, selectors, env)
    made = make_plan(
        selected.tables, time, selection=selected.selection, parallelism=parallelism, insert=insert
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
    """Plan the specs and show progress."""
    from reconciler import api  # noqa: PLC0415
    from reconciler.cli.environment import check_variables  # noqa: PLC0415

    check_variables(specs)
    with show_progress("planning", len(specs), "tables") as report:
        return api.plan(
            specs,
            now=now,
            selection=selection,
            parallelism=parallelism,
            insert=insert,
            on_table=lambda table: report(1, f"{table.name}: {_describe_table(table)}", table.name),
            on_crash=lambda spec, error: report_crash(spec.name, error),
        )


def _parse_insert(text: str) -> NextInsert:
    """Return the rows to simulate; UsageError if the text is no number of rows.

    >>> _parse_insert("100,dt=2026-01-01")
    NextInsert(rows=100, partition='dt=2026-01-01')
    """
    from reconciler.layout.sizing.simulate_inserts import NextInsert  # noqa: PLC0415 (numpy)
    from reconciler.plans.validation import is_partition  # noqa: PLC0415

    digits, comma, partition = text.partition(",")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(_MOST_ROWS))
    if not is_number or not 0 < int(digits) <= _MOST_ROWS:
        raise UsageError(
            f"--simulate-insert {text}: expected a number of rows from 1 to {_MOST_ROWS}, and a "
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
    """Return the plan in a format; ``file`` is the saved plan that the text refers to."""
    match format:
        case Format.TEXT:
            from reconciler.render.plan_text import plan_text  # noqa: PLC0415

            return plan_text(plan, color=wants_color(), width=terminal_width(), full=full)
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
    """Return the worst code of the tables: 1 error, 3 refused, 2 changes if detailed, 0."""
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
