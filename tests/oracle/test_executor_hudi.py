"""Plans of ours that real Hudi executes for us: exactly those, with the table's indexes kept."""

from __future__ import annotations

import random
import shutil

import fastavro
import pyarrow.parquet as pq
import pytest

import reconciler
from reconciler.plans.document import dump_plan
from tests.oracle import our_clean
from tests.oracle.hudi import FEW_GROUPS, INDEXES, data_files, directory_listing
from tests.selection import long

pytestmark = [pytest.mark.oracle, pytest.mark.spark]

VERSIONS = ["0.15.0", "1.2.0"]
HILBERT = {"columns": "ts, n", "curve": ", curve: hilbert, mapping: direct"}
Z_ORDER = {"columns": "ts, n", "curve": ", curve: z-order, mapping: direct"}
CLUSTERING = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: {target}, small: 100MiB}}
  clustering: {{columns: [{columns}]{curve}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def rows_of(count, seed, first=0):
    """Keys in both partitions, numbers with signs."""
    draw = random.Random(seed)
    return [
        (f"k{first + n:05d}", "ab"[n % 2], draw.randrange(-500, 500), f"v{n}", draw.random())
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def table_of(tmp_path_factory):
    """``table_of(hudi, path)``: a copy of a table with three small files in each partition."""
    tables = {}

    def copy(hudi, path, *, merge_on_read=False):
        kind = hudi.version, merge_on_read
        if kind not in tables:
            folder = tmp_path_factory.mktemp("executor")
            table = hudi.table(
                folder / "t", merge_on_read=merge_on_read, options=INDEXES | FEW_GROUPS
            )
            for n in range(3):
                hudi.write(table, rows_of(100, n, 100 * n), "insert")
            if merge_on_read:
                hudi.write(table, [(key, part, 900) for key, part, *_ in rows_of(300, 0)[::7]])
            tables[kind] = table
        shutil.copytree(tables[kind].path, path)
        return tables[kind].at(path)

    return copy


def planned(table, *, columns="", curve="", target="120MiB"):
    text = CLUSTERING.format(path=table.path, columns=columns, curve=curve, target=target)
    spec = table.path.parent / "spec.yaml"
    spec.write_text(text)
    return reconciler.plan(reconciler.load_specs(spec))


def applied(hudi, plan, folder):
    file = folder / "plan.json"
    file.write_bytes(dump_plan(plan))
    return hudi.reconcile(file)


def assert_right(hudi, table, rows):
    """Both ways of reading give the rows, and the metadata table lists what there is."""
    assert rows == hudi.rows(table) == hudi.rows(table, metadata=True)
    assert directory_listing(table.path) == hudi.listing(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_removes_what_was_reviewed_and_serves_nothing_else(real_hudi, tmp_path, version):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", options=INDEXES | FEW_GROUPS)
    for ts in range(4):
        hudi.write(table, [(f"k{n}", "ab"[n % 2], ts) for n in range(8)])
    name = f"{int(table.last_instant()) + 1}.commit.requested"  # of a writer that failed
    (table.timeline / name).write_bytes(b"")
    rows, before, live = hudi.rows(table), data_files(table.path), table.metadata_partitions()
    plan = our_clean.select_partition(our_clean.make_plan(table, {"commits": 1}), "a")
    result = applied(hudi, plan, tmp_path)
    gone = set(before) - set(data_files(table.path))

    assert 0 == result["exitCode"], result
    assert {f"{p}/{n}" for p, n in our_clean.list_names(our_clean.get_step(plan))} == gone
    assert len(gone) > 1
    assert live == table.metadata_partitions()
    assert name in table.instants()
    assert 1 == len(table.instants(".clean"))
    (table.timeline / name).unlink()
    assert_right(hudi, table, rows)


@pytest.mark.parametrize(
    ("version", "merge_on_read", "said"),
    [
        ("0.15.0", True, HILBERT),
        ("1.2.0", False, {**Z_ORDER, "target": "500KiB"}),
        long("1.2.0", True, {"columns": "n", "curve": ", curve: linear"}),
        ("0.15.0", False, {}),
    ],
)
def test_hudi_rewrites_what_was_reviewed(
    real_hudi, table_of, tmp_path, version, merge_on_read, said
):
    hudi = real_hudi(version)
    table = table_of(hudi, tmp_path / "t", merge_on_read=merge_on_read)
    rows, live = hudi.rows(table), table.metadata_partitions()
    before = data_files(table.path)
    plan = planned(table, **said)
    [step] = plan.tables[0].steps
    result = applied(hudi, plan, tmp_path)
    new = sorted(set(data_files(table.path)) - set(before))

    assert 0 == result["exitCode"], result
    assert "completed" == result["tables"][0]["outcomes"][0]["how"]
    assert int(step.groups.outputs.sum()) == len(new)
    assert set(before) < set(data_files(table.path))
    assert live == table.metadata_partitions()
    assert_right(hudi, table, rows)
    again = planned(table, **said)
    assert () == again.tables[0].steps
    hudi.write(table, [("k00000", "a", 9999)])
    changed = [r if r[0] != "k00000" else ["k00000", "a", 9999, "v9999", 9999.0] for r in rows]
    assert_right(hudi, table, changed)


def test_rows_lie_in_the_declared_order(real_hudi, table_of, tmp_path):
    hudi = real_hudi("1.2.0")
    table = table_of(hudi, tmp_path / "t")
    applied(hudi, planned(table, columns="ts", curve=", curve: linear"), tmp_path)
    newest = table.last_instant()
    found = [
        pq.read_table(file)["ts"].to_pylist() for file in table.path.rglob(f"*{newest}*.parquet")
    ]

    assert 2 == len(found)
    assert found == [sorted(values) for values in found]


def test_the_plan_says_who_executed_it_and_the_completed_file_is_hudis(
    real_hudi, table_of, tmp_path
):
    hudi = real_hudi("1.2.0")
    table = table_of(hudi, tmp_path / "t")
    plan = planned(table, columns="ts", curve=", curve: linear")
    applied(hudi, plan, tmp_path)
    [asked] = table.instants(".clustering.requested")
    [done] = table.instants(".replacecommit")
    with (table.timeline / asked).open("rb") as data:
        extra = next(fastavro.reader(data))["extraMetadata"]
    with (table.timeline / done).open("rb") as data:
        told = next(fastavro.reader(data))["extraMetadata"]

    assert "hudi" == extra["reconciler.executor"]
    assert "reconciler.layout" in extra
    assert ["schema"] == sorted(told)


@pytest.mark.parametrize(
    ("columns", "curve", "because"),
    [
        ("ts, n", ", curve: kd-tree", "Hudi cannot lay rows out by a kd-tree"),
        ("ts, n", ", curve: z-order", "Hudi cannot order a z-order by mapping rank"),
    ],
)
def test_what_hudi_cannot_make_leaves_no_trace(
    real_hudi, table_of, tmp_path, columns, curve, because
):
    hudi = real_hudi("1.2.0")
    table = table_of(hudi, tmp_path / "t")
    before = table.instants()
    result = applied(hudi, planned(table, columns=columns, curve=curve), tmp_path)

    assert 1 == result["exitCode"]
    assert because in result["tables"][0]["error"]
    assert before == table.instants()
