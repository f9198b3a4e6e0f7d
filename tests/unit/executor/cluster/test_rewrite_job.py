"""Which groups of a clustering are buckets."""

from __future__ import annotations

from reconciler.executor.cluster.rewrite_job import find_bucket_groups
from reconciler.plans.groups import rewrites_from_json
from tests.unit.executor.cluster.test_group_selection import make_group


def test_a_bucket_is_one_slice_with_a_number_that_becomes_one_file():
    groups = [
        make_group("00000001-f"),
        make_group("f"),
        make_group("00000001-f", "g"),
        make_group("00000001-f", partition="b") | {"outputs": 2},
    ]

    assert [True, False, False, False] == find_bucket_groups(rewrites_from_json(groups)).tolist()
