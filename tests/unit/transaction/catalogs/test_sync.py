from __future__ import annotations

import pytest

from reconciler.errors import CatalogError
from reconciler.hudi.table.properties import TableProperties, compute_checksum
from reconciler.state.catalogs.api import CatalogPartition
from reconciler.transaction.catalogs.sync import PartitionChanges, PartitionSync, sync_partitions
from tests.memory_catalog import MemoryCatalog, make_entry

PROPERTIES = """\
hoodie.table.name=orders
hoodie.table.type={kind}
hoodie.table.version=6
hoodie.table.checksum={checksum}
"""


def make_properties(kind="COPY_ON_WRITE"):
    checksum = compute_checksum({"hoodie.table.name": "orders"})
    text = PROPERTIES.format(kind=kind, checksum=checksum)
    return TableProperties.parse(text.encode(), "hoodie.properties")


def sync(catalog, location="s3://lake/orders", name="db.orders", properties=None, **changes):
    properties, wanted = properties or make_properties(), PartitionChanges(**changes)
    return sync_partitions(catalog, name, location, properties, wanted, lambda _folders: ())


@pytest.mark.parametrize(
    ("keys", "folder", "values"),
    [
        (("day",), "day=2026-01-31", ("2026-01-31",)),
        (("day",), "2026-01-31", ("2026-01-31",)),
        (("day",), "2026/01/31", ("2026/01/31",)),
        (("year", "month"), "year=2026/month=01", ("2026", "01")),
        (("year", "month"), "2026/01", ("2026", "01")),
        (("p",), "p=__HIVE_DEFAULT_PARTITION__", ("__HIVE_DEFAULT_PARTITION__",)),
        (("p",), "p=a%3Ab", ("a%3Ab",)),
    ],
)
def test_a_new_partition_has_the_values_that_hudi_would_give_it(keys, folder, values):
    catalog = MemoryCatalog(make_entry("db.orders", "s3a://lake/orders/", keys))

    assert PartitionSync(added=1) == sync(catalog, present=[folder])
    expected = CatalogPartition(values, f"s3a://lake/orders/{folder}")
    assert [expected] == catalog.list_partitions("db.orders")


@pytest.mark.parametrize(
    ("folder", "value", "new", "expected"),
    [
        ("2026/01/30", "2026-01-30", "2026/01/31", "2026-01-31"),
        ("2026/01/30", "2026/01/30", "2026/01/31", "2026/01/31"),
        ("p=a%3Ab", "a:b", "p=c%2Fd", "c/d"),
        ("p=a%3Ab", "a%3Ab", "p=c%2Fd", "c%2Fd"),
    ],
)
def test_values_follow_the_partitions_that_are_listed_already(folder, value, new, expected):
    catalog = MemoryCatalog(make_entry("db.orders", "s3://lake/orders"))
    catalog.add_partitions("db.orders", [CatalogPartition((value,), f"s3://lake/orders/{folder}")])
    sync(catalog, present=[folder, new])

    assert [(value,), (expected,)] == list(catalog.partitions["db.orders"])


def test_only_partitions_of_the_change_are_dropped_unless_all_are_known():
    catalog = MemoryCatalog(make_entry("db.orders", "s3://lake/orders"))
    folders = ("a", "b", "c")
    catalog.add_partitions(
        "db.orders", [CatalogPartition((each,), f"s3://lake/orders/p={each}") for each in folders]
    )
    elsewhere = CatalogPartition(("x",), "s3://other/orders/p=x")
    catalog.add_partitions("db.orders", [elsewhere])

    assert PartitionSync(dropped=1) == sync(catalog, absent=["p=a", "p=never"])
    assert PartitionSync(dropped=1) == sync(catalog, present=["p=c"], is_complete=True)
    assert [("c",), ("x",)] == list(catalog.partitions["db.orders"])


def test_a_table_without_partition_columns_in_the_catalog_lists_none():
    catalog = MemoryCatalog(make_entry("db.orders", "s3://lake/orders", ()))

    assert PartitionSync() == sync(catalog, present=["p=a"])
    assert {} == catalog.partitions["db.orders"]


def test_all_names_of_a_merge_on_read_table_are_synced_and_no_other_table():
    names = ("db.orders", "db.orders_ro", "db.orders_rt")
    places = ("s3://lake/orders", "s3a://lake/orders", "s3://lake/another")
    entries = [make_entry(*pair) for pair in zip(names, places, strict=True)]
    for name in names[:2]:
        catalog = MemoryCatalog(*entries)
        done = sync(catalog, name=name, properties=make_properties("MERGE_ON_READ"), present=["a"])

        assert PartitionSync(added=2) == done
        assert [1, 1, 0] == [len(catalog.partitions[each]) for each in names]


@pytest.mark.parametrize(
    ("location", "folder", "problem"),
    [
        ("s3://lake/moved", "p=a", "db.orders is at s3://lake/orders there, and the table is at"),
        ("s3://lake/orders", "a/b", "partition a/b has no value for each of its columns p, q, r"),
        ("s3://lake/orders", "1/1", "partition 1, 1 is at s3://old/1/1 there, not at s3://lake/"),
    ],
)
def test_a_catalog_that_contradicts_the_table_is_not_changed(location, folder, problem):
    keys = ("p", "q", "r") if folder == "a/b" else ("p", "q")
    catalog = MemoryCatalog(make_entry("db.orders", "s3://lake/orders", keys))
    catalog.add_partitions("db.orders", [CatalogPartition(("1", "1"), "s3://old/1/1")])

    with pytest.raises(CatalogError) as caught:
        sync(catalog, location=location, present=[folder])
    assert problem in str(caught.value)
    assert 1 == len(catalog.partitions["db.orders"])
