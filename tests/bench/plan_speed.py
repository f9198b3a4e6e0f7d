"""Measure the CPU of a clean plan: real Hudi 1.2.0 in a warm JVM against our whole process.

python -m tests.bench.plan_speed                          100 000 files in 1 000 partitions
python -m tests.bench.plan_speed --partitions 10000       1 000 000 files
python -m tests.bench.plan_speed --no-hudi                our side alone

The same table, the same machine, one run, medians of three. CPU seconds are user and system, of
the JVM while it schedules, of our process from its start to its end (imports included).
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.make_table import Shape, make_table
from tests.bench.versions import HUDI_VERSION
from tests.oracle.hudi import RealHudi, keep_commits

ROOT = Path(__file__).parents[2]
KEEP = 3


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU seconds, wall seconds, peak resident megabytes, and files that the plan removes."""

    cpu: float
    wall: float
    megabytes: float
    files: int


def our_plans(table: Path) -> tuple[Cost, Cost]:
    """Plan twice: without a remembered listing, and with that of the first plan."""
    with tempfile.TemporaryDirectory() as folder:
        return our_plan(table, Path(folder)), our_plan(table, Path(folder))


def our_plan(table: Path, folder: Path) -> Cost:
    """Run `reconciler plan` in a new process, from the spec file to plan.json.

    Listings are remembered below ``folder``.
    """
    spec = folder / "spec.yaml"
    spec.write_text(
        "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: bench}\n"
        f"spec: {{path: {table}, retention: {{commits: {KEEP}}}}}\n"
    )
    program = Path(sys.executable).parent / "reconciler"
    command = [str(program), "plan", str(spec), "-o", str(folder / "p.json")]
    started = time.perf_counter()
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"reconciler plan ended with {process.returncode}")
    impact = json.loads((folder / "p.json").read_bytes())["tables"][0]["impact"]
    return Cost(
        cpu=usage.ru_utime + usage.ru_stime,
        wall=time.perf_counter() - started,
        megabytes=usage.ru_maxrss / 1024,
        files=impact["filesRemoved"],
    )


def hudi_plan(table: Path, times: int) -> list[Cost]:
    """Run scheduleTableService(CLEAN) in a warm JVM, without counting the first call."""
    hudi = RealHudi(HUDI_VERSION, heap="4g!", timeout=3600)
    try:
        known = hudi.table(table, options={"hoodie.metadata.enable": "false"})
        usual = {"hoodie.embed.timeline.server": "true", **keep_commits(KEEP)}
        taken = hudi.timed_clean_plan(known, usual, times + 1)
    finally:
        hudi.close()
    if any(one["instant"] is None for one in taken):
        raise SystemExit("Hudi planned nothing")
    return [Cost(cpu=t["cpu"], wall=t["wall"], megabytes=0, files=t["files"]) for t in taken[1:]]


def median(costs: list[Cost]) -> Cost:
    """Return the median of each number; all must have planned the same."""
    if len({cost.files for cost in costs}) != 1:
        raise SystemExit(f"plans differ: {[cost.files for cost in costs]}")
    return Cost(
        cpu=statistics.median(c.cpu for c in costs),
        wall=statistics.median(c.wall for c in costs),
        megabytes=statistics.median(c.megabytes for c in costs),
        files=costs[0].files,
    )


def main() -> None:
    """Print a line per side and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--no-hudi", action="store_true")
    arguments = parser.parse_args()
    shape = Shape(
        partitions=arguments.partitions, groups=arguments.groups, versions=arguments.versions
    )
    table = ROOT / ".bench" / f"{shape.partitions}x{shape.groups}x{shape.versions}"
    if not (table / ".hoodie" / "timeline").is_dir():
        print(f"making {shape.files} files in {shape.partitions} partitions", file=sys.stderr)
        make_table(table, shape)
    compileall.compile_dir(ROOT / "reconciler", quiet=1)  # as pip leaves an installed package
    pairs = [our_plans(table) for _ in range(arguments.times)]
    ours, second = (median(list(costs)) for costs in zip(*pairs, strict=True))
    for name, cost in (("reconciler plan", ours), ("a second plan", second)):
        print(f"{name:17} {cost.cpu:8.2f} CPU s {cost.wall:8.2f} s {cost.megabytes:7.0f} MB")
    print(f"the second takes {second.cpu / ours.cpu:.2f} of the first's CPU")
    if arguments.no_hudi:
        return
    hudi = median(hudi_plan(table, arguments.times))
    print(f"Hudi 1.2.0, warm  {hudi.cpu:8.2f} CPU s {hudi.wall:8.2f} s")
    print(f"{hudi.cpu / ours.cpu:.1f} times less CPU; {ours.files} files to remove")
    if ours.files != hudi.files:
        raise SystemExit(f"Hudi plans {hudi.files} files")


if __name__ == "__main__":
    main()
