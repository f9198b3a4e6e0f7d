"""``reconciler unlock``: remove a lock whose holder is gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.options import Env, Selectors, command
from reconciler.cli.terminal import ask_yes_no, print_result
from reconciler.errors import BusyError, ReconcilerError
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from reconciler.spec.model import TableSpec
    from reconciler.transaction.locks.table_lock import LockPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlockOptions:
    """The options of the command, as given."""

    specs: Annotated[
        list[Path],
        typer.Argument(
            metavar="SPEC_OR_DIR", help="Spec of the table, or specs that selectors choose from."
        ),
    ]
    yes: Annotated[bool, typer.Option("--yes", help="Remove the lock without asking.")] = False
    selectors: Selectors
    env: Env = None


@command
def unlock(options: UnlockOptions) -> int:
    """Remove a table's lock, after showing who holds it and since when.

    Only for a lock whose holder is gone for good: a running writer would go on without its lock.
    """
    from reconciler.cli.selection import select_one_spec  # noqa: PLC0415

    spec = select_one_spec(options.specs, options.selectors, options.env, "unlock")
    return _unlock_table(spec, yes=options.yes)


def _unlock_table(spec: TableSpec, *, yes: bool) -> int:
    from reconciler import runtime  # noqa: PLC0415

    place = _find_lock(spec)
    holder = place.read_holder()
    if holder is None:
        print_result(f"{spec.name}: not locked ({place.location} {place.free_because})\n")
        return 0
    print_result(f"{spec.name}: {place.location} is held by "
         f"{holder.describe(runtime.SystemClock().now_ms())}\n")  # fmt: skip
    if not yes and not ask_yes_no(
        "Is that process gone for good, and should its lock be removed?", "use --yes"
    ):
        print_result(f"{spec.name}: the lock was not removed\n")
        return 0
    if not place.break_lock(holder):
        raise BusyError(f"{spec.name}: another process took the lock meanwhile; run unlock again")
    print_result(f"{spec.name}: the lock was removed\n")
    return 0


def _find_lock(spec: TableSpec) -> LockPlace:
    """Return the lock of a table; ReconcilerError if its spec has none."""
    from reconciler.runtime import SystemClock, open_storage  # noqa: PLC0415
    from reconciler.transaction.locks.declared_lock import (  # noqa: PLC0415
        find_declared_lock,
        open_lock_place,
    )

    lock = find_declared_lock(spec)
    if lock is None:
        raise ReconcilerError(f"{spec.name}: its spec declares no lock, so there is none to remove")
    return open_lock_place(
        lock,
        open_storage(spec.path, spec.storage_options),
        lambda folder: open_storage(folder, spec.storage_options),
        SystemClock(),
    )
