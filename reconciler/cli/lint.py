"""``reconciler lint``: check spec files offline; with ``--tables`` also against the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler import runtime
from reconciler.cli.error_reports import report_error
from reconciler.cli.options import Env, PolicyOptions, Selectors, Specs, command
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import Problem, SourcePosition, SpecError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.cli.selection import SelectedTables
    from reconciler.plans.model import Note
    from reconciler.spec.model import TableSpec
    from reconciler.status.model import TableStatus

#: fields that a rule about writers is about; the first one that is declared gets the warning
_FIELDS: Final = {
    "writersFiles": ("files", "clustering"),
    "writersClean": ("retention",),
    "writersClustering": ("clustering.columns", "clustering"),
    "writersIndex": ("index.columns", "index"),
}


def _print_schema(wanted: bool) -> None:  # noqa: FBT001 (typer passes it by position)
    if wanted:
        from reconciler.spec.schema import TEXT  # noqa: PLC0415

        print_result(TEXT)
        raise typer.Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """The options of the command, as given. Its callback acts on ``schema``."""

    specs: Specs
    fix: Annotated[
        bool,
        typer.Option("--fix", help="First correct certain typos in names, words and units."),
    ] = False
    tables: Annotated[
        bool,
        typer.Option(
            "--tables",
            help="Also read the tables, and warn where recent writes contradict the spec.",
        ),
    ] = False
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            callback=_print_schema,
            is_eager=True,
            help="Print the JSON Schema of spec files and exit.",
        ),
    ] = False
    selectors: Selectors
    guards: PolicyOptions
    env: Env = None


@command
def lint(options: LintOptions) -> int:
    """Check spec files. Every problem is listed with file, line and column.

    No table is read unless --tables is given. --fix replaces words that can only mean one other
    word. Comments, order, numbers and every other byte stay.
    """
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    specs, env = options.specs, options.env
    if options.fix:
        from reconciler.cli.lint_fix import write_repairs  # noqa: PLC0415

        write_repairs(specs)
    try:
        today = runtime.now().date()
        is_offline = env is None and not options.tables
        chosen = select_specs(
            specs,
            options.selectors,
            env,
            guards=options.guards,
            may_lack_paths=is_offline,
            with_catalogs=options.tables,
            today=today,
        )
    except SpecError as error:
        code = report_error(error)
        if not options.fix:
            _suggest_fix(specs)
        return code
    summary = words.format_tables(len(chosen.tables), chosen.selection)
    if options.tables:
        return _check_tables(chosen, summary)
    print_result(f"{summary}, no problems\n")
    return 0


def _check_tables(chosen: SelectedTables, summary: str) -> int:
    """Warn where tables contradict their specs; return 1 if a table cannot be read."""
    from reconciler import api  # noqa: PLC0415 (slow to import)
    from reconciler.cli.table_work import work_on_tables  # noqa: PLC0415

    statuses = work_on_tables(api.status, chosen.tables, "reading", now=runtime.now())
    warnings = list(_list_writer_warnings(chosen.tables, statuses))
    for warning in warnings:
        log_message(str(warning), level="warning")
    unread = [table for table in statuses if table.error is not None]
    for table in unread:
        log_message(f"{table.name}: error: {table.error}", level="error")
    problems = f"{words.format_count(len(warnings), 'warning')} about recent writes"
    if unread:
        problems = f"{problems}, {words.format_count(len(unread), 'table')} not read"
    print_result(f"{summary}, {problems}\n")
    return 1 if unread else 0


def _suggest_fix(specs: Sequence[Path]) -> None:
    """Write how many problems --fix would correct."""
    from reconciler.cli.lint_fix import find_repairs  # noqa: PLC0415

    if count := sum(len(repair.fixes) for repair in find_repairs(specs)):
        log_message(f"{words.format_count(count, 'problem')} can be fixed: reconciler lint --fix")


def _list_writer_warnings(
    specs: Iterable[TableSpec], tables: Iterable[TableStatus]
) -> Iterator[Problem]:
    """Yield where recent writes contradict a spec; ``tables`` are in the order of the specs."""
    for spec, table in zip(specs, tables, strict=True):
        for note in table.writers:
            yield _make_warning(spec, note)


def _make_warning(spec: TableSpec, note: Note) -> Problem:
    """Return a note as a warning at the first field that it is about and that is declared."""
    for field in _FIELDS.get(note.rule, ()):
        for declared, source in spec.provenance.items():
            if declared == field or declared.startswith(f"{field}."):
                file, _, line = source.rpartition(":")
                position = SourcePosition(file, int(line), 1)
                return Problem(position, f"spec.{field}", note.because, severity="warning")
    return Problem(SourcePosition(spec.source), "", note.because, severity="warning")
