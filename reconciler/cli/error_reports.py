"""Error messages of commands and the exit codes that go with them."""

from __future__ import annotations

import traceback
from typing import Any, Final

import typer

from reconciler.cli.terminal import log_message
from reconciler.errors import ReconcilerError, RowsError, SpecError, UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words


@dataclass(slots=True)
class _DebugFlag:
    """State of the process. A context variable would not reach the threads that plan tables."""

    is_on: bool = False

    def get(self) -> bool:
        return self.is_on

    def set(self, is_on: bool) -> None:  # noqa: FBT001 (a setter)
        self.is_on = is_on


#: whether tracebacks are shown
DEBUG: Final = _DebugFlag()

_CLICK_ERROR: Final = typer.BadParameter.__mro__[2]  # ClickException, which typer does not export


def report_error(error: Exception) -> int:
    """Write what went wrong to standard error and return the exit code."""
    _print_traceback(error)
    if isinstance(error, SpecError) and (count := len(str(error).splitlines())) > 1:
        for problem in str(error).splitlines():
            _print_error(problem)
        _print_error(f"error: {count} problems in the specs")
        return error.exit_code
    code = error.exit_code if isinstance(error, ReconcilerError) else 1
    if isinstance(error, RowsError):  # it has one line per column
        first, *columns = str(error).splitlines() or [""]
        for line in (f"error: {first}", *columns):
            _print_error(line)
        return code
    _print_error(f"error: {describe_error(error)}")
    return UsageError.exit_code if isinstance(error, _CLICK_ERROR) else code


def report_crash(name: str, error: Exception) -> None:
    """Report an error of this program that stopped one table; other tables go on."""
    _print_traceback(error)
    _print_error(f"{name}: {describe_error(error, is_ours=True)}", table=name)


def describe_error(error: Exception, *, is_ours: bool = False) -> str:
    """Return what went wrong; ``is_ours``: this program is to blame, whatever it is."""
    if isinstance(error, ReconcilerError) and not is_ours:
        return str(error)
    if isinstance(error, _CLICK_ERROR) and not is_ours:
        return _describe_usage_error(error)
    if isinstance(error, OSError) and not is_ours:  # a full disk, too many open files
        return _describe_os_error(error)
    return f"{type(error).__name__}: {error}; {_bug_report_request()}"


def _print_traceback(error: Exception) -> None:
    if DEBUG.get():
        lines = "".join(traceback.format_exception(error)).rstrip()
        log_message(lines, level="debug", event="traceback")


def _print_error(line: str, *, table: str = "") -> None:
    log_message(words.escape_text(line), level="error", event="error", table=table)


def _bug_report_request() -> str:
    hint = "the traceback above" if DEBUG.get() else "what --debug shows"
    return f"this is a bug in reconciler; please report it to its maintainers with {hint}"


def _describe_os_error(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return reason if error.filename is None else f"{error.filename}: {reason}"


def _describe_usage_error(error: Any) -> str:
    """Return click's sentence and where to read on."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "reconciler"
    message = error.format_message().rstrip(".")
    if message.endswith("?"):
        return f"{message} See `{path} --help`"
    return f"{message}; see `{path} --help`"
