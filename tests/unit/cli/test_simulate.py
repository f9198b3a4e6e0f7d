"""``reconciler simulate``: a curve of bytes against reach, layouts for queries, and wrong input."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import jsonschema
import pytest

import reconciler.planners.retention_simulation
import reconciler.status.table_simulation
from tests.command import run
from tests.trees import unpack

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schemas/simulation.v1.json").read_text())
ORDERS = ROOT / "tests/tables/clustering/orders.zip"
PAGE = (ROOT / "docs/simulations.md").read_text()
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: ../orders
  retention: {commits: 3}
  concurrency: {lock: {provider: filesystem}}
"""
QUERIES = """\
  clustering: {columns: [customer_id]}
  queries:
    - {name: one customer, where: "customer_id = 42"}
    - {name: dear ones, where: "amount > 90"}
"""
POLICY = """\
apiVersion: reconciler/v1
kind: Policy
metadata: {name: history}
spec: {minRetention: {commits: 3}}
"""


@pytest.fixture
def lake(tmp_path, monkeypatch) -> Path:
    """A folder with a table, its spec, and the time of its last commit."""
    unpack(ORDERS, tmp_path / "orders")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "orders.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def simulate(*options: str) -> int:
    return run("simulate", "specs", "--now", "2026-11-22T00:00:00Z", *options)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    files = (Path(at) / name for at, _, names in os.walk(folder) for name in names)
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


def test_the_page_shows_what_the_command_prints(lake, capsys):
    shown = re.search(r"```\n\$ reconciler (simulate \S+ .*)\n([^`]*)```", PAGE)
    assert shown is not None
    options = shown[1].split()[2:]
    code = simulate(*options)

    assert code == 0
    assert shown[2] == capsys.readouterr().out.replace(str(lake), "/lake")


def test_the_document_has_all_points_and_fits_the_schema(lake, capsys):
    (lake / "specs" / "orders.yaml").write_text(SPEC + QUERIES)
    code = simulate(
        *("--retention", "commits=1..4", "--retention", "fileVersions=1", "--format", "json"),
        *("--columns", "amount,customer_id", "--columns", "dt", "--target", "8KiB"),
    )
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    [table] = document["tables"]
    kept = [(point["policy"], point["keep"]) for point in table["retention"]["points"]]

    assert code == 0
    assert kept == [
        *(("KEEP_LATEST_COMMITS", keep) for keep in (1, 2, 3, 4)),
        ("KEEP_LATEST_FILE_VERSIONS", 1),
    ]
    declared, tried, problem = table["layouts"]["points"]
    assert (True, ["customer_id"], 3) == (
        declared["isDeclared"],
        declared["columns"],
        declared["files"],
    )
    assert (["amount", "customer_id"], 8192) == (tried["columns"], tried["target"])
    assert tried["files"] > declared["files"]
    assert ["one customer", "dear ones"] == [reads["query"] for reads in tried["queries"]]
    assert "dt is a partition column: all rows of a partition share its value" == problem["problem"]


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_table_is_read_once_and_planned_for_every_value_and_nothing_is_written(
    lake, monkeypatch
):
    calls = []
    for module, name in (
        (reconciler.status.table_simulation, "observe"),
        (reconciler.planners.retention_simulation, "plan_table"),
    ):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, _n=name, _r=real, **k: (calls.append(_n), _r(*a, **k))[1]
        )
    before = snapshot(lake)

    assert simulate("--retention", "commits=1..5") == 0
    assert ["observe", *["plan_table"] * 5] == calls
    assert before == snapshot(lake)


def test_what_a_policy_refuses_is_marked_with_the_reason(lake, capsys):
    (lake / "specs" / "policy.yaml").write_text(POLICY)
    simulate("--retention", "commits=2,3")
    out = capsys.readouterr().out

    assert re.search(r"^  ! 2 commits +153\.1 KiB", out, re.MULTILINE)
    assert re.search(r"^  \* 3 commits +170\.1 KiB", out, re.MULTILINE)
    assert "! refused  2 commits: " in out
    assert "[minRetention]" in out


def test_hours_need_a_zone(lake, capsys):
    properties = lake / "orders" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("timezone=UTC", "timezone=LOCAL"))
    code = simulate("--retention", "hours=1,2")
    out = capsys.readouterr().out

    assert code == 0
    assert re.search(r"^  ! 1 hour +—", out, re.MULTILINE)
    assert "! not planned 1 hour, 2 hours: retention.hours needs the timeline's time zone" in (
        " ".join(out.split())
    )


def test_prices_of_an_environment_are_a_column(lake, capsys):
    (lake / "environments").mkdir()
    (lake / "environments" / "prod.yaml").write_text(
        "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
        "spec: {costs: {storage: 23 USD/MB-month}}\n"
    )
    simulate("--env", "prod", "--retention", "commits=3,20", "--format", "markdown")
    out = capsys.readouterr().out

    assert "| 3 commits | **170.1 KiB** | 67.8 KiB | 57 seconds | 2026-11-21 21:02 | 4 USD |" in out
    assert "| 20 commits | **237.9 KiB** | 0 bytes |" in out


def test_layouts_are_rows_with_the_reads_of_each_query(lake, capsys):
    (lake / "specs" / "orders.yaml").write_text(SPEC + QUERIES)
    simulate("--target", "8KiB", "--columns", "custmer_id", "--columns", "customer_id")
    out = " ".join(capsys.readouterr().out.split())

    assert "kd-tree on customer_id, 120.0 MiB * 3 files" in out
    assert re.search(r"one customer: \d+ → \d+ files, [\d.]+ KiB → [\d.]+ KiB ±\d+ %", out)
    assert "the table has no column 'custmer_id'; did you mean 'customer_id'?" in out


def test_a_long_name_of_a_layout_stands_above_its_figures(lake, capsys):
    (lake / "specs" / "orders.yaml").write_text(SPEC + QUERIES)
    assert simulate("--columns", "customer_id,amount,status", "--target", "8KiB") == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if re.search(r"^ .* files? .*KiB [█▏▎▍▌▋▊▉░]", line)]

    assert "    kd-tree on customer_id, amount, status, 8.0 KiB" in lines
    assert len(rows) > 2
    assert 1 == len({re.search(r" files? ", row).start() for row in rows})


def test_a_flat_curve_says_that_all_is_the_same(lake, capsys):
    (lake / "specs" / "orders.yaml").write_text(SPEC.replace("commits: 3", "commits: 20"))
    assert simulate("--retention", "commits=20,30,40") == 0

    assert "all the same: 237.9 KiB, readable " in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("lake")
def test_without_queries_no_layout_is_tried(capsys):
    assert simulate("--target", "8KiB") == 0
    assert "! nothing tried  the spec declares no queries" in capsys.readouterr().out


def test_a_table_that_cannot_be_read_is_an_error(lake, capsys):
    (lake / "orders" / ".hoodie" / "hoodie.properties").unlink()

    assert simulate("--retention", "commits=2") == 1
    assert "! error  " in capsys.readouterr().out


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing to simulate: give --retention commits=2,5,10, --columns or --target"),
        (("--retention", "commit=2"), "did you mean 'commits'?"),
        (("--retention", "2,5"), "write commits=2,5,10"),
        (("--retention", "commits=0"), "'0' is no whole number from 1 to 1000000"),
        (("--retention", "commits=5..2"), "'5..2' is no whole number"),
        (("--retention", "hours=90m"), "'90m' is no whole number"),
        (("--retention", "commits=2,,3"), "'' is no whole number"),
        (("--retention", "commits=1..101"), "more than 100 values; give fewer"),
        (("--columns", "a,,b"), "--columns a,,b: a name is empty; write customer_id,order_ts"),
        (("--target", "64"), "--target 64: '64' has no unit"),
        (("--target", "7B"), "7B is less than 1KiB"),
        (("--target", ",".join(["1MiB"] * 51)), "more than 50 layouts"),
    ],
)
def test_wrong_options_say_what_to_write(capsys, options, said):
    assert simulate(*options) == 64
    assert said in capsys.readouterr().err
