"""Walk a table on a real S3 server by prefixes and in one listing."""

from __future__ import annotations

import pytest

from reconciler.storage import flat_listing
from reconciler.storage.open import open_storage

pytestmark = pytest.mark.oracle


def walk(storage):
    folders = storage.walk(lambda path: path != ".hoodie")
    return {one.path: sorted(zip(one.names, one.sizes, strict=True)) for one in folders}


def test_a_walk_by_prefixes_finds_what_one_listing_finds(s3_bucket, monkeypatch):
    storage = open_storage(f"{s3_bucket.url}/t", s3_bucket.options)
    for path in ("f", ".hoodie/x", "d+t=1/a", "dt=ü/a", "e f/a", *(f"dt={n}/a" for n in range(9))):
        storage.replace(path, b"x" * len(path))
    at_once = walk(storage)
    monkeypatch.setattr(flat_listing, "_FOLDERS_OF_A_PREFIX", 1)

    assert 13 == len(at_once)
    assert at_once == walk(storage)
