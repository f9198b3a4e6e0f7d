"""Answers of catalogs that lack a part, or that something else has given."""

from __future__ import annotations

import socket
import threading
from types import SimpleNamespace

import pytest

from reconciler.errors import CatalogError
from reconciler.state.catalogs.api import CatalogPartition
from reconciler.state.catalogs.glue import GlueCatalog
from reconciler.state.catalogs.hive import HiveCatalog, MetastoreConnection, connect_hive


def open_glue(**answers):
    """Return Glue's catalog whose client gives these answers."""
    paginator = SimpleNamespace(paginate=lambda **_: [answers])
    client = SimpleNamespace(get_table=lambda **_: answers, get_paginator=lambda _: paginator)
    return GlueCatalog("glue://", client, {})


def test_an_answer_that_is_not_glues_names_the_option():
    for call in (lambda it: it.find_table("db.t"), lambda it: it.list_partitions("db.t")):
        with pytest.raises(CatalogError, match=r"db.t: the answer has no \w+; check endpoint_url"):
            call(open_glue())


def test_a_partition_of_glue_may_have_no_location():
    catalog = open_glue(Partitions=[{"Values": ["a"]}, {"Values": ["b"], "StorageDescriptor": {}}])

    expected = [CatalogPartition(("a",), ""), CatalogPartition(("b",), "")]
    assert expected == catalog.list_partitions("db.t")


def test_glue_is_asked_in_lower_case_as_it_stores_names():
    asked = []
    table = {"DatabaseName": "sales", "Name": "orders"}
    client = SimpleNamespace(get_table=lambda **named: asked.append(named) or {"Table": table})
    GlueCatalog("glue://", client, {}).find_table("Sales.Orders")

    assert [table] == asked


def test_a_partition_of_hive_may_have_no_location():
    rows = [
        SimpleNamespace(values=["a"], sd=None),
        SimpleNamespace(values=["b"], sd=SimpleNamespace(location=None)),
    ]
    client = SimpleNamespace(
        get_partition_names=lambda *_: ["p=a", "p=b"], get_partitions_by_names=lambda *_: rows
    )
    catalog = HiveCatalog(MetastoreConnection("thrift://h:9083", client, None))

    expected = [CatalogPartition(("a",), ""), CatalogPartition(("b",), "")]
    assert expected == catalog.list_partitions("db.t")


#: the head of a reply to get_table_req, and a table whose name has these bytes
REPLY = b"\x80\x01\0\x02\0\0\0\x0dget_table_req\0\0\0\0\x0c\0\0\x0c\0\x01\x0b\0\x01"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", REPLY + b"\0\0\0\x01\xff"])
def test_an_answer_that_is_not_a_metastores_says_so(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply():
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        threading.Thread(target=reply, daemon=True).start()
        catalog = connect_hive(f"thrift://127.0.0.1:{server.getsockname()[1]}", {})
        with pytest.raises(
            CatalogError, match=r"is not that of a metastore \(.*check host and por"
        ):
            catalog.find_table("db.t")
        catalog.close()
