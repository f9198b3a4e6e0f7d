"""What became of the files of a table, for a terminal: lines and no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.cli.demo.table_contents import FileSizesById
from reconciler.render import words
from reconciler.render.terminal import Terminal, draw_bar

#: characters of a file group's id that tell it from others here
_ID: Final = 8
_NEW: Final = "new"
_ADDED: Final = "░"


def format_changes(
    before: FileSizesById, after: FileSizesById, full: int, terminal: Terminal
) -> Iterator[str]:
    """A line a file: how big it was and is, with a bar as long as its share of ``full``.

    What was added is drawn lighter.
    """
    above = None
    for (partition, file_id), size in after.items():
        was = before.get((partition, file_id), 0)
        label = "" if partition == above else partition
        old = words.format_size(was) if was else _NEW
        bar = draw_bar(min(was, full), full)
        added = _ADDED * (len(draw_bar(min(size, full), full)) - len(bar))
        sizes = f"{old:>10} → {words.format_size(size):>10}"
        yield f"  {label:<14}  {file_id[:_ID]}  {sizes}  {bar}{terminal.good(added) if added else ''}"
        above = partition


def count_new_groups(before: FileSizesById, after: FileSizesById) -> int:
    """File groups that were not there before."""
    return len(after.keys() - before.keys())
