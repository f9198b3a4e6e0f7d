"""The requests for 20 000 files in 200 partitions that reach a real S3 server, as docs promise."""

from __future__ import annotations

import pytest

from tests.bench.bucket_tables import make_bucket_table
from tests.bench.make_table import Shape
from tests.bench.test_request_formula import compute_limit
from tests.bench.test_requests import LOCK
from tests.contract.test_s3_request_counts import LOCKS
from tests.s3_tables import count_requests, load_spec, make_opener

pytestmark = [pytest.mark.oracle, pytest.mark.long]
PENDING, CLEANS = 3, 2
FILE, STORAGE = LOCKS
CASES = ((9, FILE, True), (9, STORAGE, True), (6, STORAGE, True), (8, FILE, False))


@pytest.mark.parametrize("case", CASES, ids=["9-file", "9-storage", "6-storage", "8-file"])
def test_requests_of_a_large_table_keep_within_the_formula(
    tmp_path, monkeypatch, s3_server, proxied_bucket, s3_proxy, case
):
    version, lock, with_metadata = case
    if s3_server.data is None:
        pytest.skip("moto's server has no folder that files are made in")
    shape = Shape(partitions=200, groups=10, versions=10, table_version=version)
    table = s3_server.data / proxied_bucket.name / "t"
    make_bucket_table(table, shape, with_metadata=with_metadata, cleans=CLEANS, pending=PENDING)
    spec, opener = load_spec(tmp_path, proxied_bucket, lock, commits=8), make_opener(proxied_bucket)
    monkeypatch.setattr("reconciler.runtime.open_storage", opener)
    runs, limit = count_requests(spec, opener, s3_proxy), compute_limit(shape, PENDING)

    assert (None, 2000) == (runs.result.error, runs.result.removed)
    assert runs.seen == runs.told
    assert runs.planned <= limit
    assert runs.checked <= limit
    assert runs.applied <= limit + LOCK + 2
