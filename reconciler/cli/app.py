"""The command line: ``reconciler COMMAND``."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from reconciler.lazy_dataclass import dataclass
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

#: the first paragraph of each command's help, which a list of all shows without importing them;
#: a command is the function of this name in the module of this name, or of another
COMMANDS: Final[Mapping[str, str]] = {
    "init": "Write a commented spec. With --from, write specs whose plans are empty for their "
    "tables.",
    "lint": "Check spec files. Every problem is listed with file, line and column.",
    "fmt": "Write specs, policies and environments in one canonical form, and print the files' "
    "names.",
    "plan": "Compare tables with their specs and plan what must change. Changes no table.",
    "show": "Show a saved plan. Reads no table, so an old plan can be shown too.",
    "diff": "Compare two plans: which tables, steps and files are new, gone or the same, and why.",
    "apply": "Execute a reviewed plan, and nothing beyond it.",
    "status": "Show table health and drift: pending work, savepoints, and differences from specs.",
    "explain": "Say why a file, an instant or a partition of a table stays or goes. Changes no "
    "table.",
    "history": "Show what was applied to a table, by whom, from which plan and commit. Changes no "
    "table.",
    "report": "Write HTML pages: index.html with all tables, and a page for each. Changes no "
    "table.",
    "verify": "Compare the metadata table and the index with folders, footers and keys. Changes no "
    "table.",
    "advise": "Propose clustering and index columns for the queries of specs, --query or event "
    "logs.",
    "simulate": "Show what tables would keep with other retentions, and read in other layouts.",
    "options": "Print the options that align Hudi's own writers with specs, with the reasons.",
    "read": "Print the rows of a table. Needs no Hudi jar and changes nothing.",
    "write": "Write rows into a table, all or none. The table is created if it does not exist.",
    "comment": "Post a plan or result to its pull request, as one comment that is edited in place.",
    "sync": "Bring the partitions in the catalogs of tables to those of the tables. No file is "
    "touched.",
    "unlock": "Remove a table's lock, after showing who holds it and since when.",
    "demo": "Create a small table and bring it from first rows to clustered, indexed and clean "
    "files.",
}
_MODULES: Final = {"demo": "demo.command", "options": "writer_options"}
#: options that need no command
_ABOUT_ALL: Final = ("-h", "--help", "--version")
#: the variable with which shells ask for completions
_COMPLETION: Final = "_RECONCILER_COMPLETE"
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


def build_program(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the program with these commands. Modules of other commands are not imported: slow."""
    program = _build_root()
    for name in commands:
        program.command()(
            getattr(import_module(f"reconciler.cli.{_MODULES.get(name, name)}"), name)
        )
    return program


def build_outline() -> typer.Typer:
    """Return a program that lists its commands and runs none of them."""
    program = _build_root()
    for name, summary in COMMANDS.items():
        program.command(name, help=summary)(_do_nothing)
    return program


def _do_nothing() -> None:
    """Stand for any command."""


def _build_root() -> typer.Typer:
    program = typer.Typer(
        name="reconciler",
        epilog=_EXIT_CODES,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    program.callback()(_options)
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
        if not arguments and _COMPLETION not in runtime.environment():
            build_outline()(["--help"], standalone_mode=False, prog_name="reconciler")
            return UsageError.exit_code
        if "" in arguments:
            raise UsageError("an argument is empty; is a shell variable unset?")  # noqa: TRY301
        program = _choose_program(arguments)
        code = program(arguments, standalone_mode=False, prog_name="reconciler")
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


def _choose_program(arguments: Sequence[str]) -> typer.Typer:
    """Return the program with as few commands as these arguments need."""
    if arguments and arguments[0] in COMMANDS:
        return build_program(arguments[:1])
    if arguments and arguments[0] in _ABOUT_ALL and _COMPLETION not in runtime.environment():
        return build_outline()
    return build_program()


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
