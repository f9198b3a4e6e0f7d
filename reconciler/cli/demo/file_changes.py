"""How the files of a table changed, as lines for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.cli.demo.table_contents import FileSizesById
from reconciler.render import words
from reconciler.render.terminal import Terminal, draw_bar

#: characters of a file group's id that are enough to tell groups apart here
_ID: Final = 8
_NEW: Final = "new"
_ADDED: Final = "░"


def format_changes(
    before: FileSizesById, after: FileSizesById, full: int, terminal: Terminal
) -> Iterator[str]:
    """Yield a line per file: its size before and after, and a bar of its share of ``full``.

    The added part of the bar is lighter.
    """
    last = None
    for (partition, file_id), size in after.items():
        old_size = before.get((partition, file_id), 0)
        label = "" if partition == last else partition
        old = words.format_size(old_size) if old_size else _NEW
        bar = draw_bar(min(old_size, full), full)
        added = _ADDED * (len(draw_bar(min(size, full), full)) - len(bar))
        sizes = f"{old:>10} → {words.format_size(size):>10}"
        bar += terminal.good(added) if added else ""
        yield f"  {label:<14}  {file_id[:_ID]}  {sizes}  {bar}"
        last = partition


def count_new_groups(before: FileSizesById, after: FileSizesById) -> int:
    """Return the number of file groups that did not exist before."""
    return len(after.keys() - before.keys())
