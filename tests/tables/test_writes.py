"""Rows brought to the base files of tables that real Hudi wrote, without a commit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.hudi.load import load_properties
from reconciler.layout.sizing.assignment_rules import FileSizeLimits, SteadyRule
from reconciler.layout.sizing.file_group_sizes import measure_groups
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.state.observe import observe
from reconciler.state.schema import read_declared_schema
from reconciler.writer.bucket import BucketSettings
from reconciler.writer.dedupe import DedupeRule
from reconciler.writer.job import RowJob, RowOperation, RowRules, WriteJob
from reconciler.writer.local import LocalWriter
from reconciler.writer.partition_paths import PartitionRule
from reconciler.writer.record_keys import KeyRule
from reconciler.writer.schema_evolution import SchemaEvolution
from tests.rewrite_jobs import make_rewrite, unpack_table

TABLES = ["v6_cow_part", "v6_cow_nopart", "v9_cow_part", "v9_cow_nopart"]
ROWS = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("ts", pa.int32()),
        ("name", pa.string()),
        ("x", pa.float64()),
    ]
)


def work_of(path, operation):
    """What a transaction would ask for."""
    storage, rewrite, _ = make_rewrite(path)
    properties, state = load_properties(storage), observe(storage, None, observed_ms=0)
    declared = read_declared_schema(storage, properties, state)
    evolution = SchemaEvolution.from_schemas(
        declared.text,
        ROWS,
        table_name=properties.table_name,
        table_version=properties.table_version,
    )
    return storage, WriteJob(
        row_job=RowJob(
            operation=operation,
            instant=rewrite.instant,
            settings=BucketSettings(
                reading=rewrite.reading,
                schema=rewrite.schema,
                form=rewrite.form,
                target=1 << 27,
            ),
            rules=RowRules(
                key=KeyRule.from_properties(properties),
                partition=PartitionRule.from_properties(properties),
                dedupe=DedupeRule.from_properties(properties, is_global=False),
                columns=evolution.columns,
                incoming=evolution.incoming,
            ),
        ),
        seed=rewrite.seed,
        groups=measure_groups(state.view),
        size_rule=SteadyRule(
            sizes=FileSizeLimits(), record_size=RecordSize(fixed=440_000, per_row=100.0, because="")
        ),
    )


def newest(storage, standing):
    """Every row that readers see, by folder and key."""
    found = {}
    for at, name in enumerate(standing.base_name.to_pylist()):
        if name is None:
            continue
        folder = standing.get_partition(at)
        for one in rows_of(storage, folder, name):
            found[folder, one["_hoodie_record_key"]] = one
    return found


def rows_of(storage, folder, name):
    path = f"{folder}/{name}" if folder else name
    return pq.read_table(pa.BufferReader(storage.read(path))).to_pylist()


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_hudi_are_found_by_their_keys_and_replaced(name, tmp_path):
    storage, work = work_of(unpack_table(name, tmp_path), RowOperation.UPSERT)
    before = newest(storage, work.groups)
    old = list(before.values())[::3]
    rows = [{**{k: one[k] for k in ROWS.names}, "ts": 1000, "name": "ours"} for one in old]
    rows.append({"id": 10**6, "p": old[0]["p"], "ts": 1, "name": "new", "x": None})
    done = LocalWriter(storage, 2).write(
        [[pa.RecordBatch.from_pylist(rows, schema=ROWS)]], work, assigned=lambda _found: None
    )

    assert (done.counts.updates, done.counts.inserts) == (len(old), 1)
    after = dict(before)
    for made in done.files:
        for one in rows_of(storage, made.partition, made.file.name):
            after[made.partition, one["_hoodie_record_key"]] = one
    assert len(after) == len(before) + 1
    ours = [one for one in after.values() if one["name"] == "ours"]
    assert {(one["p"], one["id"]) for one in ours} == {(one["p"], one["id"]) for one in old}
    touched = {made.previous_name for made in done.files}
    assert touched <= set(work.groups.base_name.to_pylist())
    assert all(made.counts.inserts + made.counts.updates for made in done.files)


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_hudi_are_deleted_by_their_keys(name, tmp_path):
    storage, work = work_of(unpack_table(name, tmp_path), RowOperation.DELETE)
    before = newest(storage, work.groups)
    gone = list(before)[::2]
    keys = [{k: before[key][k] for k in ("id", "p")} for key in gone]
    rows = pa.RecordBatch.from_pylist(keys, schema=pa.schema([ROWS.field("id"), ROWS.field("p")]))
    done = LocalWriter(storage, 2).write([[rows]], work, assigned=lambda _found: None)

    assert done.counts.deletes == len(gone)
    left = [
        (made.partition, one["_hoodie_record_key"])
        for made in done.files
        for one in rows_of(storage, made.partition, made.file.name)
    ]
    assert not set(left) & set(gone)
