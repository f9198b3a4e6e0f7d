"""What a pending compaction has begun to write is counted nowhere as a file of the table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from reconciler.adopt import observed_settings
from reconciler.hudi.files.names import make_file_path
from reconciler.planners.compose import plan_table
from reconciler.planners.newest_slices import find_candidates
from reconciler.reader.slice_selection import pick_slices
from reconciler.spec.model import Clustering, ClusteringTrigger, FileSizes, TableSpec
from reconciler.state.observe import observe
from reconciler.status.table import table_status
from reconciler.storage.open import open_storage
from tests.rewrite_jobs import unpack_table
from tests.selection import long

NOW = datetime(2026, 11, 27, tzinfo=UTC)
VERSIONS = ("0.15.0", long("1.0.2"), "1.2.0")
HERE = Path(__file__).parent
MANY = sorted(
    f"{file.relative_to(HERE)}".removesuffix(".zip")
    for pattern in ("reading/*", "merging/logc_*", "v?_mor_*", "v?_lazy_mor_*")
    for file in HERE.glob(f"{pattern}.zip")
)
SOME = (
    "reading/pending_compaction_and_clustering_0.15.0",
    "reading/written_beside_compaction_1.2.0",
)


def begin_bases(version, folder):
    """Return a table with a pending compaction, and how many of its base files are half written."""
    table = unpack_table(f"compacting/{version}", folder).parent / "pending"
    (plan,) = table.rglob("*.compaction.requested")
    instant = plan.name.partition(".")[0]
    begun = 0
    for log in {file.name.partition("_")[0]: file for file in table.glob("?/.*.log.*")}.values():
        group = log.name[1:].partition("_")[0]
        (log.parent / f"{group}_7-188-301_{instant}.parquet").write_bytes(b"PAR1" + bytes(90))
        begun += 1
    return table, begun


def observe_files(table):
    spec = TableSpec(
        name="t",
        path=str(table),
        timezone="UTC",
        files=FileSizes(small=1000),
        clustering=Clustering(columns=(), when=ClusteringTrigger(always=True)),
    )
    return spec, observe(open_storage(str(table)), spec, observed_ms=int(NOW.timestamp() * 1000))


def list_read(state):
    """The base file and the log files of every slice, as a snapshot reads them."""
    picked = pick_slices(state)
    table = picked.to_table(picked.group, np.zeros(len(picked), np.bool_))
    logs = map(sorted, table.column("logs").to_pylist())
    return sorted(zip(map(str, table.column("base").to_pylist()), logs, strict=True))


def list_candidates(state):
    slices, files = find_candidates(state), state.files

    def path(row):
        return make_file_path(files.partitions[files.partition[row]], files.name[row].as_py())

    logs = [[] for _ in range(len(slices))]
    for number, row in zip(slices.log_slice.tolist(), slices.log_row.tolist(), strict=True):
        logs[number].append(path(row))
    bases = [path(row) if row >= 0 else "None" for row in slices.base_row.tolist()]
    pairs = zip(bases, map(sorted, logs), strict=True)
    return sorted((base, some) for base, some in pairs if base != "None" or some)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_half_written_base_file_is_in_no_count(version, tmp_path, monkeypatch):
    monkeypatch.setattr(observed_settings, "_MIN_FILES", 1)
    table, begun = begin_bases(version, tmp_path)
    spec, state = observe_files(table)
    plan = plan_table(spec, state, NOW)
    status = table_status(spec, state, plan)
    whole = [file.stat().st_size for file in table.glob("?/*.parquet")]
    whole = [size for size in whole if size > 100]

    assert begun == 3
    assert 0 == plan.observed.small_files
    assert sum(whole) == sum(size.bytes for size in status.sizes)
    assert (len(whole), 0) == (sum(size.files for size in status.sizes), status.small_files)
    assert sum(whole) == sum(size.bytes for size in status.layout.sizes)
    sizes = observed_settings.observe_sizes(state.view)
    assert (len(whole), max(whole)) == (sizes.files, sizes.largest)


@pytest.mark.parametrize("version", VERSIONS)
def test_slices_that_wait_for_a_compaction_are_those_of_a_read(version, tmp_path):
    table, _ = begin_bases(version, tmp_path)
    _, state = observe_files(table)

    assert list_read(state) == list_candidates(state)
    assert any(len(logs) > 1 for _, logs in list_candidates(state))


@pytest.mark.parametrize("name", [name if name in SOME else long(name) for name in MANY])
def test_newest_slices_are_those_of_a_read(name, tmp_path):
    _, state = observe_files(unpack_table(name, tmp_path))

    assert list_read(state) == list_candidates(state)
