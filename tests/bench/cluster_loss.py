"""Cluster a table on S3 with two Spark workers that share no disk, and kill one in the middle.

python -m tests.bench.cluster_loss                       4 000 000 rows
python -m tests.bench.cluster_loss --rows 400000 --no-kill

The workers are processes with a home, temporary files and a bare Python of their own, so ``--ship``
sends them what they need. One worker is killed with its executor when the first new file is on the
store. Rows before and after, stray objects and the next plan are checked; figures are printed, and
from Spark's event log the tasks that were lost.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.meter import Meter
from tests.oracle.faulty_runs import S3_ENVIRONMENT
from tests.servers.s3 import KEY, SECRET, S3Bucket, S3Server
from tests.servers.standalone import StandaloneCluster, wait_until
from tests.spark.clusters import make_environment

_SPEC: Final = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  table: {{type: COPY_ON_WRITE, version: 9, recordKey: [id], partitionBy: [p], ordering: [ts]}}
  files: {{target: {target}KiB, small: {small}KiB}}
  clustering: {{columns: [v], when: {{overlapAbove: 1.5}}}}
  retention: {{commits: 1}}
  concurrency: {{lock: {{provider: storage}}}}
"""
_PARTITIONS: Final = 4
#: of a file, so that a partition has several
_ROWS_PER_KIB: Final = 250
_SEED: Final = 19
#: odd 64-bit numbers that mix the columns of a row
_MIXERS: Final = {
    "id": 0x9E3779B97F4A7C15,
    "v": 0xC2B2AE3D27D4EB4F,
    "ts": 0x165667B19E3779F9,
}
_TIMEOUT_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Rows:
    """The number of rows, and two sums of hashes over them, which know no order."""

    count: int
    total: int
    mixed: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a bucket, the folder of its spec, and botocore's own client."""

    folder: Path
    bucket: S3Bucket
    client: Any

    def run(self, *arguments: str) -> str:
        """Run a command to its end, and return its standard output."""
        command = [sys.executable, "-m", "reconciler", *arguments, "--env", "test"]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=make_environment(self.folder / "home", LAKE_KEY=KEY, LAKE_SECRET=SECRET),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def list_objects(self) -> dict[str, int]:
        """Return the keys of all objects of the table with their sizes."""
        pages = self.client.get_paginator("list_objects_v2")
        listed = pages.paginate(Bucket=self.bucket.name, Prefix="orders/")
        return {entry["Key"]: entry["Size"] for page in listed for entry in page["Contents"]}

    def list_data_files(self) -> list[str]:
        return [
            key
            for key in self.list_objects()
            if key.endswith(".parquet") and "/.hoodie/" not in key
        ]

    def read_rows(self) -> Rows:
        """Read the newest files of all groups, past reconciler."""
        count, sums = 0, np.zeros(2, np.uint64)
        for key in find_newest(self):
            body = self.client.get_object(Bucket=self.bucket.name, Key=key)["Body"].read()
            table = pq.read_table(pa.BufferReader(body), columns=[*_MIXERS])
            count += len(table)
            sums += hash_rows(table)
        return Rows(count, int(sums[0]), int(sums[1]))


def find_newest(table: Table) -> list[str]:
    """Return the data files that a reader takes: those of the newest completed commit.

    Every commit of this table writes or replaces all of it.
    """
    done = [
        found[1]
        for key in table.list_objects()
        if (found := re.search(r"/timeline/(\d+)_\d+\.(?:replace)?commit$", key))
    ]
    newest = max(done)
    return [key for key in table.list_data_files() if key.endswith(f"_{newest}.parquet")]


def hash_rows(table: pa.Table) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the sums of two hashes over the rows, modulo 2^64."""
    with np.errstate(over="ignore"):
        mixed = np.zeros(len(table), np.uint64)
        for name, mixer in _MIXERS.items():
            values = table[name].to_numpy().astype(np.uint64) + np.uint64(1)
            mixed = (mixed ^ values) * np.uint64(mixer)
            mixed ^= mixed >> np.uint64(29)
        return np.array([mixed.sum(), (mixed * mixed).sum()], np.uint64)


def make_rows(file: Path, count: int) -> Rows:
    """Write the rows of the table to a Parquet file."""
    random = np.random.default_rng(_SEED)
    ids = np.arange(count)
    parts = np.array([f"p{number}" for number in range(_PARTITIONS)])
    table = pa.table(
        {
            "id": ids,
            "p": parts[ids % _PARTITIONS],
            "v": random.integers(0, 1 << 40, count),
            "ts": ids + 1_700_000_000,
            "name": pc.binary_join_element_wise(
                "customer", pa.array(random.integers(0, 100_000, count)).cast(pa.string()), "-"
            ),
        }
    )
    pq.write_table(table, file)
    total, mixed = hash_rows(table)
    return Rows(count, int(total), int(mixed))


def start_apply(table: Table, cluster: StandaloneCluster) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "reconciler", "apply", "orders.yaml", "--auto-approve"]
    command += ["--env", "test", "--ship", "--stats", "--master", cluster.master]
    (table.folder / "events").mkdir()
    settings = {
        "spark.executor.memory": "1g",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (table.folder / "events").as_uri(),
    }
    command += [part for pair in settings.items() for part in ("--spark-conf", "=".join(pair))]
    with (table.folder / "out").open("w") as out, (table.folder / "err").open("w") as err:
        return subprocess.Popen(
            command,
            cwd=table.folder,
            env=make_environment(table.folder / "home", LAKE_KEY=KEY, LAKE_SECRET=SECRET),
            stdout=out,
            stderr=err,
            text=True,
        )


def kill_in_the_middle(
    table: Table, cluster: StandaloneCluster, process: subprocess.Popen[str]
) -> None:
    """Kill a worker with its executor when the first new file is on the store."""
    before = len(table.list_data_files())
    wait_until(
        lambda: len(table.list_data_files()) > before or process.poll() is not None, _TIMEOUT_S
    )
    assert process.poll() is None, "it has ended before"
    cluster.kill_worker()
    print(f"killed a worker with {len(table.list_data_files()) - before} new files there")


def tell_lost_tasks(table: Table) -> None:
    """Print the tasks that have not ended well, by Spark's event log."""
    (log,) = (table.folder / "events").iterdir()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    for event in events:
        if event["Event"] != "SparkListenerTaskEnd":
            continue
        reason, task = event["Task End Reason"]["Reason"], event["Task Info"]
        if reason != "Success":
            print(
                f"{event['Task Type']} of stage {event['Stage ID']}.{event['Stage Attempt ID']}, "
                f"task {task['Index']}.{task['Attempt']} on executor {task['Executor ID']}, "
                f"after {(task['Finish Time'] - task['Launch Time']) / 1000:.1f} s: {reason}"
            )
    ended = Counter(
        (info["Stage ID"], info["Stage Attempt ID"], info["Number of Tasks"])
        for event in events
        if event["Event"] == "SparkListenerStageCompleted"
        for info in (event["Stage Info"],)
    )
    print("stages (id.attempt: tasks)", ", ".join(f"{i}.{a}: {n}" for i, a, n in sorted(ended)))


def check(table: Table, rows: Rows) -> None:
    """Check what is on the store; AssertionError says what is wrong."""
    found = table.read_rows()
    assert found == rows, f"rows differ: {found}, and {rows} before"
    keys = list(table.list_objects())
    attempts = Counter(
        re.sub(r"_[^_/]*_(\d+\.parquet)$", r"_\1", key) for key in table.list_data_files()
    )
    stray = [name for name, count in attempts.items() if count > 1]
    stray += [key for key in keys if "/.hoodie/.temp/" in key or "/.hoodie/.heartbeat/" in key]
    assert not stray, f"stray objects: {stray}"
    uploads = table.client.list_multipart_uploads(Bucket=table.bucket.name)
    assert not uploads.get("Uploads"), "an upload has not ended"
    completions = [key for key in keys if key.endswith(".replacecommit")]
    assert len(completions) == 1, f"completed clusterings: {completions}"
    (planned,) = json.loads(table.run("plan", "orders.yaml", "--format", "json"))["tables"]
    assert (planned["steps"], planned["error"]) == ([], None), planned


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--no-kill", action="store_true", help="let both workers live")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "store").mkdir()
        server = S3Server(folder / "store")
        try:
            run(folder, server, arguments.rows, kills=not arguments.no_kill)
        finally:
            server.stop()


def run(folder: Path, server: S3Server, count: int, *, kills: bool) -> None:
    bucket = server.make_bucket()
    table = Table(folder / "project", bucket, bucket.client())
    (table.folder / "environments").mkdir(parents=True)
    environment = S3_ENVIRONMENT.format(
        name="test", url=table.bucket.url, endpoint=table.bucket.endpoint
    )
    (table.folder / "environments" / "test.yaml").write_text(environment)
    target = max(count // _ROWS_PER_KIB, 1024)
    (table.folder / "orders.yaml").write_text(_SPEC.format(target=target, small=target // 2))
    rows = make_rows(table.folder / "rows.parquet", count)
    began = time.perf_counter()
    insert = ("write", "orders.yaml", "rows.parquet", "--operation", "bulk-insert")
    table.run(*insert, "--master", "local[2]")
    before = table.list_objects()
    print(
        f"wrote {count} rows into {len(table.list_data_files())} files, "
        f"{sum(before.values()) / 2**20:.0f} MiB, in {time.perf_counter() - began:.0f} s"
    )
    assert table.read_rows() == rows, "the write has lost rows"
    with StandaloneCluster(folder / "cluster", workers=2, memory="1500m", bare=True) as cluster:
        with Meter(os.getpid(), samples_cpu=True) as everything:
            process = start_apply(table, cluster)
            try:
                with Meter(process.pid, samples_cpu=True) as driver:
                    if kills:
                        kill_in_the_middle(table, cluster, process)
                    process.wait(_TIMEOUT_S)
            finally:
                process.kill()
                print((table.folder / "err").read_text(), (table.folder / "out").read_text())
        assert process.returncode == 0, f"exit code {process.returncode}"
    print(f"driver           {driver.cost}")
    print(f"with the cluster {everything.cost} and the store")
    tell_lost_tasks(table)
    check(table, rows)
    print(f"rows right: {rows}; nothing stray, and the next plan is empty")


if __name__ == "__main__":
    main()
