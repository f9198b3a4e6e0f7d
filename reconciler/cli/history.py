"""``reconciler history``: show what was applied to a table."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler import runtime
from reconciler.cli.environment import check_variables
from reconciler.cli.files import read_input
from reconciler.cli.options import Env, Selectors, ShortFormat, ShortOutput, command
from reconciler.cli.terminal import find_terminal, print_result
from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.spec.model import TableSpec
    from reconciler.status.history_model import TableHistory

_LIMIT: Final = 20
_FIRST_YEAR, _LAST_YEAR = 1970, 9998


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """The options of the command, as given."""

    spec: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC_OR_DIR", help="Spec of the table, or specs that selectors choose from."
        ),
    ]
    format: ShortOutput = ShortFormat.TEXT
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Number of entries to show.")
    ] = _LIMIT
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only entries from this time on, such as 2026-01-31 or 2026-01-31T04:00:00Z; "
            "without an offset it is of the timeline's zone.",
        ),
    ] = None
    audit: Annotated[
        list[Path] | None,
        typer.Option(
            "--audit",
            metavar="FILE",
            help="Audit record of apply to read beside the timeline; repeatable.",
        ),
    ] = None
    with_others: Annotated[
        bool,
        typer.Option("--all", help="Also show the instants that no plan made, of any writer."),
    ] = False
    selectors: Selectors
    env: Env = None


@command
def history(options: HistoryOptions) -> int:
    """Show what was applied to a table, by whom, from which plan and commit. Changes no table.

    Reads the active timeline, the archived one if needed, and audit records. The newest come first.
    """
    from reconciler.cli.selection import select_one_spec  # noqa: PLC0415
    from reconciler.render.history import history_json, history_text  # noqa: PLC0415

    since = _parse_since(options.since)
    spec = select_one_spec([options.spec], options.selectors, options.env, "history")
    check_variables([spec])
    found = _read_history(spec, options, since)
    if options.format is ShortFormat.TEXT:
        print_result(history_text(found, find_terminal()))
    else:
        at = runtime.now().isoformat()
        print_result(history_json(found, created_at=at, tool=runtime.tool_name()))
    return 0


def _read_history(spec: TableSpec, options: HistoryOptions, since: datetime | None) -> TableHistory:
    from reconciler.status.audit_lines import read_audit_lines  # noqa: PLC0415
    from reconciler.status.history import read_history  # noqa: PLC0415
    from reconciler.storage.read_only import ReadOnlyStorage  # noqa: PLC0415

    audited = read_audit_lines(_read_lines(options.audit or ()), spec.name, spec.path)
    storage = ReadOnlyStorage(runtime.open_storage(spec.path, spec.storage_options))
    return read_history(
        storage,
        spec,
        limit=options.limit,
        since=since,
        with_others=options.with_others,
        audited=audited,
    )


def _read_lines(files: list[Path] | tuple[()]) -> Iterator[bytes]:
    for file in files:
        data, name = read_input(file, "an audit record")
        lines = data.splitlines()
        if lines and not any(b'"event":' in line for line in lines):
            raise UsageError(f"{name}: has no audit line; name a file that apply --audit wrote")
        yield from lines


def _parse_since(text: str | None) -> datetime | None:
    """Return the time of ``--since``, without a zone if it has no offset.

    >>> _parse_since("2026-01-31").isoformat()
    '2026-01-31T00:00:00'
    """
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if _FIRST_YEAR <= moment.year <= _LAST_YEAR:  # its zone may lead out of all years
            return moment
    raise UsageError(f"--since {text}: not a valid time; write it as 2026-01-31 or with a time")
