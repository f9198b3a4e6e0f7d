"""Standard error as JSON lines, including what libraries, Python and Java write there."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TextIO

from reconciler.cli.terminal import Level, is_json_log, log_message, set_log_format, set_verbosity

if TYPE_CHECKING:
    import logging

_STDOUT: Final = 1
_STDERR: Final = 2
_DRAIN_TIMEOUT_S: Final = 0.5
_JAVA_ERRORS: Final = ("spark: ERROR", "spark: FATAL")
#: what every Java says that Spark 4 starts; nothing can be done about it
_NO_WARNING: Final = b"WARNING: Using incubator modules: jdk.incubator.vector\n"

#: threads that read the output of programs that were started
_READERS: Final[list[threading.Thread]] = []


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@contextmanager
def open_logs() -> Iterator[Callable[[LogFormat], None]]:
    """Yield a function that sets the log format; after the block the format is text again."""
    undo: list[Callable[[], None]] = []

    def choose_format(format: LogFormat) -> None:  # noqa: A002 (the option's name)
        if format is LogFormat.JSON:
            set_log_format(json_lines=True)
            undo.append(_redirect_libraries())

    try:
        yield choose_format
    finally:
        while _READERS:  # let each read the output of its program to the end
            _READERS.pop().join(_DRAIN_TIMEOUT_S)
        set_log_format(json_lines=False)
        set_verbosity("info")
        for restore in undo:
            restore()


def _redirect_libraries() -> Callable[[], None]:
    """Write messages of libraries and of Python itself as records; return how to undo that."""
    import logging  # noqa: PLC0415 (nothing else needs it)
    import warnings  # noqa: PLC0415

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log_message(self.format(record), level=_record_level(record), event="log")

    handler = Handler()
    before = warnings.showwarning, sys.unraisablehook, threading.excepthook
    logging.getLogger().addHandler(handler)
    warnings.showwarning = lambda message, *_, **__: log_message(
        f"{message}", level="warning", event="log"
    )
    sys.unraisablehook = lambda error: log_message(
        f"{error.err_msg or 'ignored'}: {error.exc_value!r}", level="warning", event="log"
    )
    threading.excepthook = lambda error: log_message(
        f"a thread ended: {error.exc_value!r}", level="error", event="log"
    )

    def undo() -> None:
        logging.getLogger().removeHandler(handler)
        warnings.showwarning, sys.unraisablehook, threading.excepthook = before

    return undo


def _record_level(record: logging.LogRecord) -> Level:
    if record.levelname in ("ERROR", "CRITICAL"):
        return "error"
    return "warning" if record.levelname == "WARNING" else "info"


@contextmanager
def redirect_child_output(*, drops_notice: bool = False) -> Iterator[None]:
    """Send the output of programs started in the block to standard error, in its log format.

    Java writes messages to standard output, which is only for results. ``drops_notice``: without
    the notice that the Java of Spark 4 writes at its start.
    """
    try:
        kept = os.dup(_STDOUT)
    except OSError:  # it is closed
        yield
        return
    sys.stdout.flush()
    try:
        copy = _copy_as_records if is_json_log() else _copy_lines
        is_read = is_json_log() or drops_notice
        with _read_lines(copy) if is_read else _pass_through() as target:
            os.dup2(target, _STDOUT)
            yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)


@contextmanager
def _pass_through() -> Iterator[int]:
    yield _STDERR


@contextmanager
def _read_lines(copy: Callable[[Iterable[bytes], TextIO], None]) -> Iterator[int]:
    """Make standard error of programs started in the block a pipe, of which lines are copied.

    Messages of this process go where they went. The thread that reads lives as long as the program.
    """
    kept = os.dup(_STDERR)
    before = sys.stderr
    reading, writing = os.pipe()
    messages = os.fdopen(os.dup(kept), "w", encoding="utf-8", errors="backslashreplace")
    reader = threading.Thread(target=_read_pipe, args=(copy, reading, messages), daemon=True)
    if is_json_log():  # the last plain lines of a Java that ends are not waited for
        _READERS.append(reader)
    sys.stderr = messages
    os.dup2(writing, _STDERR)
    reader.start()
    try:
        yield writing
    finally:
        os.dup2(kept, _STDERR)
        sys.stderr = before
        messages.flush()  # not closed: the thread may still write to it
        os.close(kept)
        os.close(writing)


def _read_pipe(
    copy: Callable[[Iterable[bytes], TextIO], None], reading: int, messages: TextIO
) -> None:
    """Copy the lines of a pipe to this process's standard error, and close that at the end."""
    with suppress(OSError, ValueError), messages, os.fdopen(reading, "rb") as lines:
        copy((line for line in lines if line != _NO_WARNING), messages)


def _copy_as_records(lines: Iterable[bytes], _messages: TextIO) -> None:
    """Write each line as a record."""
    for data in lines:
        line = data.decode(errors="replace").rstrip()
        if line:
            level: Level = "error" if line.startswith(_JAVA_ERRORS) else "warning"
            log_message(line, level=level, event="spark")


def _copy_lines(lines: Iterable[bytes], messages: TextIO) -> None:
    """Write each line as it is."""
    for line in lines:
        messages.write(line.decode(errors="replace"))
        messages.flush()
