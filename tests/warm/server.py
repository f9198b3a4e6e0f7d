"""Reads every module of the command, then forks for each that is asked for; see the package."""

from __future__ import annotations

import atexit
import os
import pkgutil
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TextIO, cast

import reconciler

#: what the modules themselves read when they need it
LATE = (
    "fastavro",
    "jsonschema",
    "pyarrow.compute",
    "pyarrow.parquet",
    "urllib.request",
    "yaml",
)


def main(listener: socket.socket, installed: str) -> None:
    """Serve until standard input ends."""
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if module.name.rpartition(".")[2] not in ("spark", "__main__"):
            import_module(module.name)
    for name in LATE:
        import_module(name)
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(connection, installed)
        connection.close()


def _answer(connection: socket.socket, installed: str) -> None:
    """Be the command that is asked for, and end."""
    code = 70
    try:
        header, files, _, _ = socket.recv_fds(connection, 8, 3)
        with connection.makefile("rb") as rest:
            said = rest.read(int.from_bytes(header, "big"))
        count, *words = said.decode(errors="surrogateescape").split("\0")
        arguments, folder, *variables = (*[words[: int(count)]], *words[int(count) :])
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variable.split("=", 1) for variable in variables)
        time.tzset()
        code = _run(arguments, installed)
    finally:
        connection.send(bytes([code & 0xFF]))
        os._exit(code)


def _run(arguments: Sequence[str], installed: str) -> int:
    if arguments[:1] == ["apply"]:
        return subprocess.run([installed, *arguments], check=False).returncode
    from reconciler.cli import entry  # noqa: PLC0415

    sys.argv = [installed, *arguments]
    sys.stdin = _file(0, "r", "strict")
    sys.stdout, sys.stderr = _file(1, "w", "strict"), _file(2, "w", "backslashreplace")
    code = entry.run_command()
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _file(number: int, mode: str, errors: str) -> TextIO:
    return cast("TextIO", open(number, mode, encoding="utf-8", errors=errors, closefd=False))


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        main(listening, sys.argv[2])
