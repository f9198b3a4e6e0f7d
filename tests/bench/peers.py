"""Drive the compared systems, each in its own process, on tables with the same rows.

Tables are kept below a folder: ``rows/`` made once, ``loaded/SYSTEM/`` as the system wrote it,
``work/SYSTEM/`` what a turn rewrites: a copy, with links where files never change.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.bench.meter import Cost, Meter
from tests.bench.versions import DELTA, HUDI, ICEBERG

ROOT = Path(__file__).parents[2]
SYSTEMS = ("hudi", "hudi-hilbert", "delta", "iceberg", "ours", "spark")
#: a table that another system makes
MADE_BY = {"hudi-hilbert": "hudi", "ours": "hudi", "spark": "hudi"}
NAMES = {
    "hudi": f"{HUDI} z-order",
    "hudi-hilbert": f"{HUDI} Hilbert",
    "delta": f"{DELTA} z-order",
    "iceberg": f"{ICEBERG} z-order",
    "ours": "ours",
    "spark": "Spark 3.5 sorted write",
}


class Peer:
    """A process with a warm Spark session; ``folder``: of its tables."""

    PROGRAM: ClassVar[str] = "tests.bench.peer"

    def __init__(self, system: str, heap: str, folder: Path) -> None:
        self.system, self.folder = system, folder
        (folder / "work").mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", self.PROGRAM, system, heap, str(folder / "work")]
        usual = {"TZ": "UTC", "PYSPARK_PYTHON": sys.executable}
        with (folder / f"{system}.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env=os.environ | usual,
                text=True,
            )
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def table(self) -> Path:
        return self.folder / "work" / self.system.replace("-", "_")

    def fresh(self, rows: Path, key: str) -> None:
        """Restore the table of these rows as it was loaded."""
        maker = MADE_BY.get(self.system, self.system)
        kept = self.folder / "loaded" / maker
        if not kept.is_dir():
            if maker != self.system:
                raise SystemExit(f"{NAMES[maker]} has to load its table first")
            shutil.rmtree(self.table, ignore_errors=True)
            self.ask("load", rows=str(rows), key=key)
            kept.parent.mkdir(exist_ok=True)
            self.table.rename(kept)
        shutil.rmtree(self.table, ignore_errors=True)
        shutil.copytree(kept, self.table, copy_function=_copy)

    def cluster(
        self,
        columns: Sequence[str],
        target: int,
        *,
        exact: bool = False,
        queries: Sequence[str] = (),
    ) -> Cost:
        """Rewrite the table; ``exact``: to no more files than the system plans."""
        with Meter(self.pid) as meter:
            self.ask("cluster", columns=columns, target=target, exact=exact, queries=queries)
        return meter.cost

    def files(self) -> list[str]:
        found: list[str] = self.ask("files")
        return sorted(found)

    def ask(self, do: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        line = json.dumps({"do": do, "table": str(self.table), **arguments})
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._answer().get("answer")

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise SystemExit(f"{self.system} failed: see {self.folder / self.system}.log")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _copy(source: str, target: str) -> None:
    """Link data files, which no system changes, and copy others, which Hudi overwrites."""
    if source.endswith(".parquet"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)
