"""The requests of a plan and an apply that reach a real S3 server, under each lock."""

from __future__ import annotations

import pytest

from tests.bench.make_table import Shape
from tests.s3_tables import count_requests, load_spec, make_objects, make_opener, upload

pytestmark = [pytest.mark.oracle, pytest.mark.long]
SHAPE = Shape(partitions=4, groups=2, versions=5)
LOCKS = ("{provider: filesystem, singleWriter: true}", "{provider: storage}")


@pytest.mark.parametrize("lock", LOCKS)
def test_stats_are_the_requests_that_reach_the_server(
    tmp_path, monkeypatch, s3_server, proxied_bucket, s3_proxy, lock
):
    upload(proxied_bucket, s3_server.endpoint, make_objects(tmp_path / "t", SHAPE))
    spec, opener = load_spec(tmp_path, proxied_bucket, lock), make_opener(proxied_bucket)
    monkeypatch.setattr("reconciler.runtime.open_storage", opener)
    runs = count_requests(spec, opener, s3_proxy)

    assert (None, 16) == (runs.result.error, runs.result.removed)
    assert runs.seen == runs.told
    assert runs.planned < 20
    assert runs.checked < 40
    assert runs.applied < 62
