"""The partitions of a catalog, while another writer works at the same table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler import api, runtime
from reconciler.spec.model import CatalogTable
from reconciler.storage.open import open_storage
from reconciler.transaction.catalogs.sync import PartitionSync
from reconciler.writer.catalog_sync import sync_catalog
from reconciler.writer.request import WriteMode
from tests.crash.write_drill import make_table
from tests.memory_catalog import MemoryCatalog, make_entry
from tests.write_runs import make_rows

VERSIONS = pytest.mark.parametrize("version", [6, 9])
NAME = "db.t"


class Disturbed(MemoryCatalog):
    """Calls ``before_list`` or ``before_drop`` once, before it answers."""

    before_list = before_drop = None

    def list_partitions(self, name):
        act, self.before_list = self.before_list, None
        if act is not None:
            act()
        return super().list_partitions(name)

    def drop_partitions(self, name, values):
        act, self.before_drop = self.before_drop, None
        if act is not None:
            act()
        super().drop_partitions(name, values)


@pytest.fixture
def it(tmp_path, version, monkeypatch):
    """Runs on a table of the partitions a and b, which its catalog lists."""
    found = make_table(tmp_path / "it", version)
    declared = CatalogTable(type="hive", name=NAME, uri="thrift://host:9083")
    found.spec = replace(found.spec, catalog=declared)
    found.catalog = Disturbed(make_entry(NAME, found.spec.path))
    monkeypatch.setattr(runtime, "open_catalog", found.catalog.open)
    api.sync(found.spec)
    assert {"a", "b"} == list_partitions(found)
    return found


def list_partitions(it):
    return {value for (value,) in it.catalog.partitions[NAME]}


def write_and_sync(it, *rows, mode=WriteMode.UPSERT, **more):
    sync_written(it, it.write(make_rows(*rows), mode, **more))


def sync_written(it, written):
    assert () == sync_catalog(it.spec, written, open_table, it.catalog.open).warnings


def open_table(location, _options=None):
    return open_storage(location)


def delete_a(it):
    return it.write(make_rows(), WriteMode.DELETE_PARTITION, partitions=("p=a",))


@VERSIONS
def test_a_sync_keeps_a_partition_that_is_made_after_its_look(it):
    it.catalog.before_list = lambda: write_and_sync(it, (9, "new", 1, "x"))

    assert PartitionSync() == api.sync(it.spec)
    assert {"a", "b", "new"} == list_partitions(it)


@VERSIONS
def test_a_sync_gives_a_partition_back_that_is_written_right_before_its_drop(it):
    delete_a(it)
    it.catalog.before_drop = lambda: write_and_sync(it, (9, "a", 1, "x"))

    assert PartitionSync() == api.sync(it.spec)
    assert {"a", "b"} == list_partitions(it)


@VERSIONS
def test_a_deletion_keeps_a_partition_that_another_has_written_again(it):
    deleted = delete_a(it)
    write_and_sync(it, (1, "a", 9, "again"))
    sync_written(it, deleted)

    assert {"a", "b"} == list_partitions(it)


@VERSIONS
def test_a_deletion_gives_a_partition_back_that_is_written_right_before_its_drop(it):
    it.catalog.before_drop = lambda: write_and_sync(it, (1, "a", 9, "again"))
    sync_written(it, delete_a(it))

    assert {"a", "b"} == list_partitions(it)


@VERSIONS
def test_a_deletion_drops_its_partition_beside_a_write_elsewhere(it):
    it.catalog.before_list = lambda: write_and_sync(it, (9, "new", 1, "x"))
    sync_written(it, delete_a(it))

    assert {"b", "new"} == list_partitions(it)
