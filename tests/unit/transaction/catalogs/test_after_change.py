"""A change of a table is synced with its catalog, and is never lost if that fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

import reconciler
from reconciler.spec.document import spec_to_document
from reconciler.spec.model import CatalogTable
from reconciler.state.catalogs.api import CatalogPartition
from reconciler.status.reconciliation import add_reconciliation
from reconciler.storage.open import open_storage
from reconciler.transaction.catalogs.after_change import find_removed_partitions
from reconciler.transaction.catalogs.sync import PartitionChanges
from reconciler.writer.catalog_sync import sync_catalog
from reconciler.writer.request import WriteMode
from tests.crash.drill import CASES, NOW, make_drill
from tests.memory_catalog import MemoryCatalog, make_entry
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

ORDERS = CatalogTable(type="hive", name="db.orders", uri="thrift://host:9083")


def open_table(location, _options=None):
    return open_storage(location)


def test_an_apply_whose_catalog_fails_is_done_and_says_what_to_run(tmp_path):
    case = CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip"
    drill = make_drill(case, tmp_path / "t", retention="commits: 1")
    for side_file in drill.table.rglob("*.crc"):
        side_file.unlink()
    catalog = MemoryCatalog(make_entry("db.orders", str(drill.table)), broken=True)
    catalog.partitions["db.orders"] = {("a",): CatalogPartition(("a",), f"{drill.table}/a")}
    spec = replace(drill.spec, catalog=ORDERS)
    spec = replace(spec, document=spec_to_document(spec))
    result = drill.apply(reconciler.plan(spec, now=NOW), open_catalog=catalog.open)

    (table,) = result.tables
    assert (5, "partial", None) == (table.exit_code, table.status, table.error)
    assert ("a",) == table.outcomes[0].partitions_removed
    assert ["catalogSync"] == [note.rule for note in table.warnings]
    assert "refuses changes; run `reconciler sync " in table.warnings[0].because
    assert 0 == catalog.opened


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

    found = find_removed_partitions(open_storage(str(tmp_path)), ("a", "b", "c"))

    assert PartitionChanges(absent=("b", "c")) == found
