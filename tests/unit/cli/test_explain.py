"""``reconciler explain``."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.command import run
from tests.trees import unpack

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schemas/answers.v1.json").read_text())
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: orders
  timezone: UTC
  retention: {commits: 2}
"""
NOW = ("--now", "2026-11-21T05:00:00Z")
FILE = "a/290ec5d7-b9a4-4437-a535-30a3a27c0604-0_0-13-10_20261121044032551.parquet"


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    unpack(ROOT / "tests/cases/clean/cow_basic__1.2.0/table.zip", folder / "orders", hollow=True)
    (folder / "orders.yaml").write_text(SPEC)
    return folder


def test_json_has_the_answers(lake, capsys):
    assert run("explain", lake / "orders.yaml", FILE, "--format", "json", *NOW) == 0

    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    [answer] = document["answers"]
    assert ("file", FILE, "goes") == (answer["kind"], answer["name"], answer["verdict"])


def test_a_path_from_here_is_found(lake, monkeypatch, capsys):
    monkeypatch.chdir(lake)

    assert run("explain", "orders.yaml", f"orders/{FILE}", *NOW) == 0
    assert capsys.readouterr().out.startswith(f"file  {FILE}\n  = goes: ")


def test_a_name_that_is_nowhere_is_an_error_with_near_names(lake, capsys):
    assert run("explain", lake, "20261121044110866", *NOW) == 1
    assert "no file, instant or partition is named '20261121044110866'; near: 20261121" in (
        capsys.readouterr().err
    )


def test_one_table_is_explained(tmp_path, capsys):
    (tmp_path / "orders.yaml").write_text(SPEC)
    (tmp_path / "more.yaml").write_text(SPEC.replace("orders", "more"))

    assert run("explain", tmp_path, "a", *NOW) == 64
    assert "2 tables selected, but explain takes one" in capsys.readouterr().err


def test_a_table_that_is_not_there_is_one_error(tmp_path, capsys):
    (tmp_path / "orders.yaml").write_text(SPEC)

    assert run("explain", tmp_path, "a", *NOW) == 1
    assert "no Hudi table here" in capsys.readouterr().err
