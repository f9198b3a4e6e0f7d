"""Entry point of the program, which handles Ctrl-C also while modules are imported."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import Final, NoReturn

from reconciler.cli.pandas_import import leave_pandas_out

_EXIT_FAILED: Final = 1
_EXIT_INTERRUPTED: Final = 130


class _ExitHandler:
    """The last exit handler: it ends the process without taking the interpreter down.

    Arrow's threads may release Python objects a moment after a command is done. If the interpreter
    is being taken down by then, they abort the process, whatever its exit code was.
    """

    code: int = _EXIT_FAILED

    def __call__(self) -> NoReturn:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, AttributeError, ValueError):  # full, missing or closed
                stream.flush()
        os._exit(self.code)


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    ending = _ExitHandler()
    atexit.register(ending)  # the first handler registered is the last one called
    leave_pandas_out()
    ending.code = run_command()
    sys.exit(ending.code)


def run_command() -> int:
    """Run the command line and return its exit code."""
    try:
        from reconciler.cli.app import main as command  # noqa: PLC0415 (slow to import)

        return command()
    except KeyboardInterrupt:
        with suppress(OSError, AttributeError):  # full or closed
            sys.stderr.write("interrupted\n")
            sys.stderr.flush()
        return _EXIT_INTERRUPTED
    except SystemExit as end:  # the reader of the output has ended
        return end.code if isinstance(end.code, int) else int(end.code is not None)
