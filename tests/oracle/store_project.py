"""A project whose table is in a store of a test server, and commands in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.storage.open import open_storage
from tests.oracle.bundles import bundle

_ROOT: Final = Path(__file__).parents[2]
_ENVIRONMENT: Final = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {{name: prod}}
spec:
  pattern: {url}/{{name}}
  timezone: UTC
  spark: {{executor: spark}}
  storageOptions:
{options}
"""
#: writes a table as real Hudi does, or reads it; prints the number of rows and the sum of a column
_HUDI: Final = """
import json, sys
from pyspark.sql import SparkSession
jars, settings, path, work, version = sys.argv[1:]
builder = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.extraClassPath", jars)
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"))
for name, value in json.loads(settings).items():
    builder = builder.config(name, value)
session = builder.getOrCreate()

def write(rows, mode, operation):
    rows.write.format("hudi").mode(mode).options(**{
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": operation,
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.clean.automatic": "false",
        "hoodie.embed.timeline.server": "false",
        **({"hoodie.write.table.version": version} if version != "6" else {}),
    }).save(path)

if work == "create":
    for first in (0, 4000):
        rows = session.range(first, first + 4000, 1, 2).selectExpr(
            "id", "if(id % 2 = 0, 'a', 'b') p", "id * 7 % 1000 v", "id ts")
        write(rows, "append", "insert")
if work == "upsert":
    rows = session.createDataFrame([(0, "a", 999, 9000)], "id long, p string, v long, ts long")
    write(rows, "append", "upsert")
found = session.read.format("hudi").load(path).selectExpr("count(1)", "sum(v)").first()
print("ANSWER " + json.dumps(list(found)))
"""


@dataclass(slots=True, kw_only=True)
class StoreProject:
    """A folder with specs and an environment; ``url``: of the bucket or container.

    ``secrets``: the variables of the environment, whose values no command line may show.
    """

    folder: Path
    url: str
    secrets: Mapping[str, str]
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def write_environment(self, options: str) -> None:
        """Write the environment ``prod``; ``options``: lines of its storage options."""
        (self.folder / ".git").mkdir()
        (self.folder / "environments").mkdir()
        lines = "\n".join(f"    {line}" for line in options.splitlines())
        text = _ENVIRONMENT.format(url=self.url, options=lines)
        (self.folder / "environments" / "prod.yaml").write_text(text)

    def run(self, *arguments: object) -> tuple[int, str, str]:
        """Run a command; return its code, output and messages, after a look for secrets.

        Every command line of its session is read while it runs.
        """
        process = subprocess.Popen(
            [sys.executable, "-m", "reconciler", *map(str, arguments)],
            cwd=self.folder,
            env=os.environ | self.secrets | {"PYTHONPATH": str(_ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.processes.append(process)
        with watching(process.pid, self.secrets.values()) as seen:
            out, err = process.communicate(timeout=400)
        assert seen == []
        for secret in self.secrets.values():
            assert secret not in out + err
        assert "Traceback" not in err
        return process.returncode, out, err

    def check(self, *arguments: object) -> tuple[str, str]:
        """Run a command that succeeds; return its output and messages."""
        code, out, err = self.run(*arguments, "--env", "prod")
        assert code == 0, (arguments, code, out, err)
        return out, err

    def kill(self) -> None:
        """Kill the command that runs, and not its children, as ``kill -9`` does."""
        self.processes[-1].kill()


@contextmanager
def watching(session: int, secrets: Iterable[str]) -> Iterator[list[bytes]]:
    """Give a list that gets every command line of a session that shows a secret."""
    known = [secret.encode() for secret in secrets]
    seen: list[bytes] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    if os.getsid(int(file.parent.name)) != session:
                        continue
                    line = file.read_bytes()
                except OSError:
                    continue
                if any(secret in line for secret in known):
                    seen.append(line)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def put_rows(target: str, options: Mapping[str, str], name: str, ids: range) -> int:
    """Write a file of rows below a folder or URL; return the sum of their values."""
    rows = pa.table(
        {
            "id": list(ids),
            "p": ["ab"[i % 2] for i in ids],
            "v": [i * 7 % 1000 for i in ids],
            "ts": list(ids),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    open_storage(target, options).create(f"{name}.parquet", sink.getvalue().to_pybytes())
    return sum(rows["v"].to_pylist())


def make_hudi(
    release: str, version: int, jars: str, settings: Mapping[str, str], path: str
) -> Callable[[str], list[int]]:
    """Return a function that lets real Hudi create, upsert or read a table."""

    def ask(work: str) -> list[int]:
        done = subprocess.run(
            [
                *(sys.executable, "-c", _HUDI, f"{bundle(release)}{os.pathsep}{jars}"),
                *(json.dumps(dict(settings)), path, work, str(version)),
            ],
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
        assert answers, done.stderr[-3000:]
        found: list[int] = json.loads(answers[0].removeprefix("ANSWER "))
        return found

    return ask
