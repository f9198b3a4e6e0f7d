"""``reconciler fmt``."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.command import run

WRONG = """\
kind: HudiTable
apiVersion: reconciler/v1
metadata: {name: orders}
spec:
  retention:  {commits: 3}
  path: orders # here
"""
RIGHT = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: orders  # here
  retention: {commits: 3}
"""
BROKEN = "apiVersion: [reconciler/v1\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "orders.yaml").write_text(WRONG)
    return tmp_path


def test_files_are_written_and_named(capsys):
    assert run("fmt", "specs") == 0

    said = capsys.readouterr()
    assert said.out == "specs/orders.yaml\n"
    assert said.err == "1 of 1 file formatted\n"
    assert Path("specs/orders.yaml").read_text() == RIGHT


def test_a_second_run_writes_nothing(capsys):
    run("fmt", "specs")
    before = Path("specs/orders.yaml").stat()
    capsys.readouterr()

    assert run("fmt", "specs") == 0
    assert capsys.readouterr().out == ""
    after = Path("specs/orders.yaml").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_without_a_path_the_folders_of_a_repository_are_formatted(capsys):
    assert run("fmt") == 0
    assert capsys.readouterr().out == "specs/orders.yaml\n"


def test_without_a_path_and_such_a_folder_it_is_a_usage_error(monkeypatch, capsys):
    monkeypatch.chdir("specs")

    assert run("fmt") == 64
    assert "no folder specs, policies, environments here" in capsys.readouterr().err


def test_check_writes_nothing_and_exits_with_2(capsys):
    assert run("fmt", "--check") == 2

    said = capsys.readouterr()
    assert said.out == "specs/orders.yaml\n"
    assert said.err == "1 of 1 file not in canonical form\n"
    assert Path("specs/orders.yaml").read_text() == WRONG

    Path("specs/orders.yaml").write_text(RIGHT)
    assert run("fmt", "--check") == 0


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--check",), 2)])
def test_diff_shows_what_would_change(options, code, capsys):
    assert run("fmt", "specs", "--diff", *options) == code

    shown = capsys.readouterr().out
    assert shown.startswith("--- specs/orders.yaml\n+++ specs/orders.yaml\n@@ -1,6 +1,6 @@\n")
    assert "-  retention:  {commits: 3}\n" in shown
    assert "+  retention: {commits: 3}\n" in shown
    assert Path("specs/orders.yaml").read_text() == WRONG


def test_diff_shows_a_missing_line_break(capsys):
    Path("specs/orders.yaml").write_text(RIGHT.rstrip())

    assert run("fmt", "--diff") == 0
    assert (
        "-  retention: {commits: 3}\n\\ No newline at end of file\n+  ret"
        in capsys.readouterr().out
    )


def test_a_json_file_is_not_turned_into_yaml(capsys):
    Path("specs/a.json").write_text('{"apiVersion": "reconciler/v1", "kind": "HudiTable"}')

    assert run("fmt", "specs/a.json") == 1
    assert "error: specs/a.json: is JSON, which fmt does not write" in capsys.readouterr().err
    assert Path("specs/a.json").read_text().startswith("{")


def test_a_broken_file_is_one_error_and_the_others_are_formatted(capsys):
    Path("specs/broken.yaml").write_text(BROKEN)

    assert run("fmt") == 1
    assert "error: specs/broken.yaml:2:1: invalid YAML" in capsys.readouterr().err
    assert Path("specs/orders.yaml").read_text() == RIGHT
    assert Path("specs/broken.yaml").read_text() == BROKEN


def test_a_read_only_file_is_named(capsys):
    Path("specs/orders.yaml").chmod(0o444)

    assert run("fmt") == 1
    assert "specs/orders.yaml: is read-only; it was not formatted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "shown"),
    [((), 0, RIGHT), (("--check",), 2, ""), (("--diff",), 0, "+++ st")],
)
def test_standard_input_is_formatted_to_standard_output(options, code, shown, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(WRONG.encode())))

    assert run("fmt", "-", *options) == code
    assert shown in capsys.readouterr().out
