"""Find, build and start the programs of servers on the loopback address."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.selection import EVERY_CASE

CACHE: Final = Path(__file__).parents[2] / ".oracle"
_START_S: Final = 60
_BUILD_S: Final = 1800


class ServerUnavailableError(Exception):
    """The server could not be found, built or started; says why."""


def find_program(variable: str, folder: str, program: str, build: Callable[[Path], None]) -> Path:
    """Return the program of a server: what a variable names, or what was built before.

    ``folder``: its name in the folder of the Hudi bundles. ``program``: the path in it. ``build``
    makes it there; only ``./ci/test --all`` builds.
    """
    if named := os.environ.get(variable):
        if not os.access(named, os.X_OK):
            raise ServerUnavailableError(f"{variable} is set, but {named} is no program")
        return Path(named)
    place = CACHE.resolve() / folder
    place.mkdir(parents=True, exist_ok=True)
    with (place / "building").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # tests run in two processes
        if not (place / program).is_file():
            if not EVERY_CASE:
                raise ServerUnavailableError(f"{folder} is built under ./ci/test --all")
            build(place)
    return place / program


def build_with_go(folder: Path, module: str, variable: str) -> None:
    """Build the program of a Go module, with its version, into a folder."""
    command = [_find_tool("go", module, variable), "install", module]
    _run(command, os.environ | {"GOBIN": str(folder)})


def install_with_npm(folder: Path, package: str, variable: str) -> None:
    """Install an npm package, with its version, into a folder."""
    npm = _find_tool("npm", package, variable)
    _run([npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", package], os.environ)


def _find_tool(tool: str, target: str, variable: str) -> str:
    found = shutil.which(tool)
    if found is None:
        raise ServerUnavailableError(f"no {tool} to get {target}: install it, or set {variable}")
    return found


def _run(command: Sequence[str], environment: dict[str, str] | os._Environ[str]) -> None:
    done = subprocess.run(
        command,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=_BUILD_S,
        check=False,
    )
    if done.returncode:
        raise ServerUnavailableError(f"{' '.join(command)} failed: {done.stderr[-1500:]}")


def find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start_server(
    command: Sequence[str],
    port: int,
    log: Path,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a server and wait until it answers at its port; raises ServerUnavailableError.

    ``folder``: the one that it works in, by default that of this process.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=output,
            env=os.environ | (environment or {}),
            cwd=folder,
        )
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        if process.poll() is not None:
            break
        time.sleep(0.02)
    process.kill()
    process.wait(10)
    raise ServerUnavailableError(f"{command[0]} did not start: {log.read_text()[-1500:]}")
