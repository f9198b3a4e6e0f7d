"""Runs a template's script where the repository is checked out, as a scheduler would."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.ci.lake import COMMAND, PROGRAMS, REAL, TOOLS


@dataclass(frozen=True)
class Said:
    code: int
    text: str


def run(command: list[str], folder: Path, **variables: str) -> Said:
    """The command with nothing in its environment but what is given and where programs are."""
    environment = {
        **REAL,
        "PATH": f"{COMMAND}:{PROGRAMS}:{TOOLS}",
        "HOME": str(folder),
        "JAVA_HOME": os.environ.get("JAVA_HOME", ""),
        "GIT_CONFIG_GLOBAL": os.devnull,
        **variables,
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Said(done.returncode, done.stdout)
