"""The requests of a plan and an apply that reach a real S3 server, under each lock."""

from __future__ import annotations

from collections import Counter

import pytest

import reconciler
from reconciler.storage.requests import OF_THIS_PROCESS
from tests.bench.make_table import Shape
from tests.crash.drill import NOW, TestClock
from tests.s3_tables import apply, load_spec, make_objects, make_opener, upload

pytestmark = [pytest.mark.oracle, pytest.mark.long]
SHAPE = Shape(partitions=4, groups=2, versions=5)
LOCKS = ("{provider: filesystem, singleWriter: true}", "{provider: storage}")


def find_kind(request):
    """Return what ``--stats`` calls a request."""
    if request.method == "GET":
        return "list" if "list-type=" in request.path else "read"
    kinds = {"HEAD": "look", "PUT": "write", "POST": "delete", "DELETE": "delete"}
    return kinds[request.method]


@pytest.mark.parametrize("lock", LOCKS)
def test_stats_are_the_requests_that_reach_the_server(
    tmp_path, monkeypatch, s3_server, proxied_bucket, s3_proxy, lock
):
    upload(proxied_bucket, s3_server.endpoint, make_objects(tmp_path / "t", SHAPE))
    spec, opener = load_spec(tmp_path, proxied_bucket, lock), make_opener(proxied_bucket)
    monkeypatch.setattr("reconciler.runtime.open_storage", opener)
    before = OF_THIS_PROCESS.copy()
    reconciler.plan([spec], now=NOW)
    planned = len(s3_proxy.requests)
    result = apply(spec, opener, TestClock())
    made = OF_THIS_PROCESS.copy() - before
    requests = s3_proxy.requests
    first = next(at for at, one in enumerate(requests) if ".clean.requested" in one.path)
    checks = first - 2 * planned  # an apply plans once more, here also before it
    whole = len(requests) - 2 * planned

    assert (None, 16) == (result.error, result.removed)
    assert Counter(map(find_kind, requests)) == made
    assert planned < 20
    assert checks < 40
    assert whole < 60
