"""The requests of a plan and an apply that reach a real S3 server, under each lock."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

import reconciler
from reconciler.executor.deletion import LocalDeleter
from reconciler.runtime import open_storage
from reconciler.spec.load import load_specs
from reconciler.storage.api import StorageRef
from reconciler.storage.requests import OF_THIS_PROCESS
from tests.applying import admit_and_apply
from tests.bench.make_table import Shape
from tests.crash.drill import TestClock, process
from tests.flat_store import ROOT
from tests.flat_tables import put_table

pytestmark = [pytest.mark.oracle, pytest.mark.long]
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SHAPE = Shape(partitions=4, groups=2, versions=5)
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: s3://{bucket}/t
  timezone: UTC
  retention: {{commits: 2}}
  concurrency: {{lock: {lock}}}
"""
LOCKS = ("{provider: filesystem, singleWriter: true}", "{provider: storage}")


def find_kind(request):
    """Return what ``--stats`` calls a request."""
    if request.method == "GET":
        return "list" if "list-type=" in request.path else "read"
    kinds = {"HEAD": "look", "PUT": "write", "POST": "delete", "DELETE": "delete"}
    return kinds[request.method]


@pytest.mark.parametrize("lock", LOCKS)
def test_stats_are_the_requests_that_reach_the_server(
    tmp_path, monkeypatch, s3_bucket, proxied_bucket, s3_proxy, lock
):
    store = put_table(tmp_path / "t", SHAPE)
    client = s3_bucket.client()
    for name, data in store.objects.items():
        key = f"t/{name.removeprefix(f'{ROOT}/')}"
        client.put_object(Bucket=proxied_bucket.name, Key=key, Body=data)

    def opener(ref, _options=None):
        is_new = isinstance(ref, str)
        options = tuple(sorted(proxied_bucket.options.items()))
        return open_storage(StorageRef(ref, options) if is_new else ref)

    monkeypatch.setattr("reconciler.runtime.open_storage", opener)
    (tmp_path / "spec.yaml").write_text(SPEC.format(bucket=proxied_bucket.name, lock=lock))
    specs = load_specs(tmp_path / "spec.yaml")
    s3_proxy.requests.clear()
    before = OF_THIS_PROCESS.copy()
    plan = reconciler.plan(specs, now=NOW)
    planned = len(s3_proxy.requests)
    result = admit_and_apply(
        plan,
        now=NOW,
        clock=TestClock(),
        open_storage=opener,
        deleter=LocalDeleter(opener),
        process=process(1),
        new_token=lambda: "run",
    ).tables[0]
    made = OF_THIS_PROCESS.copy() - before
    requests = s3_proxy.requests
    first = next(at for at, one in enumerate(requests) if ".clean.requested" in one.path)

    assert (None, 16) == (result.error, result.removed)
    assert Counter(map(find_kind, requests)) == made
    assert planned < 20
    assert first - planned < 40
    assert len(requests) - planned < 60
