"""The command line: ``reconciler COMMAND``."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, Final, NoReturn

import typer

from reconciler.cli import interruption
from reconciler.cli.apply import apply
from reconciler.cli.comment import comment
from reconciler.cli.demo import demo
from reconciler.cli.failures import DEBUG, explain
from reconciler.cli.init import init
from reconciler.cli.lint import lint
from reconciler.cli.plan import plan
from reconciler.cli.show import show
from reconciler.cli.status import status
from reconciler.cli.terminal import emit, say
from reconciler.cli.unlock import unlock
from reconciler.errors import UsageError

_INTERRUPTED: Final = 128 + signal.SIGINT
_TERMINATED: Final = 128 + signal.SIGTERM

app = typer.Typer(
    name="reconciler",
    epilog="Exit codes: 0 fine or no changes, 1 error, 2 changes (plan --detailed-exitcode), "
    "3 blocked by policy, 4 stale in part or whole, 5 applied in part, 6 lock held or table busy, "
    "64 usage.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _command in (init, lint, plan, show, apply, status, comment, unlock, demo):
    app.command()(_command)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if wanted:
        from reconciler import world  # noqa: PLC0415 (package metadata is slow to read)

        emit(f"{world.tool()}\n")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[  # its callback acts
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
    debug: Annotated[  # taken before typer looks, so that it may stand anywhere
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Bring Apache Hudi tables to a declared state: plan, review, apply."""


def main() -> NoReturn:
    """The entry point of the command."""
    signal.signal(signal.SIGTERM, _terminate)
    # A command ends before garbage matters, and nothing here multiplies matrices on many threads:
    # both cost a tenth of planning a table.
    gc.set_threshold(100_000, 50, 100)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and say what went wrong; the exit code."""
    arguments, debug = _without_debug(arguments)
    DEBUG.set(debug)
    interruption.reset()
    try:
        if not arguments:
            app(["--help"], standalone_mode=False, prog_name="reconciler")
            return UsageError.exit_code
        if "" in arguments:
            raise UsageError("an argument is empty; is a variable of the shell not set?")  # noqa: TRY301
        code = app(arguments, standalone_mode=False, prog_name="reconciler")
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except Exception as error:  # noqa: BLE001 (the edge of the program)
        if not interruption.is_seen():
            return explain(error)
        code = _INTERRUPTED
    if code == _INTERRUPTED:  # newer typers return it, older ones raise
        say(interruption.line("interrupted"))
    return code if isinstance(code, int) else 0


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [text for text in arguments[:end] if text != "--debug"]
    return [*kept, *arguments[end:]], len(kept) != end


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Leave in good order: locks are released on the way out."""
    say(interruption.line("told to stop"))
    raise SystemExit(_TERMINATED)
