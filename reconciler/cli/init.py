"""``reconciler init``: a first spec."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.terminal import emit, say
from reconciler.errors import AlreadyExistsError, NotFoundError, StorageError

if TYPE_CHECKING:
    from datetime import datetime

    from reconciler.cli.adopt import SeenRetention
    from reconciler.plan.model import TablePlan
    from reconciler.state.model import TableState


def init(
    path: Annotated[
        str | None,
        typer.Option("--from", metavar="TABLE", help="The folder or URL of a live table."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this new file instead.")
    ] = None,
) -> int:
    """Write a commented spec. With --from, of a live table, such that its plan is empty."""
    if output is not None and output.exists():
        raise AlreadyExistsError(str(output), "exists already and is not overwritten")
    text = _skeleton() if path is None else _adopted(path)
    if output is None:
        emit(text)
        return 0
    if not output.parent.is_dir():
        raise NotFoundError(str(output.parent), "is not there; make the folder first")
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(str(output), error.strerror or str(error)) from None
    say(f"wrote {output}; read its comments, then `reconciler plan {output}`")
    return 0


def _skeleton() -> str:
    from reconciler.cli.adopt import SKELETON  # noqa: PLC0415

    return SKELETON


def _adopted(path: str) -> str:
    from reconciler import world  # noqa: PLC0415
    from reconciler.cli.adopt import seen_retention, spec_text  # noqa: PLC0415
    from reconciler.state.observe import observe  # noqa: PLC0415
    from reconciler.storage.open import open_storage  # noqa: PLC0415
    from reconciler.storage.wrappers import ReadOnly  # noqa: PLC0415

    now = world.now()
    state = observe(ReadOnly(open_storage(path)), None, observed_ms=world.epoch_ms(now))
    pending = _planned(state, now, None)
    if pending.has_changes:
        say(f"{state.location}: its plan is not empty, whatever is declared; see `reconciler plan`")
    seen = seen_retention(state)
    doubt = _doubt(_planned(state, now, seen)) if seen is not None and seen.keep else None
    return spec_text(state, seen, doubt, is_quiet=not pending.has_changes)


def _planned(state: TableState, now: datetime, seen: SeenRetention | None) -> TablePlan:
    """The plan of the table as it would be declared."""
    from reconciler.planners.compose import plan_table  # noqa: PLC0415
    from reconciler.spec.model import Policy, Retention, TableSpec  # noqa: PLC0415

    retention = None
    if seen is not None and seen.keep is not None:
        retention = Retention(policy=Policy(seen.policy), keep=seen.keep)
    spec = TableSpec(name=state.table_name, path=state.location, retention=retention)
    return plan_table(spec, state, now)


def _doubt(plan: TablePlan) -> str | None:
    """Why the seen retention cannot be declared as it is: its plan would not be empty."""
    if plan.refusals:
        return f"{plan.refusals[0].because};"
    if not plan.has_changes:
        return None
    removed = plan.impact.files_removed
    return f"the next plan would remove {removed} {'file' if removed == 1 else 'files'},"
