"""Measure planning of many small tables in one process, several at a time.

python -m tests.bench.many_tables                            500 tables, 1, 2, 4 and 8 at a time
python -m tests.bench.many_tables --tables 50 --latency 30   every call to the store takes 30 ms

The tables are copies of what real Hudi wrote: both types, all layouts, with and without a metadata
table. CPU seconds are user and system of the whole process, from its start to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler import api, runtime
from tests.storage_wrappers import RecordingStorage, StorageCall

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases" / "clean"
KINDS = (
    "cow_basic__0.15.0",
    "cow_basic__1.2.0",
    "cow_archived__0.15.0",
    "cow_archived__1.2.0",
    "cow_multi_fg__1.2.0",
    "cow_savepoint__0.15.0",
    "mor_logs__1.0.2",
    "mor_mdt__1.2.0",
)
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: ../tables/{name}
  timezone: UTC
  retention: {{commits: 2}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def make_tables(folder: Path, many: int) -> Path:
    """Create tables below a folder with a spec each; return the folder of specs."""
    specs = folder / "specs"
    specs.mkdir(parents=True, exist_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    for number in range(many):
        name = f"t{number:04}"
        table = folder / "tables" / name
        if not table.exists():
            _copy(folder, KINDS[number % len(KINDS)], table)
        (specs / f"{name}.yaml").write_text(SPEC.format(name=name))
    return specs


def _copy(folder: Path, kind: str, table: Path) -> None:
    """Create a table of a kind whose files are links to those of the first one."""
    first = folder / "kinds" / kind
    if not first.exists():
        with zipfile.ZipFile(CASES / kind / "table.zip") as archive:
            archive.extractall(first)
    shutil.copytree(first, table, copy_function=os.link)


def plan_them(specs: Path, at_once: int, latency_s: float) -> dict[str, int]:
    """Plan in this process; return the number of tables with changes and with errors."""
    if latency_s:
        opened, Slow.latency_s = runtime.open_storage, latency_s
        runtime.open_storage = lambda *args: Slow(opened(*args))
    made = api.plan(api.load_specs(specs), now=NOW, parallelism=at_once)
    return {
        "changes": sum(table.has_changes for table in made.tables),
        "errors": sum(table.error is not None for table in made.tables),
    }


class Slow(RecordingStorage):
    """A storage with the latency of a remote store."""

    latency_s = 0.0

    def _intercept(self, call: StorageCall, *rest: Any) -> Any:
        time.sleep(self.latency_s)
        return super()._intercept(call, *rest)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--tables", type=int, default=500)
    options.add_argument("--latency", type=float, default=0, help="milliseconds a call")
    options.add_argument("--at-once", type=int, nargs="*", default=[1, 2, 4, 8])
    options.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child is not None:
        print(json.dumps(plan_them(given.child, given.at_once[0], given.latency / 1000)))
        return
    for many in sorted({min(100, given.tables), given.tables}):
        specs = make_tables(ROOT / ".bench" / f"many-{many}", many)
        for at_once in given.at_once:
            print(f"{many} tables, {at_once} at a time: {_cost(specs, at_once, given.latency)}")


def _cost(specs: Path, at_once: int, latency: float) -> str:
    module = [sys.executable, "-m", "tests.bench.many_tables", "--child", str(specs)]
    command = [*module, "--at-once", str(at_once), "--latency", str(latency)]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    result = json.loads(process.stdout.read())
    _, _, usage = os.wait4(process.pid, 0)
    cpu, wall = usage.ru_utime + usage.ru_stime, time.perf_counter() - started
    return (
        f"{cpu:.1f} CPU s, {wall:.1f} s, {usage.ru_maxrss / 1024:.0f} MB peak; "
        f"{result['changes']} with changes, {result['errors']} with errors"
    )


if __name__ == "__main__":
    main()
