"""Measure the memory of plan, status and apply over many tables on a real S3 server.

python -m tests.bench.many_on_s3                    50, 200 and 500 tables
python -m tests.bench.many_on_s3 --tables 50 100

One process works on all tables. Its memory must not grow with their number, but for what the plan
itself holds. Ends with 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

from tests.bench.bucket_tables import BenchBucket, bench_bucket, make_bucket_table
from tests.bench.make_table import Shape
from tests.bench.measured_run import ROOT, Limits, Run, run_reconciler

SHAPE = Shape(partitions=4, groups=2, versions=4)
BLOCKS = """\
  timezone: UTC
  retention: {commits: 2}
  concurrency: {lock: {provider: filesystem, singleWriter: true}}
"""
#: megabytes that each table may add: its plan and its result
FOR_EACH_TABLE = 0.1
#: megabytes of two more clients: one serves 64 tables, and the next starts before it is gone
FOR_CLIENTS = 40


def name_table(number: int) -> str:
    return f"t{number:04}"


def make_tables(bench: BenchBucket, many: int) -> None:
    """Make tables whose data files are links to those of the first one, with a spec each."""
    first = bench.objects / "first"
    if not first.exists():
        make_bucket_table(first, SHAPE, with_metadata=True)
    for number in range(many):
        table = bench.objects / name_table(number)
        if not table.exists():
            shutil.copytree(first, table, copy_function=os.link)
            # versitygw replaces a file by another one, so that the others keep theirs
            bench.write_spec(table.name, BLOCKS)


def measure(bench: BenchBucket, many: int, at_once: int, *, with_apply: bool) -> dict[str, float]:
    """Plan and apply some tables and read their status; return the megabytes of each command."""
    make_tables(bench, many)
    some = ["--parallelism", str(at_once)]
    commands = {
        "plan": ["plan", "specs", "--env", "bench", "--stats", "-o", "plan.json", *some],
        "status": ["status", "specs", "--env", "bench", "--format", "json", *some],
        "apply": ["apply", "plan.json", "--stats", "--format", "json", *some],
    }
    if not with_apply:
        del commands["apply"]
    runs: dict[str, Run] = {}
    for name, command in commands.items():
        runs[name] = run_reconciler(bench, *command)
        print(f"{many} tables, {name:7}{runs[name].describe()}", flush=True)
    if with_apply:
        results = json.loads(runs["apply"].output)["tables"]
        removed = sum(table["filesRemoved"] for table in results)
        print(f"    {removed} files removed of {len(results)} tables")
    for number in range(many):
        shutil.rmtree(bench.objects / name_table(number))
    return {name: run.megabytes for name, run in runs.items()}


def main() -> None:
    """Measure so many tables, and end with 1 if memory grows with their number."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, nargs="*", default=[50, 200, 500])
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--no-apply", action="store_true")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "many-on-s3")
    given = parser.parse_args()
    limits = Limits()
    with bench_bucket(given.folder) as bench:
        least = min(given.tables)
        first: dict[str, float] = {}
        for many in sorted(given.tables):
            found = measure(bench, many, given.at_once, with_apply=not given.no_apply)
            first = first or found
            for command, megabytes in found.items():
                most = first[command] + FOR_CLIENTS + FOR_EACH_TABLE * (many - least)
                limits.check(f"megabytes of {command}, {many} tables", megabytes, most)
    limits.end()


if __name__ == "__main__":
    main()
