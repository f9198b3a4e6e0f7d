"""What people see: results on standard output, everything else on standard error."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from reconciler.errors import StorageError, UsageError

_BROKEN_PIPE: Final = 128 + signal.SIGPIPE


def emit(result: str | bytes) -> None:
    """Write a result to standard output, which carries nothing else.

    Raises StorageError where it takes no more, as on a full disk.
    """
    if sys.stdout is None:
        raise StorageError("standard output", "is closed")
    data = result.encode() if isinstance(result, str) else result
    with _taking_it():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


@contextmanager
def _taking_it() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Python would complain once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # who reads us has read enough
            raise SystemExit(_BROKEN_PIPE) from None
        raise StorageError("standard output", error.strerror or str(error)) from None


def say(line: str) -> None:
    """One line for people, on standard error; work goes on where nobody can read it."""
    with suppress(OSError, AttributeError):  # full, or closed
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def wants_color() -> bool:
    """Whether standard output is a terminal that shows colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and _is_capable()


def _is_capable() -> bool:
    return os.environ.get("TERM") != "dumb"


def require_terminal(instead: str) -> None:
    """Raises UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(f"there is no terminal to ask at; {instead}")


def ask(question: str, instead: str) -> bool:
    """Ask a person; only "yes" is yes. Raises UsageError where nobody can be asked."""
    require_terminal(instead)
    sys.stderr.write(f"{question} Only 'yes' is taken for yes: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() == "yes"


@contextmanager
def progress(what: str, total: int, unit: str) -> Iterator[Callable[[int, str], None]]:
    """A bar on a terminal, a line for each notice elsewhere.

    The block calls ``tell(done, notice)`` with how many more are done; an empty notice makes no
    line.
    """
    if not sys.stderr.isatty() or not _is_capable():
        yield lambda _, notice: say(f"{what}: {notice}") if notice else None
        return
    from rich.console import Console  # noqa: PLC0415 (only terminals pay for it)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda done, notice: bars.update(
            task, advance=done, description=f"{what} {notice}" if notice else what
        )
