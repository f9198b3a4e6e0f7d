"""Progress bars on a terminal, one below the other. Any thread may show one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from reconciler.lazy_dataclass import dataclass


@dataclass(slots=True)
class _Screen:
    """The one display of the terminal. It exists as long as it has a bar."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    display: Progress | None = None
    bars: int = 0

    def add(self) -> Progress:
        with self.guard:
            if self.display is None:
                columns = (
                    TextColumn("{task.description}", markup=False),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TextColumn("{task.fields[unit]}", markup=False),
                )
                self.display = Progress(*columns, console=Console(stderr=True), transient=True)
                self.display.start()
            self.bars += 1
            return self.display

    def remove(self, task: TaskID) -> None:
        with self.guard:
            self.bars -= 1
            if self.display is None:
                return
            self.display.refresh()  # show a bar also if its work was quick
            self.display.remove_task(task)
            if not self.bars:
                self.display.stop()
                self.display = None


_SCREEN: Final = _Screen()


@contextmanager
def show_bar(what: str, total: int, unit: str) -> Iterator[Callable[[int, str], None]]:
    """Show a bar during the block, which calls ``advance(done, notice)`` with the items done."""
    display = _SCREEN.add()
    task = display.add_task(what, total=total, unit=unit)
    try:
        yield lambda done, notice: display.update(
            task, advance=done, description=f"{what} {notice}" if notice else what
        )
    finally:
        _SCREEN.remove(task)
