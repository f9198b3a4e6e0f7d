"""The command line: ``reconciler COMMAND``."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Annotated, Final, NoReturn

import typer

from reconciler import runtime
from reconciler.cli import interruption, webhook
from reconciler.cli.error_reports import DEBUG, report_error
from reconciler.cli.logs import LogFormat, open_logs
from reconciler.cli.terminal import Level, log_message, print_result, set_verbosity
from reconciler.errors import UsageError
from reconciler.render.words import escape_text
from reconciler.storage.request_budget import report_repeats

_INTERRUPTED: Final = 128 + signal.SIGINT
_TERMINATED: Final = 128 + signal.SIGTERM
_LOG_FORMAT: Final = "--log-format"
_FLAGS: Final = {
    "--debug": "--debug",
    "--quiet": "--quiet",
    "-q": "--quiet",
    "--verbose": "--verbose",
    "-v": "--verbose",
}
"""Options of every command, which may stand anywhere on the command line."""

#: each command is the function of this name in the module of this name, or of another
COMMANDS: Final = (
    "init",
    "lint",
    "fmt",
    "plan",
    "show",
    "diff",
    "apply",
    "status",
    "explain",
    "history",
    "report",
    "verify",
    "advise",
    "simulate",
    "options",
    "read",
    "write",
    "comment",
    "sync",
    "unlock",
    "demo",
)
_MODULES: Final = {"demo": "demo.command", "options": "writer_options"}
_EXIT_CODES: Final = (
    "Exit codes: 0 fine or no changes, 1 error, 2 changes (--detailed-exitcode of plan and diff, "
    "fmt --check), 3 blocked by policy, 4 plan or table out of date, 5 applied in part, 6 lock "
    "held or table busy, 64 usage, 130 interrupted (Ctrl-C), 143 terminated."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GlobalOptions:
    """The options of every command; ``formats`` are the log formats, in order of occurrence."""

    flags: frozenset[str] = frozenset()
    formats: Sequence[str | None] = ()


def build_program(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the program with these commands. Modules of other commands are not imported: slow."""
    program = typer.Typer(
        name="reconciler",
        epilog=_EXIT_CODES,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    program.callback()(_options)
    for name in commands:
        program.command()(
            getattr(import_module(f"reconciler.cli.{_MODULES.get(name, name)}"), name)
        )
    return program


def _print_version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if wanted:
        print_result(f"{runtime.tool_name()}\n")
        raise typer.Exit


def _options(
    *,
    version: Annotated[  # its callback acts
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    quiet: Annotated[  # this and the next three are taken before typer looks
        bool,
        typer.Option("--quiet", "-q", help="Write only warnings and errors to standard error."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Write details of the run to standard error.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="Format of messages on standard error.")
    ] = LogFormat.TEXT,
) -> None:
    """Bring Apache Hudi tables to a declared state: plan, review, apply."""


def main() -> int:
    """Run the command line of this process and return its exit code."""
    signal.signal(signal.SIGTERM, _exit_on_signal)
    # Garbage does not matter in so short a life, and no matrix is multiplied on many threads.
    # Either would cost a tenth of planning a table.
    gc.set_threshold(100_000, 50, 100)
    runtime.set_default_variable("OPENBLAS_NUM_THREADS", "1")
    return run(sys.argv[1:])


def run(arguments: Sequence[str]) -> int:
    """Run one command line, report what went wrong, and return the exit code."""
    interruption.reset()
    webhook.reset()
    with open_logs() as set_log_format, report_repeats(_report_repeat):
        return _run(arguments, set_log_format)


def _report_repeat(text: str) -> None:
    log_message(f"warning: {escape_text(text)}", level="warning", event="wait")


def _run(arguments: Sequence[str], set_log_format: Callable[[LogFormat], None]) -> int:
    arguments, options = _split_global_options(arguments)
    DEBUG.set("--debug" in options.flags)
    try:
        set_log_format(_choose_log_format(options.formats))
        set_verbosity(_choose_verbosity(options.flags))
        if not arguments:
            build_program()(["--help"], standalone_mode=False, prog_name="reconciler")
            return UsageError.exit_code
        if "" in arguments:
            raise UsageError("an argument is empty; is a shell variable unset?")  # noqa: TRY301
        named = arguments[:1] if arguments[0] in COMMANDS else COMMANDS
        code = build_program(named)(arguments, standalone_mode=False, prog_name="reconciler")
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except Exception as error:  # noqa: BLE001 (the outermost frame)
        if not interruption.is_interrupted():
            failed = report_error(error)
            webhook.report_failure(error)
            return failed
        code = _INTERRUPTED
    if code == _INTERRUPTED:  # newer typers return it, older ones raise
        log_message(interruption.add_advice("interrupted"), level="error", event="interrupted")
    return code if isinstance(code, int) else 0


def _split_global_options(arguments: Sequence[str]) -> tuple[list[str], _GlobalOptions]:
    """Return the arguments of the command, and the options of every command apart from them."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept: list[str] = []
    flags: set[str] = set()
    formats: list[str | None] = []
    rest = iter(arguments[:end])
    for text in rest:
        name, equals, value = text.partition("=")
        if name == _LOG_FORMAT:
            formats.append(value if equals else next(rest, None))
        elif text in _FLAGS:
            flags.add(_FLAGS[text])
        else:
            kept.append(text)
    return [*kept, *arguments[end:]], _GlobalOptions(flags=frozenset(flags), formats=formats)


def _choose_verbosity(flags: frozenset[str]) -> Level:
    """Return the least level of messages to write."""
    if {"--quiet", "--verbose"} <= flags:
        raise UsageError("--quiet and --verbose contradict each other; give one of them")
    if "--quiet" in flags:
        return "warning"
    return "debug" if "--verbose" in flags else "info"


def _choose_log_format(formats: Sequence[str | None]) -> LogFormat:
    """Return the last format given: as for other options, the last one wins."""
    for value in reversed(formats):
        if value not in list(LogFormat):
            what = _LOG_FORMAT if value is None else f"{_LOG_FORMAT} {value}"
            raise UsageError(f"{what}: choose {' or '.join(LogFormat)}")
        return LogFormat(value)
    return LogFormat.TEXT


def _exit_on_signal(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Exit after SIGTERM. Locks are released on the way out."""
    log_message(interruption.add_advice("terminated"), level="error", event="interrupted")
    interruption.record_termination(_TERMINATED)
    raise SystemExit(_TERMINATED)
