"""Commands on a standalone cluster, and the table that they work on."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

REPOSITORY = Path(__file__).parents[2]
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  path: {path}
  timezone: UTC
  table: {{type: {type}, version: 9, recordKey: [id], partitionBy: [p], ordering: [ts]}}
  files: {{target: 1MiB, small: 512KiB}}
  clustering: {{columns: [v], when: always}}
  index: {{columns: [v]}}
  retention: {{commits: 1}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command has printed, and its exit code."""

    code: int
    out: str
    err: str


def make_project(folder: Path, kind: str = "COPY_ON_WRITE", rows: int = 4000) -> None:
    """Write the spec of a table and a file with rows for it into a folder."""
    (folder / "orders.yaml").write_text(SPEC.format(path=folder / "lake/orders", type=kind))
    ids = list(range(rows))
    table = pa.table(
        {"id": ids, "p": ["ab"[i % 2] for i in ids], "v": [i * 7 % 1000 for i in ids], "ts": ids}
    )
    pq.write_table(table, folder / "rows.parquet")


def make_environment(home: Path, **more: str) -> dict[str, str]:
    """Return the variables of a driver with a home of its own, that chooses no Python."""
    others = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    own = {"HOME": str(home), "PYTHONPATH": str(REPOSITORY), "SPARK_LOCAL_IP": "127.0.0.1"}
    return others | own | more


def start_command(
    folder: Path,
    master: str,
    *arguments: str,
    conf: Mapping[str, str] | None = None,
    log: Path | None = None,
    **env: str,
) -> subprocess.Popen[str]:
    """Start a command of reconciler in a folder, with its Spark on a master.

    ``log``: a file that its messages go to, which others can read meanwhile.
    """
    settings = {"spark.executor.memory": "512m", **(conf or {})}
    given = (f"{name}={value}" for name, value in settings.items())
    command = [sys.executable, "-m", "reconciler", *arguments, "--master", master]
    with contextlib.ExitStack() as stack:
        return subprocess.Popen(
            [*command, *(part for setting in given for part in ("--spark-conf", setting))],
            cwd=folder,
            env=make_environment(folder / "home", **env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if log is None else stack.enter_context(log.open("w")),
            text=True,
        )


def wait_for(process: subprocess.Popen[str], seconds: float = 600) -> Finished:
    """Return what a command has printed when it has ended."""
    out, err = process.communicate(timeout=seconds)
    return Finished(process.returncode, out, err or "")
