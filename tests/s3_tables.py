"""A small table on the S3 server of the tests, and plans and applies of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reconciler
from reconciler.executor.deletion import LocalDeleter
from reconciler.executor.result import TableResult
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.runtime import open_storage
from reconciler.spec.load import load_specs
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.requests import OF_THIS_PROCESS
from tests.applying import admit_and_apply
from tests.bench.make_table import Shape
from tests.crash.drill import NOW, TestClock, process
from tests.flat_store import ROOT
from tests.flat_tables import put_table
from tests.servers.proxy import FaultyProxy, ProxiedRequest
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


def list_leftovers(bucket: S3Bucket, opener: Any) -> list[str]:
    """Return the pending instants and the lock, heartbeats and probes that runs left behind."""
    storage = opener(f"{bucket.url}/t")
    timeline = load_timeline(storage, load_properties(storage))
    pending = [one.file_name for one in timeline.instants if not one.is_completed]
    return pending + [
        key
        for key in bucket.object_keys()
        if key == "t/.hoodie/lock" or "probe." in key or ".heartbeat/" in key
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRuns:
    """The requests of a plan, and of an apply of a second plan.

    ``planned``: those of a plan. ``checked``: those of the apply before its first change.
    ``applied``: all of the apply. ``told``, ``seen``: those of all three by their kinds, as
    ``--stats`` tells them and as the server saw them.
    """

    result: TableResult
    planned: int
    checked: int
    applied: int
    told: Counter[str]
    seen: Counter[str]


def count_requests(spec: TableSpec, opener: Any, proxy: FaultyProxy) -> CountedRuns:
    """Plan and apply a clean; ``reconciler.runtime.open_storage`` is the opener."""
    before = OF_THIS_PROCESS.copy()
    reconciler.plan([spec], now=NOW)
    planned = len(proxy.requests)
    result = apply(spec, opener, TestClock())
    requests = proxy.requests
    first = next(at for at, one in enumerate(requests) if ".clean.requested" in one.path)
    return CountedRuns(
        result=result,
        planned=planned,
        checked=first - 2 * planned,
        applied=len(requests) - 2 * planned,
        told=OF_THIS_PROCESS.copy() - before,
        seen=Counter(map(find_kind, requests)),
    )


def find_kind(request: ProxiedRequest) -> str:
    """Return what ``--stats`` calls a request."""
    if request.method == "GET":
        return "list" if "list-type=" in request.path else "read"
    kinds = {"HEAD": "look", "PUT": "write", "POST": "delete", "DELETE": "delete"}
    return kinds[request.method]
