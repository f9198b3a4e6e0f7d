"""How many rows there are and which keys they have: before Hudi rewrites them, and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reconciler.basefile.stamp import RECORD_KEY
from reconciler.merge.slice import Source
from reconciler.rewrite.model import Group, Rewrite, Tally
from reconciler.rewrite.parts import Part, parts_of
from reconciler.rewrite.reading import Columns, tally_of


def parts_of_all(groups: Sequence[Group]) -> list[Part]:
    """What is read in one task each."""
    return [part for group in groups for part in parts_of(group)]


def tally_of_part(part: Part, work: Rewrite, source: Source) -> Tally:
    """Of its rows, log files merged. Raises as ``read_slice`` does."""
    columns = _keys_alone(Columns.of(work, part.group))
    found = Tally()
    for rows in columns.read(part, source, _unheard):
        found = found.plus(tally_of(columns.hashes(rows)))
    return found


def _keys_alone(columns: Columns) -> Columns:
    """Nothing but the key is read where rows have one."""
    names = {RECORD_KEY} if columns.key == (RECORD_KEY,) else _tops(columns.key)
    if not names:
        return columns
    wanted = tuple(name for name in columns.reading.columns or () if name in names)
    return replace(columns, reading=replace(columns.reading, columns=wanted))


def _tops(names: Sequence[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def _unheard(_footer: Any) -> None:
    """Nobody needs the footers."""
