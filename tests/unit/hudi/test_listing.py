"""Decide which folders of a table are partitions, and what the others hold."""

from __future__ import annotations

from itertools import count

import pytest

from reconciler.hudi.load import load_listing
from reconciler.storage.open import open_storage
from tests.unit.writer.tables import properties

PROPERTIES = properties()
INSTANT = "20260101000000000"
FILE = f"a_0_{INSTANT}.parquet"
_number = count()


def table(*partitions):
    """Return a table with a file in every partition."""
    storage = open_storage(f"memory://listed/{next(_number)}")
    for path in partitions:
        storage.create(f"{path}/.hoodie_partition_metadata", b"")
        storage.create(f"{path}/{FILE}", b"four")
    return storage


def folders(listing):
    return sorted(listing.files.partitions[code] for code in listing.files.partition.tolist())


def test_a_folder_below_a_partition_is_not_a_partition():
    assert ["x"] == folders(load_listing(table("x", "x/y"), PROPERTIES))


@pytest.mark.parametrize("below", ["x/y", "x/y/z"])
def test_a_listed_folder_below_a_partition_is_a_partition(below):
    """Hudi's readers find its rows through the metadata table."""
    listing = load_listing(table("x", below), PROPERTIES, known=["x", below])

    assert ["x", below] == folders(listing)


@pytest.mark.parametrize("below", ["x/y", "x/y/z"])
def test_files_of_a_pending_write_are_found_below_a_partition_too(below):
    listing = load_listing(table("x", below), PROPERTIES, instants=[INSTANT])

    assert (["x"], ((below, FILE, 4),)) == (folders(listing), listing.unlisted_files)
