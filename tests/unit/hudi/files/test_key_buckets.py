"""Buckets of record keys, by the answers of Hudi's own BucketIdentifier.

``tests/cases/index_buckets/hashes.json`` has for each key its bucket in Hudi 0.15.0, and in 1.0.2,
1.1.1 and 1.2.0, which agree. ``tests/oracle/test_index_buckets.py`` asks them again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from reconciler.hudi.files.key_buckets import NO_BUCKET, BucketRule

CASES = json.loads(
    (Path(__file__).parents[3] / "cases" / "index_buckets" / "hashes.json").read_text()
)


def make_rule(case, version):
    return BucketRule(
        buckets=case["buckets"],
        fields=tuple(case["fields"]),
        record_key=tuple(case["recordKey"]),
        table_version=version,
    )


def find_bucket(key, *, fields=("id",), record_key=("id",), version=9, buckets=16):
    rule = BucketRule(buckets=buckets, fields=fields, record_key=record_key, table_version=version)
    (bucket,) = rule.find_buckets(pa.array([key], pa.string())).tolist()
    return bucket


@pytest.mark.parametrize("version", [8, 9])
def test_keys_have_the_buckets_of_hudi_since_1_0(version):
    for case in CASES:
        keys = pa.array([key for key, _old, _new in case["keys"]], pa.string())
        wanted = [new for _key, _old, new in case["keys"]]
        assert wanted == make_rule(case, version).find_buckets(keys).tolist(), case


def test_keys_of_version_6_have_the_bucket_on_which_all_releases_agree():
    disagreed = 0
    for case in CASES:
        keys = pa.array([key for key, _old, _new in case["keys"]], pa.string())
        wanted = [old if old == new else NO_BUCKET for _key, old, new in case["keys"]]
        assert wanted == make_rule(case, 6).find_buckets(keys).tolist(), case
        disagreed += wanted.count(NO_BUCKET)
    assert disagreed > 0


def test_a_negative_hash_has_a_bucket():
    hashed = 31 + 0x80000000  # of the list of a text whose hash is the least integer
    assert (hashed & 0x7FFFFFFF) % 16 == find_bucket("polygenelubricants")


@pytest.mark.parametrize(
    "key", ["2026-01-01 10:00:00,123", "a:1,b:x:y"], ids=["a time with a comma", "two colons"]
)
def test_a_key_for_which_hudi_never_finds_an_end_has_no_bucket(key):
    assert NO_BUCKET == find_bucket(key, fields=("a",), record_key=("a", "b"))


def test_keys_of_a_slice_are_those_of_the_slice():
    rule = make_rule({"buckets": 7, "fields": ["a"], "recordKey": ["a", "b"]}, 9)
    keys = pa.array(["a:0,b:0", "a:1,b:2", "a:3,b:4", "a:x:y,b:2", "a:5,b:6"])

    assert rule.find_buckets(keys).tolist()[1:4] == rule.find_buckets(keys.slice(1, 3)).tolist()


def test_no_keys_have_no_buckets():
    rule = make_rule({"buckets": 7, "fields": ["a"], "recordKey": ["a", "b"]}, 9)
    assert [] == rule.find_buckets(pa.array([], pa.string())).tolist()
