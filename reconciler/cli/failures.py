"""What is said when something goes wrong: one line, and the exit code that goes with it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any, Final

import typer

from reconciler.cli.terminal import say
from reconciler.errors import ReconcilerError, RowsError, SpecError, UsageError
from reconciler.render import words


@dataclass(slots=True)
class _Switch:
    """Of the process: a context would not reach the threads that plan tables."""

    is_on: bool = False

    def get(self) -> bool:
        return self.is_on

    def set(self, is_on: bool) -> None:  # noqa: FBT001 (that is all it is)
        self.is_on = is_on


#: whether people want to see tracebacks
DEBUG: Final = _Switch()

_CLICK_ERROR: Final = typer.BadParameter.__mro__[2]  # ClickException, wherever typer keeps it


def explain(error: Exception) -> int:
    """Say what went wrong; the exit code."""
    _trace(error)
    if isinstance(error, SpecError) and (count := len(str(error).splitlines())) > 1:
        for problem in str(error).splitlines():
            _complain(problem)
        _complain(f"error: {count} problems in the specs")
        return error.exit_code
    code = error.exit_code if isinstance(error, ReconcilerError) else 1
    if isinstance(error, RowsError):  # a line a column
        first, *columns = str(error).splitlines() or [""]
        for line in (f"error: {first}", *columns):
            _complain(line)
        return code
    _complain(f"error: {sentence(error)}")
    return UsageError.exit_code if isinstance(error, _CLICK_ERROR) else code


def explain_crash(name: str, error: Exception) -> None:
    """Say that planning one table ended in an error of this program; the others go on."""
    _trace(error)
    _complain(f"{name}: {sentence(error, is_ours=True)}", table=name)


def sentence(error: Exception, *, is_ours: bool = False) -> str:
    """What went wrong, for people; ``is_ours``: whatever it is, this program is to blame."""
    if isinstance(error, ReconcilerError) and not is_ours:
        return str(error)
    if isinstance(error, _CLICK_ERROR) and not is_ours:
        return _usage(error)
    if isinstance(error, OSError) and not is_ours:  # a full disk, too many open files
        return _of_the_machine(error)
    return f"{type(error).__name__}: {error}; {_request()}"


def _trace(error: Exception) -> None:
    if DEBUG.get():
        lines = "".join(traceback.format_exception(error)).rstrip()
        say(lines, level="debug", event="traceback")


def _complain(line: str, *, table: str = "") -> None:
    say(words.plain(line), level="error", event="error", table=table)


def _request() -> str:
    hint = "the traceback above" if DEBUG.get() else "what --debug shows"
    return f"this is a mistake in reconciler, please report it to its maintainers with {hint}"


def _of_the_machine(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return reason if error.filename is None else f"{error.filename}: {reason}"


def _usage(error: Any) -> str:
    """Click's sentence, and where to read on."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "reconciler"
    return f"{error.format_message().rstrip('.')}; see `{path} --help`"
