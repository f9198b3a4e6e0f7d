"""``schemas/status.v1.json`` is the format that ``status --format json`` writes."""

from __future__ import annotations

import copy
import json
from dataclasses import fields
from pathlib import Path

import jsonschema
import pytest

from reconciler.plans.model import Note, Selection
from reconciler.render.status import status_json
from reconciler.state.measured_queries import MeasuredQuery
from reconciler.status.conditions import TableCondition
from reconciler.status.index import IndexStatus
from reconciler.status.logs import LogStatus, PartitionLogs
from reconciler.status.model import (
    CleanStatus,
    ClusteringStatus,
    LastApply,
    LayoutStatus,
    LockStatus,
    PartitionStatus,
    PendingClusteringStatus,
    PendingStatus,
    PlannedLayout,
    SavepointStatus,
    SizeClass,
    StorageCosts,
    TableStatus,
)
from reconciler.status.orphans import OrphanFile, OrphanReason, OrphanStatus

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schemas/status.v1.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CLEAN = CleanStatus(
    instant="1", policy="p", earliest_instant_to_retain="0", commits=1, is_ours=True
)
FULL = TableStatus(
    name="t",
    path="/t",
    sync="drifted",
    conditions=(
        TableCondition(type="Synced", status="False", reason="Drifted", message="m"),
        TableCondition(type="Healthy", status="True", reason="Healthy", message="m"),
    ),
    because=("b",),
    refusals=(Note("r", "b"), Note("r", "b", step="cluster")),
    notes=(Note("r", "b"),),
    writers=(Note("r", "b"),),
    lock=LockStatus(path="/l", held_by="ann", age_seconds=1, is_stale=True),
    table_type="COPY_ON_WRITE",
    table_version=9,
    timezone="UTC",
    last_completed="1",
    earliest_readable="1",
    earliest_readable_age_seconds=1,
    files=1,
    bytes=1,
    bytes_reclaimable=0,
    costs=StorageCosts(currency="USD", per_month=0.5, reclaimable_per_month=None),
    small_files=1,
    small_file_share=0.25,
    sizes=(SizeClass(below=None, files=1, bytes=1),),
    active_commits=1,
    oldest_pending_age_seconds=1,
    pending=(
        PendingStatus(instant="1", action="clean", state="INFLIGHT", age_seconds=1, is_stuck=True),
    ),
    savepoints=(
        SavepointStatus(
            instant="1",
            is_completed=True,
            files=1,
            bytes=1,
            pinned_files=1,
            pinned_bytes=1,
            name="q",
            made_by="ann",
            comment="c",
            age_seconds=1,
            freed_files=1,
            freed_bytes=1,
        ),
    ),
    last_clean=CLEAN,
    last_foreign_clean=CLEAN,
    last_apply=LastApply(
        instant="1",
        at="2026-11-21T04:15:00.123+09:00",
        plan_digest="d",
        spec_digest="d",
        spec_commit=None,
        actor=None,
    ),
    layout=LayoutStatus(
        columns=("x",),
        curve="linear",
        mapping="rank",
        sizes=(SizeClass(below=1, files=1, bytes=0),),
        overlap=1.5,
        partitions=1,
        small_partitions=1,
        worst=(
            PartitionStatus(
                partition="", files=1, small_files=1, small_file_share=1.0, overlap=None
            ),
        ),
        planned=PlannedLayout(
            bytes_rewritten=1, files_after=1, small_files_after=0, overlap_after=None
        ),
        last_clustering=ClusteringStatus(
            instant="1",
            age_seconds=None,
            columns=None,
            curve=None,
            mapping=None,
            is_as_declared=False,
            is_ours=False,
            queries=(MeasuredQuery(query="q", files=1, bytes=1, of_files=1, of_bytes=1),),
        ),
        pending=(
            PendingClusteringStatus(
                instant="1",
                state="REQUESTED",
                age_seconds=1,
                is_stuck=False,
                file_groups=1,
                partitions=1,
            ),
        ),
    ),
    index=IndexStatus(
        declared=("x", "no"),
        unindexable=("no",),
        file=".hoodie/.zindex/1_0/index-9.parquet",
        bytes=9,
        instant="1",
        commits_since=0,
        columns=("x",),
        files=2,
        files_covered=1,
        damaged=("it is cut short",),
        hudi_columns=("x",),
    ),
    logs=LogStatus(
        slices=1,
        of_slices=2,
        files=3,
        bytes=9,
        base_bytes=2,
        bytes_per_base_byte=4.5,
        worst=PartitionLogs(
            partition="p=1", files=3, bytes=9, base_bytes=0, bytes_per_base_byte=None
        ),
        oldest="1",
        oldest_age_seconds=None,
        is_oldest_exact=False,
    ),
    orphans=OrphanStatus(
        older_than_seconds=86400,
        files=1,
        bytes=7,
        removable_files=1,
        removable_bytes=7,
        oldest_age_seconds=90000,
        undecided_files=1,
        undecided_bytes=7,
        why_undecided="w",
        reasons=(OrphanReason(because="b", files=1, bytes=7, is_removable=True),),
        listed=(
            OrphanFile(
                partition="p=1",
                name="f",
                bytes=7,
                kind="base",
                modified_at="2026-11-21T00:00:00+00:00",
                is_removable=True,
            ),
        ),
    ),
)
GONE = TableStatus(name="t", path="/t", sync="error", error="is not there")


def document(*tables: TableStatus, selection: Selection | None = None) -> dict[str, object]:
    return json.loads(
        status_json(
            tables, observed_at="2026-11-22T00:00:00+00:00", tool="t 1", selection=selection
        )
    )


def test_the_schema_is_one():
    VALIDATOR.check_schema(SCHEMA)


@pytest.mark.parametrize("table", [FULL, GONE], ids=["full", "gone"])
def test_a_status_matches_the_schema(table):
    selected = Selection(tables=1, total=3, by=("--name t",))

    VALIDATOR.validate(document(table))
    VALIDATOR.validate(document(table, selection=selected))


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        ("table", TableStatus),
        ("logs", LogStatus),
        ("partitionLogs", PartitionLogs),
        ("condition", TableCondition),
        ("lock", LockStatus),
        ("sizeClass", SizeClass),
        ("pending", PendingStatus),
        ("savepoint", SavepointStatus),
        ("clean", CleanStatus),
        ("apply", LastApply),
        ("layout", LayoutStatus),
        ("partitionSizes", PartitionStatus),
        ("plannedLayout", PlannedLayout),
        ("clustering", ClusteringStatus),
        ("pendingClustering", PendingClusteringStatus),
        ("index", IndexStatus),
        ("orphans", OrphanStatus),
        ("orphanReason", OrphanReason),
        ("orphanFile", OrphanFile),
        ("costs", StorageCosts),
    ],
)
def test_the_schema_names_every_field_and_no_other(of, kind):
    camel = {
        "".join(w if i == 0 else w.capitalize() for i, w in enumerate(field.name.split("_"))): field
        for field in fields(kind)
        if field.metadata.get("name", "") is not None
    }
    optional = {name for name, field in camel.items() if field.metadata.get("optional")}

    assert set(camel) == set(SCHEMA["$defs"][of]["properties"])
    assert set(camel) - optional == set(SCHEMA["$defs"][of]["required"])


def test_a_refusal_may_name_a_kind_of_step_and_a_note_does_not():
    names = {field.name for field in fields(Note)}

    assert names == set(SCHEMA["$defs"]["refusal"]["properties"])
    assert names - {"step"} == set(SCHEMA["$defs"]["refusal"]["required"])
    assert names - {"step"} == set(SCHEMA["$defs"]["note"]["properties"])


@pytest.mark.parametrize(
    ("key", "value"),
    [("sync", "fine"), ("files", -1), ("conditions", [{"type": "Ready"}]), ("path", None)],
)
def test_another_value_does_not_match_the_schema(key, value):
    damaged = copy.deepcopy(document(FULL))
    damaged["tables"][0][key] = value

    assert not VALIDATOR.is_valid(damaged)
