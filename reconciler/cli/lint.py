"""``reconciler lint``: is what people wrote right? Offline."""

from __future__ import annotations

from reconciler.cli.options import Excluded, Labels, Names, Specs
from reconciler.cli.terminal import emit


def lint(specs: Specs, name: Names = None, exclude: Excluded = None, label: Labels = None) -> int:
    """Check specs, without looking at any table. Every problem is listed with its place."""
    from reconciler.cli.selection import selected_specs  # noqa: PLC0415

    found = selected_specs(specs, name, exclude, label)
    emit(f"{len(found)} {'table' if len(found) == 1 else 'tables'}, no problems\n")
    return 0
