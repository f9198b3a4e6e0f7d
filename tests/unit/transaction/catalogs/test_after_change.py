"""A change of a table is synced with its catalog, and is never lost if that fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

import reconciler
from reconciler.errors import CatalogError, StorageError
from reconciler.spec.document import spec_to_document
from reconciler.spec.model import CatalogTable
from reconciler.state.catalogs.api import CatalogPartition
from reconciler.status.reconciliation import add_reconciliation
from reconciler.storage.open import open_storage
from reconciler.transaction.catalogs.after_change import find_begun_partitions
from reconciler.writer.catalog_sync import sync_catalog
from reconciler.writer.request import WriteMode
from tests.crash.drill import CASES, NOW, make_drill
from tests.memory_catalog import MemoryCatalog, make_entry
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

ORDERS = CatalogTable(type="hive", name="db.orders", uri="thrift://host:9083")


def open_table(location, _options=None):
    return open_storage(location)


def drill_in_catalog(folder):
    """Return a table whose clean removes partition a, its catalog, and the plan of it."""
    drill = make_drill(
        CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip", folder, retention="commits: 1"
    )
    for side_file in drill.table.rglob("*.crc"):
        side_file.unlink()
    catalog = MemoryCatalog(make_entry("db.orders", str(drill.table)))
    catalog.partitions["db.orders"] = {("a",): CatalogPartition(("a",), f"{drill.table}/a")}
    spec = replace(drill.spec, catalog=ORDERS)
    spec = replace(spec, document=spec_to_document(spec))
    return drill, catalog, reconciler.plan(spec, now=NOW)


def test_an_apply_whose_catalog_fails_is_done_and_says_what_to_run(tmp_path):
    drill, catalog, plan = drill_in_catalog(tmp_path / "t")
    catalog.broken = True
    result = drill.apply(plan, open_catalog=catalog.open)

    (table,) = result.tables
    assert (5, "partial", None) == (table.exit_code, table.status, table.error)
    assert ("a",) == table.outcomes[0].partitions_removed
    assert ["catalogSync"] == [note.rule for note in table.warnings]
    assert "refuses changes; run `reconciler sync " in table.warnings[0].because
    assert 0 == catalog.opened


def test_an_apply_whose_table_cannot_be_looked_at_afterwards_is_done_and_says_so(
    tmp_path, monkeypatch
):
    drill, catalog, plan = drill_in_catalog(tmp_path / "t")

    def fail(*_):
        raise StorageError("a", "the store did not answer")

    monkeypatch.setattr("reconciler.transaction.catalogs.after_change.list_names", fail)
    (table,) = drill.apply(plan, open_catalog=catalog.open).tables

    assert (5, "partial", None) == (table.exit_code, table.status, table.error)
    assert "were not synced: a: the store did not answer; run" in table.warnings[0].because


@pytest.mark.parametrize("change", ["moved", "dropped"])
def test_a_plan_of_a_table_that_its_catalog_has_elsewhere_by_now_is_stale(tmp_path, change):
    drill, catalog, plan = drill_in_catalog(tmp_path / "t")
    before = sorted(drill.table.rglob("*"))
    if change == "moved":
        catalog.entries["db.orders"] = make_entry("db.orders", "/lake/elsewhere")
        expected = f"{ORDERS} is at /lake/elsewhere now and was reviewed at {drill.table}"
    else:
        catalog.entries.clear()
        expected = "memory:: has no table db.orders any more"
    (table,) = drill.apply(plan, open_catalog=catalog.open).tables

    assert (4, f"{expected}; plan again") == (table.exit_code, table.error)
    assert before == sorted(drill.table.rglob("*"))
    assert [("a",)] == list(catalog.partitions["db.orders"])
    assert 0 == catalog.opened


def test_a_plan_is_applied_while_its_catalog_is_out_of_reach(tmp_path):
    drill, _, plan = drill_in_catalog(tmp_path / "t")

    def refuse(_table):
        raise CatalogError("thrift://host:9083", "no metastore can be reached")

    (table,) = drill.apply(plan, open_catalog=refuse).tables

    assert (5, None, 1) == (table.exit_code, table.error, len(table.outcomes))
    assert "no metastore can be reached; run `reconciler sync " in table.warnings[0].because


def test_a_write_adds_its_partitions_and_drops_deleted_ones(tmp_path):
    spec = write_spec(tmp_path)
    runs = WriteRuns(spec)
    catalog = MemoryCatalog(make_entry("db.orders", spec.path))
    in_catalog = replace(spec, catalog=ORDERS)
    written = runs.write(make_rows((1, "a", 1, "x"), (2, "b", 1, "x")))
    assert () == sync_catalog(in_catalog, written, open_table, catalog.open).warnings
    assert [("a",), ("b",)] == sorted(catalog.partitions["db.orders"])

    written = runs.write(make_rows(), WriteMode.DELETE_PARTITION, partitions=["p=a"])
    sync_catalog(in_catalog, written, open_table, catalog.open)
    assert [("b",)] == list(catalog.partitions["db.orders"])

    catalog.broken = True
    written = runs.write(make_rows((3, "c", 1, "x")))
    told = sync_catalog(in_catalog, written, open_table, catalog.open)
    (warning,) = told.warnings
    assert f"run `reconciler sync {spec.source}`" in warning.because
    assert 5 == add_reconciliation(told, None).exit_code
    assert 0 == add_reconciliation(written, None).exit_code


@pytest.mark.parametrize("ending", ["", ".parquet", ".orc"])
def test_a_partition_that_a_writer_has_begun_again_is_not_dropped(tmp_path, ending):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / f".hoodie_partition_metadata{ending}").write_bytes(b"x")
    (tmp_path / "b").mkdir()

    found = find_begun_partitions(open_storage(str(tmp_path)), ("a", "b", "c"))

    assert frozenset({"a"}) == found
