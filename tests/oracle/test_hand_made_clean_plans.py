"""What each Hudi makes of a requested clean that it did not write: facts that apply builds on."""

from __future__ import annotations

import io
import json
from itertools import product
from pathlib import Path

import fastavro
import pytest

from tests.oracle.hudi import HudiFailedError, directory_listing, keep_commits
from tests.oracle.prepared_tables import Variant
from tests.selection import cover_pairs

pytestmark = pytest.mark.oracle
SCHEMA = next((Path(__file__).parents[2] / "reconciler/hudi/schemas").glob("HoodieCleanerPlan.*"))
VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")


def request(table, files, *, inflight):
    """Put a clean of these names per partition on the timeline, a moment after the last instant."""
    instant = str(int(table.last_instant()) + 1)
    retain = min(table.instants("commit")).split(".")[0].split("_")[0]
    plan = {
        "earliestInstantToRetain": {
            "timestamp": retain,
            "action": "commit",
            "state": "COMPLETED",
        },
        "lastCompletedCommitTimestamp": table.last_instant(),
        "policy": "KEEP_LATEST_COMMITS",
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "filePathsToBeDeletedPerPartition": {
            partition: [
                {"filePath": f"{table.path}/{partition}/{n}", "isBootstrapBaseFile": False}
                for n in names
            ]
            for partition, names in files.items()
        },
        "partitionsToBeDeleted": [],
        "extraMetadata": {},
    }
    data = io.BytesIO()
    fastavro.writer(data, json.loads(SCHEMA.read_text()), [plan])
    (table.timeline / f"{instant}.clean.requested").write_bytes(data.getvalue())
    if inflight:
        (table.timeline / f"{instant}.clean.inflight").write_bytes(data.getvalue())
    return instant


def oldest(table, partition):
    names = [n for n in directory_listing(table.path)[partition] if n.endswith(".parquet")]
    return min(names, key=lambda name: name.rsplit("_", 1)[1])


def write_emptied_partition(hudi, path, _variant):
    """Write a table whose partition c lost its files to a clean."""
    table = hudi.table(path)
    hudi.write(table, [("a1", "a", 1), ("b1", "b", 1), ("c1", "c", 1)])
    hudi.delete_partition(table, "c")
    for ts in (2, 3):
        hudi.write(table, [("a1", "a", ts), ("b1", "b", ts)])
    hudi.clean(table, keep_commits(2))
    hudi.write(table, [("a1", "a", 4), ("b1", "b", 4)])
    return table


@pytest.fixture
def made(library):
    """``made(version, path)``: a copy of a table whose partition c lost its files to a clean."""

    def copy(version, path):
        return library.table(Variant(version=version), path, write_emptied_partition)

    return copy


STATES = ("requested", "inflight")


@pytest.mark.parametrize(
    ("version", "planned", "state"),
    cover_pairs(product(["0.15.0", "1.0.2", "1.1.1"], ["nothing", "an empty list"], STATES)),
)
def test_hudi_before_1_2_cannot_complete_a_clean_without_files(
    made, tmp_path, version, planned, state
):
    hudi, table = made(version, tmp_path / "t")
    planned, inflight = {"nothing": {}, "an empty list": {"a": []}}[planned], state == "inflight"
    instant = request(table, planned, inflight=inflight)

    with pytest.raises(HudiFailedError, match="Positive number of partitions required"):
        hudi.clean(table, keep_commits(10))

    assert [] == [name for name in table.instants(".clean") if name.startswith(instant)]


@pytest.mark.parametrize(
    ("version", "planned", "state"),
    cover_pairs(
        [
            *product(["1.2.0"], ["nothing", "an empty list"], STATES),
            *product(
                VERSIONS, ["an empty list and a file", "a metafile", "a file that is gone"], STATES
            ),
        ]
    ),
)
def test_hudi_completes_a_clean_with(made, tmp_path, version, planned, state):
    hudi, table = made(version, tmp_path / "t")
    (table.path / "c").mkdir(exist_ok=True)
    (table.path / "c" / ".hoodie_partition_metadata").write_bytes(
        (table.path / "a" / ".hoodie_partition_metadata").read_bytes()
    )
    before, gone = hudi.rows(table), oldest(table, "b")
    plans = {
        "nothing": {},
        "an empty list": {"a": []},
        "an empty list and a file": {"a": [], "b": [gone]},
        "a metafile": {"c": [".hoodie_partition_metadata"]},
        "a file that is gone": {"b": [gone.replace("_", "_9", 1)]},
    }
    instant = request(table, plans[planned], inflight=state == "inflight")
    listing = directory_listing(table.path)
    hudi.clean(table, keep_commits(10))
    done = [name for name in table.instants(".clean") if name.startswith(instant)]
    if planned == "an empty list and a file":
        del listing["b"][gone]
    if planned == "a metafile":
        del listing["c"]

    assert len(done) == 1
    assert (table.timeline / done[0]).stat().st_size > 0
    assert listing == directory_listing(table.path)
    assert {p: f for p, f in listing.items() if f} == {
        p: f for p, f in hudi.listing(table).items() if f
    }
    assert before == hudi.rows(table) == hudi.rows(table, metadata=True)
    hudi.write(table, [("a1", "a", 5)])
    assert len(before) == len(hudi.rows(table, metadata=True))
