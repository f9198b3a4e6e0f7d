"""Tables that ``init --from`` finds in a catalog."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.adopt.catalog_search import find_catalog_tables
from reconciler.errors import UsageError
from reconciler.spec.model import CatalogTable
from tests.memory_catalog import MemoryCatalog, make_entry

CATALOG = MemoryCatalog(
    make_entry("sales.orders_ro", "s3a://lake/orders"),
    make_entry("sales.orders", "s3://lake/orders/"),
    make_entry("sales.items", "file:/lake/a%20b"),
    replace(make_entry("sales.logs", "s3://lake/logs"), properties={}),
    replace(make_entry("sales.view", ""), properties={}),
    make_entry("ops.events", "s3://lake/events"),
    make_entry("ops.mounted", "dbfs:/mnt/orders"),
    make_entry("ops.relative", "lake/orders"),
)


def find(*addresses, add_access=lambda table: table):
    return find_catalog_tables(addresses, CATALOG.open, add_access)


def test_hudi_tables_are_found_once_under_their_shortest_name():
    found = find("hive://host/sales*")

    assert ["/lake/a%20b", "s3://lake/orders"] == sorted(found.locations)
    orders = CatalogTable(type="hive", name="sales.orders", uri="thrift://host:9083")
    assert orders == found.names.find("s3n://lake/orders")
    assert (2, False) == (found.skipped, found.is_one)
    assert 0 == CATALOG.opened


def test_a_named_table_is_taken_whatever_the_catalog_knows_about_it():
    found = find("glue:///sales.logs")

    assert (["s3://lake/logs"], True) == (found.locations, found.is_one)
    assert CatalogTable(type="glue", name="sales.logs") == found.names.find("s3://lake/logs")


def test_a_table_without_a_place_does_not_stop_the_others():
    found = find("hive://host/ops")

    assert ["s3://lake/events"] == found.locations
    mounted = "which has one slash after the scheme; write dbfs://bucket/folder"
    assert [
        f"ops.mounted is at 'dbfs:/mnt/orders' there, {mounted}",
        "ops.relative is at 'lake/orders' there, which is neither an absolute path nor a URL",
    ] == found.problems


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("hive://host/crm*", "no Hudi table matches in memory: (no other tables)"),
        ("hive://host/sales.l*", "no Hudi table matches in memory: (1 other table)"),
        ("hive://host/sales.view", "has no location there, as a view has none"),
        ("hive://host/ops.relative", "ops.relative is at 'lake/orders' there, which is neither"),
        ("hive://host/sales/orders", "separate database and table by a dot"),
        ("hive:///sales", "names no metastore; write thrift://host:9083"),
        ("glue://123/sales", "names no account of 12 digits"),
    ],
)
def test_an_address_without_a_table_is_an_error(address, problem):
    with pytest.raises(UsageError) as caught:
        find(address)

    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"--from {address}: ")


def test_an_address_must_be_the_catalog_of_the_environment():
    def add_access(table):
        return replace(table, uri="thrift://other:9083")

    with pytest.raises(UsageError, match="the environment has another catalog, thrift://other"):
        find("hive://host/sales", add_access=add_access)
