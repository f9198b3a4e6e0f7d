"""``reconciler lint``: is what people wrote right? Offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from reconciler import world
from reconciler.cli.failures import explain
from reconciler.cli.options import ChangedSince, Env, Excluded, Labels, Names, Specs
from reconciler.cli.terminal import emit, say
from reconciler.errors import SpecError
from reconciler.render import words


def _print_schema(wanted: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if wanted:
        import json  # noqa: PLC0415

        from reconciler.spec.schema import table_spec_schema  # noqa: PLC0415

        emit(json.dumps(table_spec_schema(), indent=2, ensure_ascii=False) + "\n")
        raise typer.Exit


def lint(  # noqa: PLR0913 (options of a command)
    specs: Specs,
    *,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="First put right what is certainly a slip of spelling or unit."),
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

    With --fix, words are replaced in the files where they can only have meant one other; comments,
    order and every other byte stay, and so does every number.
    """
    from reconciler.cli.selection import Selectors, selected_specs  # noqa: PLC0415

    if fix:
        from reconciler.cli.fixing import mend  # noqa: PLC0415

        mend(specs)
    by = Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since)
    try:
        today = world.now().date()
        found = selected_specs(specs, by, env, may_lack_paths=env is None, today=today)
    except SpecError as error:
        code = explain(error)
        if not fix:
            _offer(specs)
        return code
    emit(f"{words.tables(len(found.tables), found.selection)}, no problems\n")
    return 0


def _offer(specs: Sequence[Path]) -> None:
    """Say how much of it --fix would put right."""
    from reconciler.cli.fixing import repairs  # noqa: PLC0415

    if count := sum(len(repair.fixes) for repair in repairs(specs)):
        say(f"{words.count(count, 'problem')} can be fixed: reconciler lint --fix")
