"""Two processes of reconciler and real Hudi at one table on S3, by each lock that they can share.

All three write and two of them apply at the same time, round after round. After every round real
Hudi reads exactly the rows that were written, and nobody ever held the lock beside another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final
from unittest.mock import patch

import reconciler
from reconciler.hudi_engine.model import HudiRelease, WriterEngine
from reconciler.hudi_engine.writer_options import make_writer_options
from reconciler.storage.open import open_storage
from tests.oracle.bundles import class_path
from tests.oracle.catalog_servers import HiveServer
from tests.oracle.faulty_runs import S3_ENVIRONMENT, find_s3a_jars, make_s3_settings
from tests.oracle.hudi import NOTHING_BY_ITSELF, HudiFailedError, RealHudi
from tests.oracle.java_classes import compile_classes
from tests.oracle.storage_lock_holder import LOCK_URL, serve_lock_file
from tests.servers.dynamodb import run_dynamodb
from tests.servers.s3 import KEY, SECRET, S3Bucket
from tests.servers.zookeeper import ZookeeperServer

_SPEC: Final = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  files: {target: 1MiB, small: 512KiB}
  clustering: {columns: [ts], when: always, afterCommits: 8}
  retention: {commits: 12}
  concurrency: {lock: LOCK, staleAfter: 1h}
"""
#: what Hudi says of a commit that loses to another, or of files that were replaced meanwhile
_CONFLICTS: Final = (
    "HoodieWriteConflictException",
    "HoodieClusteringUpdateException",
    "ConcurrentModificationException",
    "Cannot resolve conflicts",
    "Not allowed to update the clustering file group",
    "Error getting all file groups in pending clustering",
)
_RELEASES: Final = {"0.15.0": HudiRelease.R0_15, "1.2.0": HudiRelease.R1_2}
#: the locks, and the releases of Hudi whose own provider can be had
CASES: Final = (
    ("storage", "1.2.0"),
    ("zookeeper", "1.2.0"),
    ("zookeeper", "0.15.0"),
    ("implicit zookeeper", "1.2.0"),
    ("hivemetastore", "1.2.0"),
    ("dynamodb", "0.15.0"),
)
#: Hadoop's client hangs where it deletes the markers of folders on versitygw; and Hudi 1.2 leaves
#: about 50 connections a round open, so that 200 are used up after four
_S3A_SETTINGS: Final = {
    "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
    "spark.hadoop.fs.s3a.connection.maximum": "5000",
}
_COLUMNS: Final = ("id", "p", "ts", "x", "n")
_WRITE_S: Final = 300

Row = list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLock:
    """A lock in a running server: the spec's words, and what Hudi needs beside ``options``."""

    declared: str
    jars: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def run_lock_server(kind: str, folder: Path) -> Iterator[SharedLock]:
    """Run the server of a kind of lock; the lock of a store needs none."""
    match kind:
        case "storage":
            yield SharedLock(declared="{provider: storage, validity: 30s}")
        case "zookeeper" | "implicit zookeeper":
            place = (
                "basePath: /hudi/locks, key: orders" if kind == "zookeeper" else "implicit: true"
            )
            with ZookeeperServer.run(folder) as server:
                declared = f'{{provider: zookeeper, servers: "{server.servers}", {place}}}'
                yield SharedLock(declared=declared)
        case "hivemetastore":
            with HiveServer.start(folder, txn_timeout="60s") as server:
                declared = f'{{provider: hivemetastore, table: sales.orders, uri: "{server.uri}"}}'
                yield SharedLock(declared=declared)
        case _:
            # Hudi's client looks for a region although its options have one
            region = patch.dict(os.environ, {"AWS_REGION": "us-east-1"})
            with region, run_dynamodb(folder) as (url, _):
                place = f'table: locks, partitionKey: orders, region: us-east-1, endpoint: "{url}"'
                jars = (
                    class_path("org.apache.hudi", "hudi-aws", "0.15.0", alone=True),
                    class_path("com.amazonaws", "dynamodb-lock-client", "1.2.0"),
                )
                yield SharedLock(
                    declared=f"{{provider: dynamodb, {place}}}",
                    jars=os.pathsep.join(jars),
                    settings={
                        "hoodie.write.lock.dynamodb.billing_mode": "PAY_PER_REQUEST",
                        "hoodie.write.lock.dynamodb.table_creation_timeout": "60000",
                        "hoodie.aws.access.key": "k",
                        "hoodie.aws.secret.key": "very-secret",
                    },
                )


class OurProcess:
    """A process that writes and applies as reconciler does."""

    def __init__(self, folder: Path, name: str, record: Path) -> None:
        self.name = name
        self._log: IO[str] = (folder / f"{name}.log").open("w")
        keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "very-secret"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.oracle.locked_run", "orders.yaml", name, str(record)],
            cwd=folder,
            env={
                **os.environ,
                **keys,
                "LAKE_KEY": KEY,
                "LAKE_SECRET": SECRET,
                "PYTHONPATH": str(Path(__file__).parents[2]),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._read()

    def run(self, rows: list[Row]) -> dict[str, Any]:
        """Write rows and apply; return the tries of the write and the applies' exit codes."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(rows) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.kill()
        with self._process:  # waits, and closes its pipes
            pass
        self._log.close()

    def read_log(self) -> str:
        """Return the last that the process has said."""
        return Path(self._log.name).read_text()[-4000:]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"{self.name} ended:\n{self.read_log()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass(slots=True, kw_only=True)
class LockedTable:
    """One table, its three writers, and the rows that it must have. ``log``: a line a round."""

    hudi: RealHudi
    url: str
    options: Mapping[str, str]
    ours: tuple[OurProcess, ...]
    records: tuple[Path, ...]
    model: dict[str, Row] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def run_round(self, number: int) -> None:
        """Let all write at the same time, then compare the rows; raises AssertionError."""
        began = time.monotonic()
        told: dict[str, Any] = {}
        problems: list[BaseException] = []
        shares = {name: _make_rows(name, number) for name in ("hudi", "one", "two")}

        def work(name: str, run: Any) -> None:
            try:
                told[name] = run(shares[name])
            except BaseException as problem:  # noqa: BLE001 - raised where the test is
                problems.append(problem)

        runs = {"hudi": self._write_by_hudi, **{one.name: one.run for one in self.ours}}
        threads = [threading.Thread(target=work, args=run) for run in runs.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if problems:
            raise problems[0]
        for rows in shares.values():
            for row in rows:
                if row[2] > self.model.get(row[0], [0, 0, -1])[2]:
                    self.model[row[0]] = row
        held = self._check_holders()
        self.log.append(
            f"round {number}: {time.monotonic() - began:.0f} s, {told}, {held} times held"
        )
        self.assert_rows()
        for one in self.ours:
            *busy, last = told[one.name]["codes"]
            assert set(busy) <= {6}, self.log[-1]
            assert last in {0, 4}, f"{self.log[-1]}\n{one.read_log()}"

    def write_alone(self, number: int) -> None:
        """Let Hudi write the rows of a round while nobody else does."""
        rows = _make_rows("hudi", number)
        self._write_by_hudi(rows)
        self.model |= {row[0]: row for row in rows}

    def assert_rows(self) -> None:
        """Check that Hudi reads exactly the rows that were written."""
        found = self.hudi.rows_at(self.url, _COLUMNS)
        assert sorted(self.model.values(), key=repr) == found, "\n".join(self.log)

    def _write_by_hudi(self, rows: list[Row]) -> int:
        """Upsert until Hudi says that it is done; return the number of tries."""
        until, tries = time.monotonic() + _WRITE_S, 0
        while True:
            tries += 1
            try:
                self.hudi.ask("write", at=self.url, rows=rows, options=dict(self.options))
            except HudiFailedError as problem:
                told = " | ".join(problem.causes)
                if not any(word in told for word in _CONFLICTS) or time.monotonic() > until:
                    raise
                self.log.append(f"Hudi's try {tries}: {told[:200]}")
            else:
                return tries

    def _check_holders(self) -> int:
        """Return how often the lock was held so far; nobody held it beside another."""
        held = []
        for record in self.records:
            signs = [line.split() for line in record.read_text().splitlines()]
            taken = [int(at) for sign, at in signs if sign == "+"]
            given = [int(at) for sign, at in signs if sign == "-"]
            assert len(taken) == len(given), f"{record.name}: held still"
            held += [(*each, record.name) for each in zip(taken, given, strict=True)]
        held.sort()
        both = [pair for pair in pairwise(held) if pair[1][0] < pair[0][1]]
        assert both == [], f"held at the same time: {both}"
        return len(held)


@contextmanager
def locked_table(kind: str, version: str, bucket: S3Bucket, folder: Path) -> Iterator[LockedTable]:
    """Run a lock's server, two processes of ours and a release of Hudi for a table in a bucket.

    Variables LAKE_KEY and LAKE_SECRET have the bucket's credentials.
    """
    (folder / ".git").mkdir(parents=True)
    (folder / "environments").mkdir()
    (folder / "environments" / "prod.yaml").write_text(
        S3_ENVIRONMENT.format(name="prod", url=bucket.url, endpoint=bucket.endpoint)
    )
    records = tuple(folder / f"{name}.record" for name in ("hudi", "one", "two"))
    for record in records:
        record.touch()
    with ExitStack() as running:
        lock = running.enter_context(run_lock_server(kind, folder))
        (folder / "orders.yaml").write_text(_SPEC.replace("LOCK", lock.declared))
        options = _make_hudi_options(folder, version, lock, records[0])
        if kind == "storage":
            storage = open_storage(f"{bucket.url}/orders", bucket.options)
            url = running.enter_context(serve_lock_file(storage))
            running.enter_context(patch.dict(os.environ, {LOCK_URL: url}))
        classes = ["RecordingLock", *(["S3StorageLockClient"] if kind == "storage" else [])]
        (folder / "classes").mkdir()
        compile_classes(version, folder / "classes", *classes)
        jars = os.pathsep.join(filter(None, (str(folder / "classes"), lock.jars, find_s3a_jars())))
        hudi = RealHudi(version, jars=jars, settings=make_s3_settings(bucket) | _S3A_SETTINGS)
        running.callback(hudi.close)
        url = f"s3a://{bucket.name}/orders"
        table = LockedTable(hudi=hudi, url=url, options=options, ours=(), records=records)
        table.write_alone(0)
        ours = [OurProcess(folder, record.stem, record) for record in records[1:]]
        for one in ours:
            running.callback(one.close)
        table.ours = tuple(ours)
        yield table


def _make_hudi_options(
    folder: Path, version: str, lock: SharedLock, record: Path
) -> dict[str, str]:
    """Return a writer's options, as ``reconciler options`` prints them, with a recorded lock."""
    (spec,) = reconciler.load_specs(folder / "orders.yaml", env="prod")
    made = make_writer_options(spec, WriterEngine.SPARK, _RELEASES[version])
    assert made.error is None, made.error
    options = NOTHING_BY_ITSELF | {option.key: option.value for option in made.options}
    options |= {
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.write.lock.num_retries": "60",
        "hoodie.write.lock.client.num_retries": "60",
        "hoodie.write.lock.wait_time_ms_between_retry": "500",
        "hoodie.write.num.retries.on.conflict.failures": "0",
        "test.lock.provider": options["hoodie.write.lock.provider"],
        "test.lock.record": str(record),
        "hoodie.write.lock.provider": "RecordingLock",
    }
    if version == "0.15.0":  # by default the later write wins there, whatever the rows say
        payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        options["hoodie.datasource.write.payload.class"] = payload
    return options | dict(lock.settings)


def _make_rows(name: str, number: int) -> list[Row]:
    """Return a new row of a writer, and rows that others write too: the latest one wins."""
    ts = number * 10 + ("hudi", "one", "two").index(name)
    keys = [(f"{name}-{number}", "ab"[number % 2])]
    if name != ("one", "two")[number % 2]:  # another time it is in nobody's way
        keys.append(("shared", "a"))
    return [[key, partition, ts, f"{name} {number}", float(ts)] for key, partition in keys]
