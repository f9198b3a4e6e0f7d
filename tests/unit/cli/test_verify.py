"""``reconciler verify`` on a table that real Hudi wrote; no JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.errors import UsageError
from tests.command import run
from tests.metadata_lies import MetadataLiar
from tests.trees import unpack

TABLES = Path(__file__).parents[2] / "tables"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {name}
  timezone: UTC
  metadata: {{verify: each-apply}}
"""


@pytest.fixture
def specs(tmp_path):
    unpack(TABLES / "indexed/1.2.0.zip", tmp_path / "orders")
    for name in ("orders", "absent"):
        (tmp_path / f"{name}.yaml").write_text(SPEC.format(name=name))
    return tmp_path


def test_nothing_is_written_and_nothing_differs(specs, capsys):
    before = {path: path.stat().st_mtime_ns for path in (specs / "orders").rglob("*")}

    assert 0 == run("verify", specs / "orders.yaml")

    assert before == {path: path.stat().st_mtime_ns for path in (specs / "orders").rglob("*")}
    assert "  = record_index  5 keys compared" in capsys.readouterr().out


def test_a_difference_exits_with_3_and_a_missing_table_with_1(specs, capsys):
    MetadataLiar(specs / "orders").list_file("p=a", "none-0_0-1-1_20260101000000000.parquet", 9)

    assert 3 == run("verify", specs / "orders.yaml")
    assert 1 == run("verify", specs)

    assert "1 not verified, 1 with differences; 1 difference" in capsys.readouterr().out


def test_the_result_goes_to_a_file_too(specs, tmp_path, capsys):
    file = tmp_path / "found.json"

    assert 0 == run("verify", specs, "--name", "orders", "--sample", "50%", "-o", file)

    assert 0.5 == json.loads(file.read_bytes())["sample"]
    assert "Verify: 1 of 2 tables: 1 without differences" in capsys.readouterr().out


@pytest.mark.parametrize("sample", ["0%", "101%", "1", "x%", "-1%", "%", "nan%", "1e1%"])
def test_a_sample_is_a_percentage(sample, specs, capsys):
    assert UsageError.exit_code == run("verify", specs, "--sample", sample)

    assert f"--sample {sample}: expected a percentage greater than 0" in capsys.readouterr().err


def test_a_plan_warns_of_differences_without_a_repair(specs, capsys):
    MetadataLiar(specs / "orders").list_file("p=a", "none-0_0-1-1_20260101000000000.parquet", 9)

    assert 0 == run("plan", specs / "orders.yaml")

    shown = " ".join(capsys.readouterr().out.split())
    assert "the file listing differs from the folders in 1 entry" in shown


def test_a_status_compares_only_the_listing_of_files(specs, capsys):
    base = min(p for p in (specs / "orders").rglob("*.parquet") if ".hoodie" not in p.parts)
    MetadataLiar(specs / "orders").set_range(base.parent.name, base.name, "i", 5000, 6000)

    assert 0 == run("status", specs / "orders.yaml")
    quick = capsys.readouterr().out
    assert 0 == run("plan", specs / "orders.yaml")
    planned = capsys.readouterr().out

    assert ("column_stats" in quick, "column_stats" in planned) == (False, True)
