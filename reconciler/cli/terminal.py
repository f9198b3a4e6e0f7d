"""What people see: results on standard output, everything else on standard error.

Standard error is lines for people, or one JSON object a line for programs that collect logs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from reconciler import runtime
from reconciler.errors import StorageError, UsageError
from reconciler.render import words

Level = Literal["debug", "info", "warning", "error"]

_BROKEN_PIPE: Final = 128 + signal.SIGPIPE


@dataclass(slots=True)
class _LogState:
    is_json: bool = False


_LOG: Final = _LogState()  # of the process: a context would not reach the threads that plan tables


class ProgressCallback(Protocol):
    """Hears how many more are done and, where there is one, the notice and the table it is of."""

    def __call__(self, done: int, notice: str, table: str = "", /) -> None: ...


def set_log_format(*, json_lines: bool) -> None:
    """Choose what standard error carries from here on."""
    _LOG.is_json = json_lines


def is_json_log() -> bool:
    """Whether standard error carries JSON lines."""
    return _LOG.is_json


def print_result(result: str | bytes) -> None:
    """Write a result to standard output, which carries nothing else.

    Raises StorageError where it takes no more, as on a full disk.
    """
    if sys.stdout is None:
        raise StorageError("standard output", "is closed")
    data = result.encode(errors="backslashreplace") if isinstance(result, str) else result
    with _handle_write_errors():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


@contextmanager
def _handle_write_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Python would complain once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # who reads us has read enough
            raise SystemExit(_BROKEN_PIPE) from None
        raise StorageError("standard output", error.strerror or str(error)) from None


def log_message(line: str, *, level: Level = "info", event: str = "", table: str = "") -> None:
    """One line for people, on standard error; work goes on where nobody can read it.

    As JSON it is one object, whose message leaves out what the fields ``level`` and ``table`` say.
    """
    line = words.escape_ci_commands(line)
    if _LOG.is_json:
        line = _format_record(line, level, event, table)
    with suppress(OSError, AttributeError):  # full, or closed
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _format_record(line: str, level: Level, event: str, table: str) -> str:
    message = line.removeprefix(f"{level}: ")
    record = {"time": runtime.now().isoformat(timespec="milliseconds"), "level": level}
    record |= {"event": event} if event else {}
    record |= {"table": table} if table else {}
    record["message"] = message.removeprefix(f"{table}: ") if table else message
    return json.dumps(record)


def wants_color() -> bool:
    """Whether standard output is a terminal that shows colours (https://no-color.org)."""
    return (
        sys.stdout.isatty() and not runtime.environment().get("NO_COLOR") and _is_capable_terminal()
    )


def _is_capable_terminal() -> bool:
    return runtime.environment().get("TERM") != "dumb"


def require_terminal(instead: str) -> None:
    """Raises UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(f"there is no terminal to ask at; {instead}")


def ask_yes_no(question: str, instead: str) -> bool:
    """Ask a person; only "yes" is yes. Raises UsageError where nobody can be asked."""
    require_terminal(instead)
    question = f"{question} Only 'yes' is taken for yes: "
    if _LOG.is_json:
        log_message(question.rstrip(), event="question")
    else:
        sys.stderr.write(question)
        sys.stderr.flush()
    return sys.stdin.readline().strip() == "yes"


@contextmanager
def show_progress(
    what: str, total: int, unit: str, *, table: str = ""
) -> Iterator[ProgressCallback]:
    """A bar on a terminal, a line for each notice elsewhere; ``table``: all of it is about one.

    The block calls ``tell(done, notice)`` with how many more are done; an empty notice makes no
    line.
    """
    of = f"{words.escape_text(table)}: " if table else ""
    if _LOG.is_json or not sys.stderr.isatty() or not _is_capable_terminal():

        def tell(_done: int, notice: str, of_table: str = "", /) -> None:
            if notice:
                one = table or of_table
                log_message(f"{of}{what}: {words.escape_text(notice)}", event="progress", table=one)

        yield tell
        return
    from reconciler.cli.progress_bars import show_bar  # noqa: PLC0415 (only terminals pay for rich)

    with show_bar(f"{of}{what}", total, unit) as advance:
        yield lambda done, notice, _of_table="", /: advance(done, words.escape_text(notice))
