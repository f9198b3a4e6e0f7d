"""Where the program starts: reading its modules takes long enough to be interrupted."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final, NoReturn

_INTERRUPTED: Final = 130


def main() -> NoReturn:
    """The entry point of the command."""
    try:
        from reconciler.cli.app import main as command  # noqa: PLC0415 (this is what takes long)

        command()
    except KeyboardInterrupt:
        with suppress(OSError, AttributeError):  # full, or closed
            sys.stderr.write("interrupted\n")
            sys.stderr.flush()
        sys.exit(_INTERRUPTED)
