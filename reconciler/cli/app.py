"""The command line: ``reconciler COMMAND``."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FrameType
from typing import Annotated, Final, NoReturn

import typer

from reconciler import runtime
from reconciler.cli import interruption, webhook
from reconciler.cli.error_reports import DEBUG, report_error
from reconciler.cli.logs import LogFormat, open_logs
from reconciler.cli.terminal import log_message, print_result
from reconciler.errors import UsageError

_INTERRUPTED: Final = 128 + signal.SIGINT
_TERMINATED: Final = 128 + signal.SIGTERM
_LOG_FORMAT: Final = "--log-format"

#: each is the function of the same name in the module of the same name, or of another
COMMANDS: Final = (
    "init",
    "lint",
    "plan",
    "show",
    "apply",
    "status",
    "advise",
    "options",
    "read",
    "write",
    "comment",
    "unlock",
    "demo",
)
_MODULES: Final = {"demo": "demo.command", "options": "writer_options"}
_EXIT_CODES: Final = (
    "Exit codes: 0 fine or no changes, 1 error, 2 changes (plan --detailed-exitcode), "
    "3 blocked by policy, 4 stale in part or whole, 5 applied in part, 6 lock held or table busy, "
    "64 usage."
)


def build_program(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """The program with these commands; the modules of the others are not read, which takes time."""
    found = typer.Typer(
        name="reconciler",
        epilog=_EXIT_CODES,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    found.callback()(_options)
    for name in commands:
        found.command()(getattr(import_module(f"reconciler.cli.{_MODULES.get(name, name)}"), name))
    return found


def _print_version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if wanted:
        print_result(f"{runtime.tool_name()}\n")
        raise typer.Exit


def _options(
    *,
    version: Annotated[  # its callback acts
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
    debug: Annotated[  # taken before typer looks, so that it may stand anywhere
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
    log_format: Annotated[  # likewise
        LogFormat, typer.Option("--log-format", help="How to write to standard error.")
    ] = LogFormat.TEXT,
) -> None:
    """Bring Apache Hudi tables to a declared state: plan, review, apply."""


def main() -> int:
    """The command line of this process; its exit code."""
    signal.signal(signal.SIGTERM, _exit_on_signal)
    # A command ends before garbage matters, and nothing here multiplies matrices on many threads:
    # both cost a tenth of planning a table.
    gc.set_threshold(100_000, 50, 100)
    runtime.set_default_variable("OPENBLAS_NUM_THREADS", "1")
    return run(sys.argv[1:])


def run(arguments: Sequence[str]) -> int:
    """Run one command line and say what went wrong; the exit code."""
    interruption.reset()
    webhook.reset()
    with open_logs() as speak:
        return _run(arguments, speak)


def _run(arguments: Sequence[str], set_log_format: Callable[[LogFormat], None]) -> int:
    arguments, debug, formats = _split_global_options(arguments)
    DEBUG.set(debug)
    try:
        set_log_format(_choose_log_format(formats))
        if not arguments:
            build_program()(["--help"], standalone_mode=False, prog_name="reconciler")
            return UsageError.exit_code
        if "" in arguments:
            raise UsageError("an argument is empty; is a variable of the shell not set?")  # noqa: TRY301
        named = arguments[:1] if arguments[0] in COMMANDS else COMMANDS
        code = build_program(named)(arguments, standalone_mode=False, prog_name="reconciler")
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except Exception as error:  # noqa: BLE001 (the edge of the program)
        if not interruption.is_interrupted():
            failed = report_error(error)
            webhook.report_failure(error)
            return failed
        code = _INTERRUPTED
    if code == _INTERRUPTED:  # newer typers return it, older ones raise
        log_message(interruption.add_advice("interrupted"), level="error", event="interrupted")
    return code if isinstance(code, int) else 0


def _split_global_options(
    arguments: Sequence[str],
) -> tuple[list[str], bool, list[str | None]]:
    """What is left without them, whether to debug, and the formats named (None: none was)."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept: list[str] = []
    formats: list[str | None] = []
    rest = iter(arguments[:end])
    for text in rest:
        name, equals, value = text.partition("=")
        if name == _LOG_FORMAT:
            formats.append(value if equals else next(rest, None))
        elif text != "--debug":
            kept.append(text)
    return [*kept, *arguments[end:]], "--debug" in arguments[:end], formats


def _choose_log_format(formats: Sequence[str | None]) -> LogFormat:
    """The last one named wins, as everywhere on the command line."""
    for value in reversed(formats):
        if value not in list(LogFormat):
            what = _LOG_FORMAT if value is None else f"{_LOG_FORMAT} {value}"
            raise UsageError(f"{what}: say one of {', '.join(LogFormat)}")
        return LogFormat(value)
    return LogFormat.TEXT


def _exit_on_signal(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Leave in good order: locks are released on the way out."""
    log_message(interruption.add_advice("told to stop"), level="error", event="interrupted")
    raise SystemExit(_TERMINATED)
