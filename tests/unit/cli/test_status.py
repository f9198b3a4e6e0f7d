"""``reconciler status`` on tables that real Hudi wrote; no JVM."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.command import run
from tests.trees import unpack

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schemas/status.v1.json").read_text())
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {name}
  timezone: UTC
  retention: {{commits: 2}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
NOW = ("--now", "2026-11-22T00:00:00+00:00")


@pytest.fixture(scope="module")
def specs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("specs")
    packed = ROOT / "tests/cases/clean/cow_basic__1.2.0/table.zip"
    unpack(packed, folder / "orders")
    (folder / "orders.yaml").write_text(SPEC.format(name="orders"))
    return folder


def test_a_status_goes_to_a_file_as_json_whatever_people_see(specs, tmp_path, capsys):
    file = tmp_path / "status.json"

    assert run("status", specs, *NOW, "-o", file) == 0
    found = json.loads(file.read_bytes())

    jsonschema.validate(found, SCHEMA)
    assert ["orders"] == [table["name"] for table in found["tables"]]
    assert "orders  drifted" in capsys.readouterr().out


def test_metrics_go_to_a_file_alone_and_replace_it_whole(specs, tmp_path, capsys):
    file = tmp_path / "reconciler.prom"
    file.write_text("old")
    held = file.open()

    assert run("status", specs, *NOW, "--format", "prometheus", "-o", file) == 0

    assert "" == capsys.readouterr().out
    assert "old" == held.read(), "who reads the old file reads it to its end"
    assert 'reconciler_synced{table="orders",reason="Drifted"} 0\n' in file.read_text()
    assert [file] == list(tmp_path.iterdir())
    held.close()


def test_metrics_are_a_result_on_standard_output_too(specs, capsys):
    assert run("status", specs, *NOW, "--format", "prometheus") == 0

    said = capsys.readouterr()
    assert said.out.startswith("# HELP reconciler_status_timestamp_seconds ")
    assert "reconciler_status_timestamp_seconds 1795305600\n" in said.out
    assert "reading: orders\n" == said.err


def test_a_table_that_cannot_be_read_is_an_error_and_a_sample(specs, tmp_path):
    (tmp_path / "gone.yaml").write_text(SPEC.format(name="gone"))
    file = tmp_path / "reconciler.prom"

    assert run("status", specs, tmp_path, *NOW, "--format", "prometheus", "-o", file) == 1
    found = file.read_text()

    assert 'reconciler_healthy{table="gone",reason="Unreadable"} 0\n' in found
    assert 'reconciler_files{table="orders"}' in found
    assert 'reconciler_files{table="gone"}' not in found


@pytest.mark.parametrize(
    ("target", "code", "problem"),
    [
        (".", 1, "is a folder; name a file for the status"),
        ("none/status.json", 1, "does not exist; create the folder first"),
    ],
)
def test_where_nothing_can_be_written_is_said_before_the_work(
    target, code, problem, specs, tmp_path, capsys
):
    assert run("status", specs, *NOW, "-o", tmp_path / target) == code

    said = capsys.readouterr()
    assert problem in said.err
    assert "looking" not in said.err


def test_a_lock_file_that_is_none_is_not_shown_as_free(tmp_path, capsys):
    unpack(ROOT / "tests/cases/clean/cow_basic__1.2.0/table.zip", tmp_path / "orders")
    spec = tmp_path / "orders.yaml"
    spec.write_text(SPEC.format(name="orders").replace("filesystem", "storage"))
    lock = tmp_path / "orders/.hoodie/.locks/table_lock.json"
    lock.parent.mkdir(exist_ok=True)
    lock.write_text("[]")

    assert run("status", spec, *NOW) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "is held by an unknown holder: what is there is no lock file of Hudi" in said
    assert run("unlock", spec, "--yes") == 1
    assert "is no lock file of Hudi" in capsys.readouterr().err


def test_the_lock_of_a_dead_apply_is_stale(specs, capsys):
    lock = specs / "orders/.hoodie/lock"
    holder = {"who": "ann", "host": "h", "pid": 1, "started": "1", "tool": "t", "token": "x"}
    lock.write_text(json.dumps({**holder, "ended": True}))
    try:
        assert run("status", specs, *NOW, "--format", "json") == 0
    finally:
        lock.unlink()
    (table,) = json.loads(capsys.readouterr().out)["tables"]

    assert table["lock"]["isStale"]
    assert "StaleLock" == table["conditions"][1]["reason"]
