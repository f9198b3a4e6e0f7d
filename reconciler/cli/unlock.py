"""``reconciler unlock``: remove a lock whose holder is gone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.options import Env, Selectors, command
from reconciler.cli.terminal import ask_yes_no, print_result
from reconciler.errors import BusyError, ReconcilerError, UsageError
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.spec.model import TableSpec
    from reconciler.storage.api import Storage


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
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    chosen = select_specs(options.specs, options.selectors, options.env)
    if len(chosen.tables) != 1:
        tables = words.format_tables(len(chosen.tables), chosen.selection)
        raise UsageError(f"{tables} selected, but unlock takes one; choose it with --name")
    return _unlock_table(chosen.tables[0], yes=options.yes)


def _unlock_table(spec: TableSpec, *, yes: bool) -> int:
    from reconciler import runtime  # noqa: PLC0415
    from reconciler.transaction.locks.file_lock import break_lock, read_lock_holder  # noqa: PLC0415

    storage, path = _find_lock(spec)
    lock = read_lock_holder(storage, path)
    if lock is None:
        print_result(f"{spec.name}: not locked ({storage.location}/{path} does not exist)\n")
        return 0
    print_result(f"{spec.name}: {storage.location}/{path} is held by "
         f"{lock.describe(runtime.SystemClock().now_ms())}\n")  # fmt: skip
    if not yes and not ask_yes_no(
        "Is that process gone for good, and should its lock be removed?", "use --yes"
    ):
        print_result(f"{spec.name}: the lock was not removed\n")
        return 0
    if not break_lock(storage, lock):
        raise BusyError(f"{spec.name}: another process took the lock meanwhile; run unlock again")
    print_result(f"{spec.name}: the lock was removed\n")
    return 0


def _find_lock(spec: TableSpec) -> tuple[Storage, str]:
    """Return the storage and path of a table's lock file; ReconcilerError if its spec has none."""
    from reconciler.runtime import open_storage  # noqa: PLC0415
    from reconciler.transaction.locks.file_lock import locate_lock  # noqa: PLC0415

    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is None or lock.provider == "none":
        raise ReconcilerError(f"{spec.name}: its spec declares no lock, so there is none to remove")
    table = open_storage(spec.path, spec.storage_options)
    return locate_lock(lock.path, table, lambda folder: open_storage(folder, spec.storage_options))
