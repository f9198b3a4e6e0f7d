from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from reconciler.cli import app, lint_fix

ROOT = Path(__file__).parents[3]
WRONG = """\
# ours, since 2024
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: orders   # here
  retention: {comits: 3}
  files: {target: 120mib}
"""
RIGHT = WRONG.replace("comits", "commits").replace("mib", "MiB")


@pytest.fixture
def spec(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("orders.yaml")
    path.write_text(WRONG)
    return path


def lint(*arguments: object) -> int:
    return app.run(["lint", *map(str, arguments)])


def test_slips_are_put_right_and_named(spec, capsys):
    assert lint(spec, "--fix") == 0

    said = capsys.readouterr()
    assert said.out == (
        "orders.yaml:7:15: spec.retention.comits: comits → commits\n"
        "orders.yaml:8:19: spec.files.target: 120mib → 120MiB\n"
        "2 problems fixed in 1 file\n"
        "1 table, no problems\n"
    )
    assert said.err == ""
    assert spec.read_text() == RIGHT


def test_the_second_run_has_nothing_to_fix(spec, capsys):
    lint(spec, "--fix")
    before = spec.stat()
    capsys.readouterr()

    assert lint(spec, "--fix") == 0
    assert capsys.readouterr().out == "1 table, no problems\n"
    assert (spec.stat().st_ino, spec.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_without_the_option_nothing_is_written_and_it_is_offered(spec, capsys):
    assert lint(spec) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "2 problems can be fixed: reconciler lint --fix"
    )
    assert spec.read_text() == WRONG


def test_nothing_is_offered_where_nothing_is_certain(spec, capsys):
    spec.write_text(RIGHT.replace("commits: 3", "commits: 0"))

    assert lint(spec) == 1
    assert "--fix" not in capsys.readouterr().err


def test_what_remains_is_reported_where_it_is_now(spec, capsys):
    spec.write_text(WRONG.replace("120mib", "120M"))

    assert lint(spec, "--fix") == 1

    said = capsys.readouterr()
    assert said.out.endswith("1 problem fixed in 1 file\n")
    assert said.err.startswith("error: orders.yaml:8:19: spec.files.target: '120M' has no known")
    assert spec.read_text() == WRONG.replace("comits", "commits").replace("120mib", "120M")


def test_a_file_that_would_not_be_better_is_left(spec, capsys):
    twin = Path("twin.yaml")
    twin.write_text(RIGHT)
    spec.write_text(RIGHT.replace("HudiTable", "HudiTabel"))  # then there are two named orders

    assert lint(".", "--fix") == 1
    assert capsys.readouterr().out == ""
    assert "HudiTabel" in spec.read_text()


@pytest.mark.parametrize("kind", ["huditable", "hudi_table", "HUDI-TABLE"])
def test_the_case_of_a_kind_is_put_right_whatever_is_found_behind_it(kind, spec, capsys):
    text = RIGHT.replace("path: orders", "path: [orders]\n  what: is this")
    spec.write_text(text.replace("HudiTable", kind))

    assert lint(spec, "--fix") == 1
    said = capsys.readouterr()
    assert said.out == f"orders.yaml:3:7: kind: {kind} → HudiTable\n1 problem fixed in 1 file\n"
    assert "2 problems in the specs" in said.err
    assert spec.read_text() == text


def test_what_is_behind_a_kind_in_another_case_is_put_right_where_it_is_then_better(spec, capsys):
    spec.write_text(WRONG.replace("HudiTable", "huditable"))

    assert lint(spec, "--fix") == 0
    assert "3 problems fixed in 1 file" in capsys.readouterr().out
    assert spec.read_text() == RIGHT


def test_a_kind_is_put_right_beside_a_slip_that_is_left(spec, capsys):
    Path("twin.yaml").write_text(RIGHT.replace("HudiTable", "HudiTabel"))
    spec.write_text(RIGHT.replace("HudiTable", "huditable"))

    assert lint(".", "--fix") == 1
    assert spec.read_text() == RIGHT
    assert "HudiTabel" in Path("twin.yaml").read_text()
    assert "1 problem fixed in 1 file" in capsys.readouterr().out


def test_a_file_is_put_right_beside_one_that_would_not_be_better(spec):
    Path("twin.yaml").write_text(RIGHT.replace("HudiTable", "HudiTabel"))

    lint(".", "--fix")

    assert spec.read_text() == RIGHT
    assert "HudiTabel" in Path("twin.yaml").read_text()


def test_a_link_stays_a_link_and_what_it_leads_to_is_put_right(spec):
    folder = Path("specs")
    folder.mkdir()
    (folder / "a.yaml").symlink_to("../orders.yaml")
    (folder / "b.yaml").symlink_to("../orders.yaml")

    assert lint(folder, "--fix") == 0
    assert (folder / "a.yaml").is_symlink()
    assert spec.read_text() == RIGHT


def test_a_read_only_file_is_named_and_left(spec, capsys):
    spec.chmod(0o444)

    assert lint(spec, "--fix") == 1
    assert "orders.yaml: is read-only; 2 fixes not made" in capsys.readouterr().err
    assert spec.read_text() == WRONG


def test_the_mode_of_a_file_stays_and_nothing_is_left_beside_it(spec):
    spec.chmod(0o640)
    lint(spec, "--fix")

    assert stat.S_IMODE(spec.stat().st_mode) == 0o640
    assert os.listdir() == ["orders.yaml"]


def test_a_file_that_somebody_changed_meanwhile_is_left(spec, capsys, monkeypatch):
    [repair] = lint_fix.find_repairs([spec])
    spec.write_text(RIGHT + "# new\n")
    monkeypatch.setattr(lint_fix, "find_repairs", lambda _: (repair,))

    assert lint(spec, "--fix") == 0
    assert "orders.yaml: was changed meanwhile; 2 fixes not made" in capsys.readouterr().err
    assert spec.read_text() == RIGHT + "# new\n"


def test_a_store_that_takes_nothing_is_named_and_the_file_is_whole(spec, capsys, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)

    assert lint(spec, "--fix") == 1
    assert "No space left on device; 2 fixes not made" in capsys.readouterr().err
    assert spec.read_text() == WRONG
    assert os.listdir() == ["orders.yaml"]


def test_a_folder_of_policies_alone_can_be_put_right(spec, capsys):
    Path("policies").mkdir()
    policy = Path("policies/p.yaml")
    policy.write_text(
        "apiVersion: reconciler/v1\nkind: Policy\nmetadata: {name: p}\nspec: {maxRewrite: 1gib}\n"
    )
    lint("policies", "--fix")

    assert "1gib → 1GiB" in capsys.readouterr().out
    assert "1GiB" in policy.read_text()
    assert WRONG == spec.read_text()


def test_what_lies_outside_the_paths_is_left(spec):
    Path("specs").mkdir()
    spec.rename("specs/orders.yaml")
    Path("environments").mkdir()
    environment = Path("environments/prod.yaml")
    text = (
        "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
        "spec: {patern: 's3://lake/{name}'}\n"
    )
    environment.write_text(text)
    lint("specs", "--fix")

    assert text == environment.read_text()

    lint(".", "--fix")

    assert text.replace("patern", "pattern") == environment.read_text()


def test_a_word_is_shown_without_what_a_terminal_would_obey(spec, capsys):
    spec.write_text(WRONG.replace("comits", '"comits\u202e"'))
    lint(spec, "--fix")

    assert "\u202e" not in capsys.readouterr().out


def test_the_schema_is_printed_as_it_is_checked_in(capsys):
    assert lint("--schema") == 0
    assert capsys.readouterr().out == (ROOT / "schemas" / "table-spec.v1.json").read_text("utf-8")
