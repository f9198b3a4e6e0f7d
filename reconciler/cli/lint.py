"""``reconciler lint``: is what people wrote right? Offline."""

from __future__ import annotations

from reconciler.cli.options import ChangedSince, Excluded, Labels, Names, Specs
from reconciler.cli.terminal import emit
from reconciler.render import words


def lint(
    specs: Specs,
    name: Names = None,
    exclude: Excluded = None,
    label: Labels = None,
    changed_since: ChangedSince = None,
) -> int:
    """Check specs, without looking at any table. Every problem is listed with its place."""
    from reconciler.cli.selection import Selectors, selected_specs  # noqa: PLC0415

    found = selected_specs(
        specs,
        Selectors(names=name, excluded=exclude, labels=label, changed_since=changed_since),
    )
    emit(f"{words.tables(len(found.tables), found.selection)}, no problems\n")
    return 0
