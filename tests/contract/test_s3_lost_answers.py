"""A clean on a real S3 server that loses the answer to any one of its changes."""

from __future__ import annotations

from itertools import count

import pytest

from tests.bench.make_table import Shape
from tests.crash.drill import TestClock
from tests.s3_tables import apply, list_leftovers, load_spec, make_objects, make_opener, upload
from tests.servers.proxy import Fault

pytestmark = [pytest.mark.oracle, pytest.mark.long]
SHAPE = Shape(partitions=2, groups=1, versions=4)
LOCKS = {"file": "{provider: filesystem, singleWriter: true}", "storage": "{provider: storage}"}


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("kind", ["lose", "drop", "cut"])
def test_every_change_whose_answer_is_lost_is_repeated_and_recognised(
    tmp_path, monkeypatch, s3_server, s3_proxy, kind, lock
):
    objects = make_objects(tmp_path / "t", SHAPE)
    for at in count(1):
        bucket = s3_server.make_bucket(s3_proxy.endpoint)
        upload(bucket, s3_server.endpoint, objects)
        spec, opener = load_spec(tmp_path, bucket, LOCKS[lock]), make_opener(bucket)
        monkeypatch.setattr("reconciler.runtime.open_storage", opener)
        numbers = count(1)

        def is_hit(request, numbers=numbers, at=at):
            is_change = request.method in ("PUT", "POST", "DELETE")
            return is_change and next(numbers) == at

        fault = Fault(kind, is_hit)
        s3_proxy.faults[:] = [fault]
        result = apply(spec, opener, TestClock())
        s3_proxy.faults.clear()
        if fault.times:  # there are fewer changes
            break

        assert (None, 2, ()) == (result.error, result.removed, result.warnings), at
        assert [] == list_leftovers(bucket, opener), at
    assert at > 12
