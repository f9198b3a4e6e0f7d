"""Real Hudi after a deletion of partitions by a plan: same rows, same listing, and it goes on."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import reconciler
from reconciler.executor.result import ApplyResult
from reconciler.plans.plan import Plan
from reconciler.spec.model import TableSpec
from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.hudi import (
    FEW_GROUPS,
    INDEXES,
    HudiTable,
    RealHudi,
    directory_listing,
    keep_commits,
)
from tests.oracle.our_clustering import apply_here
from tests.oracle.our_writer import read_rows
from tests.selection import EVERY_CASE, long

pytestmark = pytest.mark.oracle
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
OLD, OLDER, YOUNG = "2024-01-01", "2024-02-29", "2026-11-20"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: "{name}"}}
spec:
  path: "{path}"
  timezone: UTC
  retention: {{{retention}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
BY_DATE = 'commits: 1, partitions: {olderThan: 400d, by: "%Y-%m-%d"}'


def load_spec(table: HudiTable, retention: str) -> TableSpec:
    file = table.path.parent / f"{table.path.name}.yaml"
    file.write_text(SPEC.format(name=table.path.name, path=table.path, retention=retention))
    (spec,) = reconciler.load_specs(file)
    return spec


def make_plan(spec: TableSpec, now: datetime | None = None) -> Plan:
    plan = reconciler.plan(spec, now=now)
    (table,) = plan.tables
    assert (None, ()) == (table.error, table.refusals)
    return plan


def list_paths(plan: Plan) -> list[str]:
    steps = (step for step in plan.tables[0].steps if step.kind == "deletePartition")
    return [partition.path for step in steps for partition in step.partitions]


def apply(plan: Plan) -> ApplyResult:
    result = apply_here(plan)
    assert 0 == result.exit_code, result.tables
    return result


def copy(table: HudiTable, name: str) -> HudiTable:
    path = table.path.parent / name
    shutil.copytree(table.path, path)
    return table.at(path)


def row(key: str, partition: str, ts: int) -> list[Any]:
    return [key, partition, ts, f"v{ts}", ts / 4]


def assert_reads(hudi: RealHudi, table: HudiTable, rows: Sequence[list[Any]]) -> None:
    """We and Hudi read the rows, and the metadata table lists what is there."""
    wanted = sorted(rows, key=repr)
    assert wanted == read_rows(table)
    assert wanted == hudi.rows(table, metadata=False)
    assert wanted == hudi.rows(table, metadata=True)
    there, listed = directory_listing(table.path), hudi.listing(table)
    # Hudi goes on listing a partition that a clean removed, without files
    assert there == {path: files for path, files in listed.items() if files or path in there}


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [
        ("0.15.0", False),
        ("1.0.2", True),
        ("1.2.0", False),
        long("0.15.0", True),
        long("1.0.2", False),
        long("1.2.0", True),
    ],
)
def test_hudi_goes_on_after_partitions_are_deleted(
    real_hudi, tmp_path: Path, version: str, merge_on_read: bool
) -> None:
    hudi: RealHudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", merge_on_read=merge_on_read, options=INDEXES | FEW_GROUPS)
    first = [row(f"{p}-{n}", p, 1) for p in (OLD, OLDER, YOUNG) for n in range(2)]
    hudi.write(table, first)
    updates = [row(f"{OLD}-0", OLD, 2), row(f"{YOUNG}-0", YOUNG, 2)]
    before = hudi.write(table, updates)
    all_rows = [*updates, *(one for one in first if one[0] not in {u[0] for u in updates})]
    young = [one for one in all_rows if one[1] == YOUNG]
    spec = load_spec(table, BY_DATE)
    plan = make_plan(spec)
    assert [OLD, OLDER] == list_paths(plan)

    result = apply(plan)

    (done,) = (o for o in result.tables[0].outcomes if o.kind == "deletePartition")
    assert (OLD, OLDER) == done.deletion.partitions
    assert TABLE_VERSION[version] == reconciler.observe(spec).table_version
    assert_reads(hudi, table, young)
    assert sorted(all_rows, key=repr) == hudi.rows(table, as_of=before)
    assert [] == list_paths(make_plan(spec))

    if EVERY_CASE or version == "1.2.0":
        undone = copy(table, "undone")
        hudi.rollback(undone, done.instant)
        assert sorted(all_rows, key=repr) == hudi.rows(undone, metadata=True) == read_rows(undone)

    again = [row(f"{OLD}-0", OLD, 3), row(f"{OLDER}-9", OLDER, 3), row(f"{YOUNG}-1", YOUNG, 3)]
    hudi.write(table, again, options={"hoodie.index.type": "RECORD_INDEX"})
    now = [*again, *(one for one in young if one[0] != f"{YOUNG}-1")]
    hudi.clean(table, keep_commits(1))
    assert_reads(hudi, table, now)
    for ts in (4, 5, 6) if EVERY_CASE else ():
        hudi.write(table, [row(f"{YOUNG}-0", YOUNG, ts)])
    if not EVERY_CASE:
        return
    hudi.clean(table, keep_commits(1))
    hudi.archive(table)
    now = [row(f"{YOUNG}-0", YOUNG, 6), *(one for one in now if one[0] != f"{YOUNG}-0")]
    assert_reads(hudi, table, now)


@pytest.mark.parametrize("version", ["1.2.0", long("1.0.2")])
def test_the_partitions_by_last_commit_are_those_of_hudis_ttl(
    real_hudi, tmp_path: Path, version: str
) -> None:
    """Of a history of writes and deletions, whenever the retention ends."""
    hudi: RealHudi = real_hudi(version)
    table = hudi.table(tmp_path / "t")
    instants = [
        hudi.write(table, [("a1", "a", 1), ("b1", "b", 1), ("c1", "c", 1)]),
        hudi.write(table, [("b1", "b", 2)]),
        hudi.delete_partition(table, "c"),
        hudi.write(table, [("c2", "c", 3)]),
    ]
    if EVERY_CASE:
        instants += [
            hudi.write(table, [("d1", "d", 1)]),
            hudi.write(table, [("a1", "a", 2)], "delete"),
        ]
    spec = load_spec(table, "partitions: {olderThan: 1d, by: lastCommit}")
    found = set()
    for instant in instants:
        moment = datetime.strptime(instant, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
        for after in (timedelta(days=1), timedelta(days=1, milliseconds=1)):
            at = moment + after
            stamp = f"{at:%Y%m%d%H%M%S}{at.microsecond // 1000:03d}"
            options = {"hoodie.partition.ttl.strategy.days.retain": "1"}
            hudis = hudi.expired_partitions(table, stamp, options)

            assert hudis == list_paths(make_plan(spec, at)), stamp
            found.add(tuple(hudis))
    assert len(found) >= 4
