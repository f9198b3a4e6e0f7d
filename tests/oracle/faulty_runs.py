"""Runs on a real S3 server whose requests fail at random, and real Hudi that reads after each.

A story is ten runs of the command line: writes, plans, applies and reads of one table.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.storage.hadoop_settings import make_hadoop_settings
from tests.command import run
from tests.oracle.bundles import class_path
from tests.oracle.hudi import RealHudi
from tests.servers.proxy import FaultyProxy, make_random_faults
from tests.servers.s3 import S3Bucket, S3Server

_COLUMNS: Final = ("id", "p", "v", "ts")
#: the environment of a table on S3, whose credentials are in variables
S3_ENVIRONMENT: Final = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {{name: {name}}}
spec:
  pattern: {url}/{{name}}
  timezone: UTC
  storageOptions:
    endpoint_url: {endpoint}
    key: {{fromEnv: LAKE_KEY}}
    secret: {{fromEnv: LAKE_SECRET}}
    client_kwargs: '{{"region_name": "us-east-1"}}'
"""
_RETRIES: Final = """\
    requestTimeout: 5s
    retryFor: {budget}
"""
_SPEC: Final = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  table: {type: COPY_ON_WRITE, version: 9, recordKey: [id], partitionBy: [p], ordering: [ts]}
  files: {target: 1MiB, small: 512KiB}
  clustering: {columns: [v], when: always}
  index: {columns: [v]}
  retention: {commits: 1}
  concurrency: {lock: LOCK, staleAfter: 1h}
"""
_LOCKS: Final = ("{provider: storage}", "{provider: filesystem, singleWriter: true}")
#: how long failed requests are repeated: long enough, and hardly at all
_BUDGETS: Final = {"patient": "30s", "hasty": "0s"}

_EXECUTORS: Final = ("spark", "local")

_ERROR: Final = re.compile(r"^(?:error: |  ! error  )", re.MULTILINE)
_COMMIT: Final = re.compile(r"^orders/\.hoodie/timeline/\d+_\d+\.(delta)?commit$")

Rows = dict[int, tuple[int, str, int, int]]


def find_s3a_jars() -> str:
    """Return Hadoop's client for S3, of the Hadoop in Spark 3.5; BundleUnavailableError if none."""
    modules = (
        ("org.apache.hadoop", "hadoop-aws", "3.3.4"),
        ("com.amazonaws", "aws-java-sdk-bundle", "1.12.262"),
    )
    return os.pathsep.join(class_path(*module, alone=True) for module in modules)


def make_s3_settings(bucket: S3Bucket) -> dict[str, str]:
    """Return Spark's settings for the server of a bucket."""
    derived = make_hadoop_settings(bucket.options, ["s3"])
    made = {name: value for name, (value, _) in derived.items()}
    return made | {"spark.hadoop.fs.s3a.connection.maximum": "200"}


@contextmanager
def hudi_on_s3(version: str, bucket: S3Bucket) -> Iterator[RealHudi]:
    """Run real Hudi for tables on the server of a bucket."""
    hudi = RealHudi(version, jars=find_s3a_jars(), settings=make_s3_settings(bucket))
    try:
        yield hudi
    finally:
        hudi.close()


@dataclass(slots=True)
class FaultyStory:
    """Ten runs of a table that is new, at requests that fail by a seed; ``log``: a line a run.

    ``bucket``: past the proxy. ``hudi`` reads there, too.
    """

    folder: Path
    bucket: S3Bucket
    proxy: FaultyProxy
    hudi: RealHudi
    seed: int
    log: list[str] = field(default_factory=list)
    errors: int = 0
    faults: int = 0
    _rows: Rows = field(default_factory=dict)
    _random: Random = field(default_factory=Random)

    def tell(self) -> None:
        """Run all; raises AssertionError with the seed and what was run."""
        self._random = Random(self.seed)
        self._put_files()
        try:
            self._insert(range(200))
            self._upsert()
            self._apply()
            self._read()
            self._delete()
            self._insert(range(1000, 1100))
            self._upsert()
            self._apply()
        except BaseException as problem:
            problem.add_note(f"seed {self.seed}:\n" + "\n".join(self.log))
            raise
        finally:
            self.proxy.faults.clear()

    def _put_files(self) -> None:
        (self.folder / ".git").mkdir(parents=True)
        (self.folder / "environments").mkdir()
        for name, budget in _BUDGETS.items():
            text = (S3_ENVIRONMENT + _RETRIES).format(
                name=name, url=self.bucket.url, endpoint=self.proxy.endpoint, budget=budget
            )
            (self.folder / "environments" / f"{name}.yaml").write_text(text)
        lock = self._random.choice(_LOCKS)
        (self.folder / "orders.yaml").write_text(_SPEC.replace("LOCK", lock))
        self.log.append(lock)

    # the runs

    def _insert(self, ids: range) -> None:
        rows = {i: (i, "ab"[i % 2], i * 7 % 100, 1) for i in ids}
        self._write("insert", rows)

    def _upsert(self) -> None:
        number = max(row[3] for row in self._rows.values()) + 1
        hit = self._random.sample(sorted(self._rows), 20)
        self._write("upsert", {i: (*self._rows[i][:2], number, number) for i in hit})

    def _delete(self) -> None:
        hit = self._random.sample(sorted(self._rows), 20)
        self._write("delete", {i: self._rows[i] for i in hit})

    def _write(self, operation: str, rows: Rows) -> None:
        listed = [list(values) for values in zip(*rows.values(), strict=True)]
        source = self.folder / "rows.parquet"
        pq.write_table(pa.table(dict(zip(_COLUMNS, listed, strict=True))), source)
        gone = rows.keys() if operation == "delete" else ()
        after = {i: row for i, row in (self._rows | rows).items() if i not in gone}
        self._run(("write", "orders.yaml", source.name, "--operation", operation), after)

    def _apply(self) -> None:
        plan = ("plan", "orders.yaml", "-o", "plan.json")
        self._run(plan, self._rows)
        self._run(("apply", "plan.json"), self._rows, before=plan)

    def _read(self) -> None:
        out = self._run(
            ("read", f"{self.bucket.url}/orders", "--where", "v >= 0", "--format", "csv"),
            self._rows,
        )
        found = list(csv.DictReader(io.StringIO(out)))
        assert len(found) == len(self._rows)
        assert {int(row["id"]): int(row["v"]) for row in found} == {
            i: row[2] for i, row in self._rows.items()
        }

    def _run(self, command: tuple[str, ...], after: Rows, before: tuple[str, ...] = ()) -> str:
        """Run a command with or without repeated requests; if it fails, then with them.

        ``before``: the command before it, which is run again, too: a plan holds its environment.
        """
        out = self._try(command, self._random.choice([*_BUDGETS]), after)
        if out is None:
            for again in filter(None, (before, command)):
                out = self._try(again, "patient", after)
                assert out is not None, "the next run fails too"
        self._rows = after
        assert self._find_rows() == after, "real Hudi reads other rows"
        return out

    def _try(self, command: tuple[str, ...], env: str, after: Rows) -> str | None:
        """Return what a command prints, None if it fails, which leaves the rows or the new ones."""
        seed = self._random.randrange(10**6)
        rate = self._random.choice((0.01, 0.03, 0.05))
        self.proxy.requests.clear()
        faults = make_random_faults(seed, rate)
        before = sum(fault.times for fault in faults)
        self.proxy.faults[:] = faults
        places = () if command[0] == "plan" else ("--executor", self._random.choice(_EXECUTORS))
        code, out, err = run_in(self.folder, *command, "--env", env, *places)
        self.proxy.faults.clear()
        hit = before - sum(fault.times for fault in faults)
        self.faults += hit
        name = " ".join(command[:1] + command[-1:] + places[-1:])
        told = f"{name} --env {env}: exit {code}, {hit} faults of {len(self.proxy.requests)}"
        self.log.append(f"{told}, rate {rate}, seed {seed}\n{err}")
        if not code:
            return out
        self.errors += 1
        assert "Traceback" not in err, err
        assert len(_ERROR.findall(err + out)) == 1, (err, out)
        assert self._find_rows() in (self._rows, after)
        return None

    def _find_rows(self) -> Rows:
        """Return what real Hudi reads, past the proxy; no rows for a table without commits."""
        if not any(_COMMIT.search(key) for key in self.bucket.object_keys()):
            return {}
        found = self.hudi.rows_at(f"s3a://{self.bucket.name}/orders", _COLUMNS)
        ids = [row[0] for row in found]
        assert len(ids) == len({*ids}), "real Hudi reads rows twice"
        return {row[0]: tuple(row) for row in found}


def run_in(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command in a folder; return its exit code, output and messages."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before = Path.cwd()
    os.chdir(folder)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = run(*arguments)
    finally:
        os.chdir(before)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return code, texts[0], texts[1]


@contextmanager
def faulty_stories(
    server: S3Server, proxy: FaultyProxy, folder: Path, session: Callable[..., Any]
) -> Iterator[Callable[[int], FaultyStory]]:
    """Give a function that makes the story of a seed; all share one Hudi and a Spark session.

    ``session(settings)`` starts the Spark session that the commands find. Variables LAKE_KEY and
    LAKE_SECRET have the server's credentials.
    """
    near = server.make_bucket()
    far = S3Bucket(name=near.name, endpoint=proxy.endpoint)
    with hudi_on_s3("1.2.0", near) as hudi:
        hudi.ask("ping")
        session({"spark.driver.extraClassPath": find_s3a_jars(), **make_s3_settings(far)})
        yield lambda seed: FaultyStory(folder / str(seed), server.make_bucket(), proxy, hudi, seed)
