"""Output of commands: results on standard output, everything else on standard error.

Messages on standard error are lines for people, or one JSON object a line for log collectors.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal, Protocol

from reconciler import runtime
from reconciler.errors import StorageError, UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.render.terminal import Terminal

Level = Literal["debug", "info", "warning", "error"]

_LEVELS: Final[tuple[Level, ...]] = ("debug", "info", "warning", "error")
_ALWAYS: Final = ("question", "requests", "traceback")
"""Events that are written at any level: the user asked for them or must answer."""

_BROKEN_PIPE: Final = 128 + signal.SIGPIPE


@dataclass(slots=True)
class _LogState:
    """State of the process. A context variable would not reach the threads that plan tables."""

    is_json: bool = False
    least: Level = "info"


_LOG: Final = _LogState()


class ProgressCallback(Protocol):
    """Takes the number of items done since the last call, a notice or "", and its table or ""."""

    def __call__(self, done: int, notice: str, table: str = "", /) -> None: ...


def set_log_format(*, json_lines: bool) -> None:
    """Choose JSON lines or lines for people for standard error, from here on."""
    _LOG.is_json = json_lines


def set_verbosity(least: Level) -> None:
    """Write only messages of this level and above, from here on."""
    _LOG.least = least


def is_json_log() -> bool:
    """Return whether standard error carries JSON lines."""
    return _LOG.is_json


def print_result(result: str | bytes) -> None:
    """Write a result to standard output, which carries nothing else.

    Raises StorageError if the write fails, for example on a full disk.
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
        # without this, Python reports the error once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has read enough
            raise SystemExit(_BROKEN_PIPE) from None
        raise StorageError("standard output", error.strerror or str(error)) from None


def log_message(line: str, *, level: Level = "info", event: str = "", table: str = "") -> None:
    """Write one message to standard error. Work goes on if nobody can read it.

    In a JSON record, the message does not repeat the fields ``level`` and ``table``.
    """
    if _LEVELS.index(level) < _LEVELS.index(_LOG.least) and event not in _ALWAYS:
        return
    line = words.escape_ci_commands(line)
    if _LOG.is_json:
        line = _format_record(line, level, event, table)
    with suppress(OSError, AttributeError):  # the disk is full, or the stream is closed
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _format_record(line: str, level: Level, event: str, table: str) -> str:
    message = line.removeprefix(f"{level}: ")
    record = {"time": runtime.now().isoformat(timespec="milliseconds"), "level": level}
    record |= {"event": event} if event else {}
    record |= {"table": table} if table else {}
    record["message"] = message.removeprefix(f"{table}: ") if table else message
    return json.dumps(record)


def find_terminal() -> Terminal:
    """Return the columns and colours of the terminal on standard output, if it is one.

    NO_COLOR asks for plain text (https://no-color.org).
    """
    if not sys.stdout.isatty():
        return Terminal()
    has_color = not runtime.environment().get("NO_COLOR") and _is_capable_terminal()
    return Terminal(has_color=has_color, width=shutil.get_terminal_size().columns)


def _is_capable_terminal() -> bool:
    return runtime.environment().get("TERM") != "dumb"


def require_terminal(instead: str) -> None:
    """Raise UsageError if there is no terminal to ask a person at."""
    if not sys.stdin.isatty():
        raise UsageError(f"no terminal to ask at; {instead}")


def ask_yes_no(question: str, instead: str) -> bool:
    """Ask a person and return whether the answer is "yes"; UsageError without a terminal."""
    require_terminal(instead)
    question = f"{question} Only 'yes' will be accepted: "
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
    """Show a progress bar on a terminal, and a line for each notice elsewhere.

    The block calls ``report(done, notice)`` with the number of items done since its last call. An
    empty notice makes no line. ``table``: the table that all of it is about.
    """
    prefix = f"{words.escape_text(table)}: " if table else ""
    is_quiet = _LEVELS.index(_LOG.least) > _LEVELS.index("info")
    if is_quiet or _LOG.is_json or not sys.stderr.isatty() or not _is_capable_terminal():

        def report(_done: int, notice: str, of_table: str = "", /) -> None:
            if notice:
                message = f"{prefix}{what}: {words.escape_text(notice)}"
                log_message(message, event="progress", table=table or of_table)

        yield report
        return
    from reconciler.cli.progress_bars import show_bar  # noqa: PLC0415 (rich is slow to import)

    with show_bar(f"{prefix}{what}", total, unit) as advance:
        yield lambda done, notice, _of_table="", /: advance(done, words.escape_text(notice))
