"""What is said when something goes wrong: one line, and the exit code that goes with it."""

from __future__ import annotations

import traceback
from contextvars import ContextVar
from typing import Any, Final

import typer

from reconciler.cli.terminal import say
from reconciler.errors import ReconcilerError, SpecError, UsageError

#: whether people want to see tracebacks
DEBUG: Final = ContextVar("DEBUG", default=False)

_CLICK_ERROR: Final = typer.BadParameter.__mro__[2]  # ClickException, wherever typer keeps it


def explain(error: Exception) -> int:
    """Say what went wrong; the exit code."""
    if DEBUG.get():
        traceback.print_exception(error)
    if isinstance(error, SpecError) and (count := len(str(error).splitlines())) > 1:
        say(f"{error}\nerror: {count} problems in the specs")
        return error.exit_code
    if isinstance(error, ReconcilerError):
        say(f"error: {error}")
        return error.exit_code
    if isinstance(error, _CLICK_ERROR):
        say(f"error: {_usage(error)}")
        return UsageError.exit_code
    if isinstance(error, OSError):  # a full disk, too many open files: the machine's, not ours
        say(f"error: {_of_the_machine(error)}")
        return 1
    say(f"error: {type(error).__name__}: {error}; {_request()}")
    return 1


def explain_crash(name: str, error: Exception) -> None:
    """Say that planning one table ended in an error of this program; the others go on."""
    if DEBUG.get():
        traceback.print_exception(error)
    say(f"{name}: {type(error).__name__}: {error}; {_request()}")


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
