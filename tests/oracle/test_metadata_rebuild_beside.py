"""Rebuild a metadata table beside real Hudi and our own writer: no write is missing in it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import reconciler
from tests.metadata_lies import MetadataLiar
from tests.oracle.concurrent_writer import CONCURRENT
from tests.oracle.hudi import INDEXES, SMALL_FILTERS, directory_listing
from tests.oracle.our_clean import apply_here
from tests.oracle.rebuilt_metadata import lie_about_files, repair, write_spec
from tests.oracle.test_metadata_verification import verify
from tests.selection import EVERY_CASE, long

pytestmark = pytest.mark.oracle
OPTIONS = {**INDEXES, **SMALL_FILTERS, **CONCURRENT}


def write_gated(hudi, table, rows, gate):
    """Write rows with Hudi, which waits at the gate when it has its instant's time."""
    values = ", ".join(f"('{key}', '{p}', {ts}L, 'v', {ts}D)" for key, p, ts in rows)
    hudi.ask(
        "write_query",
        table=table,
        query=f"select * from values {values} as t(id, p, ts, x, n)",
        options={**table.options, "hoodie.datasource.write.operation": "upsert", **OPTIONS},
        gate=str(gate),
    )


def assert_right(hudi, table, keys):
    """No read and no listing may lack the rows of the write."""
    assert () == verify(table).differences
    rows = hudi.rows(table, metadata=True)
    assert keys == [row[0] for row in rows]
    assert rows == hudi.rows(table, metadata=False)
    assert directory_listing(table.path) == hudi.listing(table)


@pytest.mark.parametrize("version", ["0.15.0", long("1.0.2"), long("1.2.0")])
def test_a_write_that_ends_after_a_rebuild_is_in_the_metadata_table(version, real_hudi, tmp_path):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t")
    hudi.write(table, [("a1", "a", 1), ("b1", "b", 1)], options=OPTIONS)
    live, before = table.metadata_partitions(), table.instants()
    if version == "1.2.0":  # its write is announced, and would open a listed file
        (base,) = table.path.glob("b/*.parquet")
        MetadataLiar(table.path).set_range("b", base.name, "ts", 5000, 6000)
    else:
        lie_about_files(table)
    spec = reconciler.load_specs(write_spec(table, tmp_path))
    gate = tmp_path / "gate"
    gate.mkdir()
    with ThreadPoolExecutor(1) as pool:
        write = pool.submit(write_gated, hudi, table, [("a2", "a", 2), ("c1", "c", 2)], gate)
        try:
            while not (gate / "reached").exists() and not write.done():
                time.sleep(0.05)
            plan = reconciler.plan(spec)
            if before == table.instants():  # before 1.1 it is not announced yet
                assert 0 == apply_here(plan).exit_code
                assert live == table.metadata_partitions()
                assert () == verify(table).differences
            else:
                assert () == plan.tables[0].steps
                (note,) = [one for one in plan.tables[0].warnings if one.rule == "metadata"]
                assert "is pending and may rely on it" in note.because
        finally:
            (gate / "open").touch()
        write.result()

    if version == "1.2.0":
        repair(table, tmp_path)
    assert live == table.metadata_partitions()
    assert_right(hudi, table, ["a1", "a2", "b1", "c1"])
    if EVERY_CASE:
        hudi.write(table, [("a1", "a", 3), ("d1", "d", 3)], options=OPTIONS)
        assert_right(hudi, table, ["a1", "a2", "b1", "c1", "d1"])
