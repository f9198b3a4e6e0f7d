"""``reconciler sync``: bring the partitions in catalogs to those of the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.options import Env, Selectors, command
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import ReconcilerError, UsageError
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOptions:
    """The options of the command, as given."""

    specs: Annotated[
        list[Path],
        typer.Argument(metavar="SPEC_OR_DIR", help="Specs of tables that declare a catalog."),
    ]
    selectors: Selectors
    env: Env = None


@command
def sync(options: SyncOptions) -> int:
    """Bring the partitions in the catalogs of tables to those of the tables. No file is touched.

    apply and write do it for the partitions that they remove or add. This is for all others.
    """
    from reconciler.cli.environment import check_variables  # noqa: PLC0415
    from reconciler.cli.selection import select_specs  # noqa: PLC0415

    tables = select_specs(
        options.specs,
        options.selectors,
        options.env,
        works_on=lambda spec: spec.catalog is not None,
    ).tables
    chosen = [spec for spec in tables if spec.catalog is not None]
    if not chosen:
        raise UsageError("no selected table declares a catalog, so there is nothing to sync")
    check_variables(chosen)
    from reconciler import api  # noqa: PLC0415 (slow to import)

    code = 0
    for spec in chosen:
        try:
            done = api.sync(spec)
        except ReconcilerError as error:
            log_message(f"{spec.name}: error: {error}", level="error")
            code = 1
            continue
        counts = f"{done.added} added, {done.dropped} dropped"
        print_result(f"{spec.name}: {spec.catalog}: partitions: {counts}\n")
    return code
