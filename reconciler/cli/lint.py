"""``reconciler lint``: is what people wrote right? Offline, unless asked what tables say to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler import runtime
from reconciler.cli.error_reports import report_error
from reconciler.cli.options import TABLES_AT_ONCE, ChangedSince, Env, Excluded, Labels, Names, Specs
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import SpecError
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.cli.selection import SelectedTables


def _print_schema(wanted: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if wanted:
        from reconciler.spec.schema import TEXT  # noqa: PLC0415

        print_result(TEXT)
        raise typer.Exit


def lint(  # noqa: PLR0913 (options of a command)
    specs: Specs,
    *,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="First put right what is certainly a slip of spelling or unit."),
    ] = False,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables",
            help="Read the tables too, and warn where what their writers did lately contradicts "
            "the spec.",
        ),
    ] = False,
    schema: Annotated[  # noqa: ARG001 (its callback acts)
        bool,
        typer.Option(
            "--schema",
            callback=_print_schema,
            is_eager=True,
            help="Print the JSON Schema of spec files, for editors, and end.",
        ),
    ] = False,
    name: Names = None,
    exclude: Excluded = None,
    label: Labels = None,
    changed_since: ChangedSince = None,
    env: Env = None,
) -> int:
    """Check specs, without looking at any table. Every problem is listed with its place.

    With --tables, what their writers did lately is held against the specs, in warnings. With --fix,
    words are replaced in the files where they can only have meant one other; comments, order and
    every other byte stay, and so does every number.
    """
    from reconciler.cli.selection import Selectors, select_specs  # noqa: PLC0415

    if fix:
        from reconciler.cli.lint_fix import write_repairs  # noqa: PLC0415

        write_repairs(specs)
    by = Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since)
    try:
        today = runtime.now().date()
        is_offline = env is None and not tables
        found = select_specs(specs, by, env, may_lack_paths=is_offline, today=today)
    except SpecError as error:
        code = report_error(error)
        if not fix:
            _suggest_fix(specs)
        return code
    counted = words.format_tables(len(found.tables), found.selection)
    if tables:
        return _check_tables(found, counted)
    print_result(f"{counted}, no problems\n")
    return 0


def _check_tables(chosen: SelectedTables, summary: str) -> int:
    """Warn of what tables say against their specs; 1 where one of them cannot be read."""
    from reconciler.cli.table_status import read_statuses  # noqa: PLC0415
    from reconciler.cli.writer_warnings import list_writer_warnings  # noqa: PLC0415

    looked = read_statuses(chosen.tables, runtime.now(), TABLES_AT_ONCE)
    warnings = list(list_writer_warnings(chosen.tables, looked))
    for warning in warnings:
        log_message(str(warning), level="warning")
    unread = [table for table in looked if table.error is not None]
    for table in unread:
        log_message(f"{table.name}: error: {table.error}", level="error")
    problems = f"{words.format_count(len(warnings), 'warning')} of what writers did"
    if unread:
        problems = f"{problems}, {words.format_count(len(unread), 'table')} not read"
    print_result(f"{summary}, {problems}\n")
    return 1 if unread else 0


def _suggest_fix(specs: Sequence[Path]) -> None:
    """Say how much of it --fix would put right."""
    from reconciler.cli.lint_fix import find_repairs  # noqa: PLC0415

    if count := sum(len(repair.fixes) for repair in find_repairs(specs)):
        log_message(f"{words.format_count(count, 'problem')} can be fixed: reconciler lint --fix")
