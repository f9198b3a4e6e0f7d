"""A small table on the S3 server of the tests, and plans and applies of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import reconciler
from reconciler.executor.deletion import LocalDeleter
from reconciler.executor.result import TableResult
from reconciler.runtime import open_storage
from reconciler.spec.load import load_specs
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage, StorageRef
from tests.applying import admit_and_apply
from tests.bench.make_table import Shape
from tests.crash.drill import NOW, TestClock, process
from tests.flat_store import ROOT
from tests.flat_tables import put_table
from tests.servers.s3 import S3Bucket

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: s3://{bucket}/t
  timezone: UTC
  retention: {{commits: {commits}}}
  concurrency: {{lock: {lock}, staleAfter: 1h}}
"""


def make_objects(folder: Path, shape: Shape) -> dict[str, bytes]:
    """Return the objects of a table, by their keys."""
    objects = put_table(folder, shape).objects
    return {f"t/{name.removeprefix(f'{ROOT}/')}": data for name, data in objects.items()}


def upload(bucket: S3Bucket, endpoint: str, objects: Mapping[str, bytes]) -> None:
    """Put objects into a bucket, past a proxy before the server."""
    client = S3Bucket(name=bucket.name, endpoint=endpoint).client()
    for key, data in objects.items():
        client.put_object(Bucket=bucket.name, Key=key, Body=data)


def load_spec(folder: Path, bucket: S3Bucket, lock: str, commits: int = 2) -> TableSpec:
    spec = SPEC.format(bucket=bucket.name, lock=lock, commits=commits)
    (folder / "spec.yaml").write_text(spec)
    (spec,) = load_specs(folder / "spec.yaml")
    return spec


def make_opener(bucket: S3Bucket, **more: str) -> Any:
    """Return a function that opens storage of the bucket as ``open_storage`` does."""

    def opener(ref: StorageRef | str, _options: object = None) -> Storage:
        options = tuple(sorted({**bucket.options, **more}.items()))
        return open_storage(StorageRef(ref, options) if isinstance(ref, str) else ref)

    return opener


def apply(spec: TableSpec, opener: Any, clock: TestClock, run: int = 1) -> TableResult:
    """Plan and apply as a new process; ``reconciler.runtime.open_storage`` is the opener."""
    return admit_and_apply(
        reconciler.plan([spec], now=NOW),
        now=NOW,
        clock=clock,
        open_storage=opener,
        deleter=LocalDeleter(opener),
        process=process(run),
        new_token=lambda: f"run{run}",
        lock_wait_s=0,
    ).tables[0]
