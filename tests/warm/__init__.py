"""The command line without its start: a process that has read every module forks for each command.

Reading the modules is most of what a short command costs, and pipelines run hundreds of them.
Arguments, environment, folder and standard files are those of the program that stands for the
command, and so is the exit code. An ``apply`` is the installed program's: Java and forks go ill
together.
"""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: the command as installed
INSTALLED = Path(sys.executable).parent / "reconciler"


@contextmanager
def serving() -> Iterator[Path]:
    """A program to run in place of ``reconciler``, as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen(64)
        program = Path(folder) / "reconciler"
        client = shlex.join([sys.executable, "-IS", f"{ROOT}/tests/warm/client.py"])
        program.write_text(f'#!/bin/sh\nexec {client} {folder}/socket "$@"\n')
        program.chmod(0o755)
        with subprocess.Popen(
            [sys.executable, "-m", "tests.warm.server", str(listener.fileno()), str(INSTALLED)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        ) as server:
            listener.close()  # it is the server's now: where that has died, nobody waits for it
            yield program
            server.stdin.close()
