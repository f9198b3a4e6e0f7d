"""Locks that Hudi cannot take when it executes a plan: said before anything is requested."""

from __future__ import annotations

import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi_engine.delegated_lock import check_delegated_lock
from reconciler.spec.model import Lock

ZOOKEEPER = Lock(provider="zookeeper", servers="zk:1", base_path="/locks", key="t")
DYNAMODB = Lock(provider="dynamodb", table="t", partition_key="k", region="eu-central-1")


@pytest.mark.parametrize("lock", [None, Lock(provider="none"), Lock(provider="filesystem")])
def test_what_every_bundle_has_is_no_problem(lock):
    check_delegated_lock(lock, "/lake/t", "1.2.0", lambda name: "aws" not in name)


def test_a_lock_in_zookeeper_is_no_problem():
    check_delegated_lock(ZOOKEEPER, "s3://lake/t", "0.15.0", lambda name: "aws" not in name)


@pytest.mark.parametrize("lock", [Lock(provider="storage"), DYNAMODB])
def test_what_only_a_bundle_for_aws_has_is_named(lock):
    with pytest.raises(UnsupportedError, match=r"hudi\.aws\..*add hudi-aws-bundle.*native"):
        check_delegated_lock(lock, "s3://lake/t", "1.2.0", lambda name: ".aws." not in name)
    check_delegated_lock(lock, "s3://lake/t", "1.2.0", lambda _name: True)


def test_a_bundle_without_storage_locks_is_named():
    with pytest.raises(UnsupportedError, match=r"Hudi 0\.15\.0 .* use a bundle of Hudi 1\.1"):
        check_delegated_lock(
            Lock(provider="storage"), "s3://lake/t", "0.15.0", lambda name: "Storage" not in name
        )


def test_a_storage_lock_elsewhere_is_refused():
    with pytest.raises(UnsupportedError, match="on S3 only, and the table is at /lake/t"):
        check_delegated_lock(Lock(provider="storage"), "/lake/t", "1.2.0", lambda _name: True)


def test_a_row_without_a_region_is_refused():
    lock = Lock(provider="dynamodb", table="t", partition_key="k")

    with pytest.raises(UnsupportedError, match=r"add concurrency\.lock\.region"):
        check_delegated_lock(lock, "s3://lake/t", "1.2.0", lambda _name: True)
