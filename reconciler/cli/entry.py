"""Where the program starts and ends: reading its modules takes long enough to be interrupted."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import Final, NoReturn

_EXIT_FAILED: Final = 1
_EXIT_INTERRUPTED: Final = 130


class _ExitHandler:
    """The last of what is called at exit: it ends the process, the interpreter with it.

    Threads of Arrow may let go of Python's objects a moment after a command is done; where the
    interpreter is being taken down by then they abort the process, whatever its exit code was.
    """

    code: int = _EXIT_FAILED

    def __call__(self) -> NoReturn:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, AttributeError, ValueError):  # full, not there, or closed
                stream.flush()
        os._exit(self.code)


def main() -> NoReturn:
    """The entry point of the command."""
    ending = _ExitHandler()
    atexit.register(ending)  # what is registered first is called last
    ending.code = run_command()
    sys.exit(ending.code)


def run_command() -> int:
    """The command; its exit code."""
    try:
        from reconciler.cli.app import main as command  # noqa: PLC0415 (this is what takes long)

        return command()
    except KeyboardInterrupt:
        with suppress(OSError, AttributeError):  # full, or closed
            sys.stderr.write("interrupted\n")
            sys.stderr.flush()
        return _EXIT_INTERRUPTED
    except SystemExit as end:  # nobody reads its output any more
        return end.code if isinstance(end.code, int) else int(end.code is not None)
