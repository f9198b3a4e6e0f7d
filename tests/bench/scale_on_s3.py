"""Measure a plan and an apply of a large table on a real S3 server beside a bare listing.

python -m tests.bench.scale_on_s3                      1 000 000 files in 10 000 partitions
python -m tests.bench.scale_on_s3 --partitions 1000    100 000 files
python -m tests.bench.scale_on_s3 --table-version 6 --no-metadata --lock storage --pending 3

The files are links on the server's disk to a small one. A listing by s3fs alone and a plan take
turns, each in a process of its own. Then an apply deletes one version of every file group. Requests
are counted by ``--stats`` and by the server. Ends with 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from tests.bench.bucket_tables import BenchBucket, bench_bucket, make_bucket_table
from tests.bench.make_table import Shape
from tests.bench.measured_run import ROOT, Limits, Run, run_process, run_reconciler, stop_reconciler

NAME = "t"
OPTIONS = ("--env", "bench", "--stats")
#: the goals: megabytes of a plan, its time in those of a bare listing, requests of a whole apply
MOST_MEGABYTES, MOST_TIMES, PER_FILE, CONSTANT = 1500, 3.0, 1.2 / 1000, 40
#: what an apply may need more for the timeline and the metadata table, and files a deletion takes
FOR_CHANGES, BULK = 200, 1000
MOST_SECONDS_TO_STOP = 15
LISTING = """\
import json, sys, s3fs
client = s3fs.S3FileSystem(
    skip_instance_cache=True, use_listings_cache=False, **json.loads(sys.argv[1])
)
print(len(client.find(sys.argv[2], detail=True)))
"""
LOCKS = {
    "file": "{provider: filesystem, singleWriter: true}",
    "storage": "{provider: storage}",
}


def list_bare(bench: BenchBucket) -> Run:
    """List the table flat by s3fs alone, as an object for each file."""
    options = dict(bench.bucket.options)
    options["client_kwargs"] = json.loads(options["client_kwargs"])
    command = [sys.executable, "-c", LISTING, json.dumps(options), f"{bench.bucket.name}/{NAME}"]
    return run_process(bench, command)


def measure_plans(bench: BenchBucket, shape: Shape, turns: int, pending: int) -> Limits:
    """Let a bare listing and a plan take turns."""
    limits = Limits()
    for _ in range(turns):
        bare = list_bare(bench)
        print(f"s3fs alone {bare.describe()}, {int(bare.output)} objects", flush=True)
        plan = run_reconciler(bench, "plan", "specs", *OPTIONS, "-o", "plan.json")
        print(f"plan       {plan.describe()}", flush=True)
        limits.check("times the bare listing", plan.wall / bare.wall, MOST_TIMES)
        limits.check("megabytes of the plan", plan.megabytes, MOST_MEGABYTES)
        most = PER_FILE * shape.files + 2 * pending + CONSTANT
        limits.check("requests of the plan", plan.requests.total(), most)
        limits.check("requests that --stats lacks", plan.requests.total() - (plan.stats or 0), 0)
    impact = json.loads((bench.folder / "plan.json").read_bytes())["tables"][0]["impact"]
    size = (bench.folder / "plan.json").stat().st_size / 2**20
    print(f"    {impact['filesRemoved']} files to remove, plan.json of {size:.1f} MiB")
    return limits


def measure_apply(
    bench: BenchBucket, shape: Shape, pending: int, limits: Limits, *, was_stopped: bool
) -> None:
    """Apply the plan, and plan again.

    ``was_stopped``: earlier applies have begun the clean, so that this one lists the table for the
    plan, for what they have left, and for what else the plan names.
    """
    removed = shape.partitions * shape.groups
    done = run_reconciler(bench, "apply", "plan.json", "--stats", "--format", "json")
    print(f"apply      {done.describe()}", flush=True)
    print("".join(f"    | {line}\n" for line in done.said.splitlines()), end="")
    stays = sum(1 for _file in (bench.objects / NAME).glob("p*/*.parquet"))
    limits.check("files too many", stays - (shape.files - removed), 0)
    limits.check("files too few", shape.files - removed - stays, 0)
    listings = 3 if was_stopped else 1
    most = PER_FILE * shape.files * listings + 2 * pending + removed / BULK + FOR_CHANGES
    limits.check("requests of the apply", done.requests.total(), most)
    limits.check("requests that --stats lacks", done.requests.total() - (done.stats or 0), 0)
    again = run_reconciler(bench, "plan", "specs", *OPTIONS, "-o", "again.json")
    print(f"plan again {again.describe()}")
    steps = json.loads((bench.folder / "again.json").read_bytes())["tables"][0]["steps"]
    limits.check("steps that are left", len(steps), 0)


def measure_stops(bench: BenchBucket, limits: Limits) -> None:
    """Stop a plan while it lists, and applies while they list and delete."""
    plan = ("plan", "specs", *OPTIONS, "-o", "stopped.json")
    apply = ("apply", "plan.json", "--stats")
    stops = (
        (plan, "", signal.SIGINT, 4.0),
        (plan, "", signal.SIGTERM, 4.0),
        (apply, "reading the table again", signal.SIGINT, 2.0),
        (apply, "deleting files", signal.SIGINT, 0.7),
        (apply, "deleting files", signal.SIGTERM, 0.7),
    )
    for command, after, number, wait_s in stops:
        stopped = stop_reconciler(bench, *command, after=after, number=number, wait_s=wait_s)
        print(
            f"{command[0]}, {number.name} {wait_s} s after {after!r}: exit code {stopped.code} "
            f"after {stopped.seconds:.1f} s"
        )
        print("".join(f"    | {line}\n" for line in stopped.said.splitlines()), end="", flush=True)
        limits.check("seconds to the end", stopped.seconds, MOST_SECONDS_TO_STOP)
        limits.check("exit code that is no interruption", stopped.code not in (130, 143), 0)


def main() -> None:
    """Make a table, measure it, and end with 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--table-version", type=int, default=9, choices=(6, 8, 9))
    parser.add_argument("--no-metadata", action="store_true")
    parser.add_argument("--lock", choices=tuple(LOCKS), default="file")
    parser.add_argument("--cleans", type=int, default=3, help="completed cleans on the timeline")
    parser.add_argument("--pending", type=int, default=0, help="writes that are inflight")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--no-apply", action="store_true")
    parser.add_argument("--stops", action="store_true", help="stop runs before the apply")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "s3")
    given = parser.parse_args()
    shape = Shape(
        partitions=given.partitions,
        groups=given.groups,
        versions=given.versions,
        table_version=given.table_version,
    )
    with bench_bucket(given.folder) as bench:
        began = time.perf_counter()
        make_bucket_table(
            bench.objects / NAME,
            shape,
            with_metadata=not given.no_metadata,
            cleans=given.cleans,
            pending=given.pending,
        )
        print(f"made {shape.files} files in {time.perf_counter() - began:.0f} s", flush=True)
        # the write before the earliest that is kept stays too, and the one before it goes
        bench.write_spec(
            NAME,
            f"  timezone: UTC\n  retention: {{commits: {shape.versions - 2}}}\n"
            f"  concurrency: {{lock: {LOCKS[given.lock]}}}\n",
        )
        limits = measure_plans(bench, shape, given.turns, given.pending)
        if given.stops:
            measure_stops(bench, limits)
        if not given.no_apply:
            measure_apply(bench, shape, given.pending, limits, was_stopped=given.stops)
    limits.end()


if __name__ == "__main__":
    main()
