"""Measure a whole command, from its start until its last process has ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench.meter import Cost, Meter

_RUNNER: Final = Path(__file__).with_name("reaped_run.py")
#: an environment whose programs are those beside Python, so that no Java is found
NO_JAVA: Final = {"PATH": str(Path(sys.executable).parent), "JAVA_HOME": ""}
_SHOWN_CHARS: Final = 3000


def measure_command(
    command: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None
) -> Cost:
    """Run a command; SystemExit with the end of its output if it fails.

    CPU seconds are exact, also those of a JVM that outlives the command. Memory is that of all
    processes together, as looked at five times a second, or that of the greatest if it is more.
    """
    with tempfile.TemporaryDirectory() as folder:
        report, output = Path(folder, "report.json"), Path(folder, "output")
        with output.open("w") as sink:
            process = subprocess.Popen(
                [sys.executable, "-I", str(_RUNNER), str(report), *command],
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=os.environ | (environment or {}),
            )
            with Meter(process.pid) as meter:
                process.wait()
        said = output.read_text(errors="replace")[-_SHOWN_CHARS:]
        found = json.loads(report.read_bytes()) if report.is_file() else {"code": "no report"}
        if found["code"] != 0:
            raise SystemExit(f"{' '.join(command)} ended with {found['code']}:\n{said}")
    return Cost(
        wall=found["wall"],
        cpu=found["cpu"],
        megabytes=max(found["megabytes"], meter.cost.megabytes),
    )
