"""``--policies`` and ``--require-policies``, and whose warnings a command repeats."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import reconciler
from reconciler.errors import SpecError, UsageError
from tests.command import run
from tests.trees import unpack
from tests.unit.cli.test_guardrails import CASE, NOW, POLICY, SPEC

REQUIRED = "--require-policies"
SMALL = "  files: {target: 1MiB, small: 2MiB}\n"


@pytest.fixture(autouse=True)
def _folders(tmp_path, monkeypatch):
    """A table and its spec; the policies are in no folder above it."""
    for folder in ("specs", "platform", "lake"):
        (tmp_path / folder).mkdir()
    unpack(CASE, tmp_path / "lake" / "orders")
    Path(tmp_path, "specs", ".git").mkdir()
    Path(tmp_path, "specs", "orders.yaml").write_text(SPEC)
    Path(tmp_path, "platform", "gold.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)


def read_errors(capsys) -> str:
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("policies", ["platform", "platform/gold.yaml"])
def test_named_policies_hold_for_specs_outside_their_folder(policies, capsys):
    assert run("plan", "specs", *NOW) == 0
    assert run("plan", "specs", "--policies", policies, *NOW) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "policy gold lets a plan remove 1 file" in said


def test_paths_of_a_named_policy_start_from_its_folder():
    Path("platform/gold.yaml").write_text(
        POLICY.replace("spec:", "selector: {paths: ['../lake/*']}\nspec:")
    )

    assert run("plan", "specs", "--policies", "platform", *NOW) == 3


@pytest.mark.parametrize("command", ["plan", "apply", "lint", "status"])
def test_specs_without_policies_are_refused_where_policies_are_required(command, capsys):
    assert run(command, "specs", REQUIRED) == SpecError.exit_code
    assert (
        "specs/orders.yaml: no policy covers orders; name them with --policies, or put them in a "
        "folder policies beside the file" in read_errors(capsys)
    )


def test_a_policy_that_selects_other_tables_is_no_policy_of_this_one(capsys):
    other = POLICY.replace("spec:", "selector: {labels: {tier: gold}}\nspec:")
    Path("platform/gold.yaml").write_text(other)

    assert run("plan", "specs", "--policies", "platform", REQUIRED, *NOW) == SpecError.exit_code
    assert "change its labels or path, or the selector of the one policy" in read_errors(capsys)


def test_policies_are_required_of_selected_tables_alone():
    Path("specs/free.yaml").write_text(SPEC.replace("orders", "free"))
    Path("platform/gold.yaml").write_text(
        POLICY.replace("spec:", "selector: {paths: ['../lake/orders']}\nspec:")
    )
    named = ("specs", "--policies", "platform", REQUIRED)

    assert run("plan", *named, "--name", "orders", *NOW) == 3
    assert run("plan", *named, *NOW) == SpecError.exit_code


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("nowhere", "nowhere: does not exist"),
        ("specs", "specs: declares no policy; name a file or folder of policies"),
        ("platform/broken.yaml", "platform/broken.yaml:1:1: not a spec"),
    ],
)
def test_what_is_named_and_has_no_policy_is_an_error(named, problem, capsys):
    Path("platform/broken.yaml").write_text("maxFilesRemoved: 1\n")

    assert run("plan", "specs", "--policies", named) == SpecError.exit_code
    assert problem in read_errors(capsys)


@pytest.mark.parametrize("option", [REQUIRED, "--policies=platform"])
def test_a_plan_file_alone_has_no_specs_for_policies(option, capsys):
    assert run("plan", "specs", "-o", "plan.json", *NOW) == 0
    assert run("apply", "plan.json", option) == UsageError.exit_code
    assert "give also --specs" in read_errors(capsys)


def test_named_policies_stop_a_plan_that_was_reviewed_without_them(capsys):
    assert run("plan", "specs", "-o", "plan.json", *NOW) == 0
    assert run("apply", "plan.json", "--specs", "specs", "--policies", "platform") == 3
    assert "lets a plan remove 1 file" in " ".join(capsys.readouterr().out.split())


def test_the_package_takes_policies_too():
    [spec] = reconciler.load_specs("specs", policies="platform", require_policies=True)

    assert [policy.name for policy in spec.guarded_by] == ["gold"]
    with pytest.raises(SpecError, match="no policy covers orders"):
        reconciler.load_specs("specs", require_policies=True)


DELETE = ("write", "specs", "--operation", "delete-partition", "--partition", "b")
THEN = ("--then", "reconcile", "--format", "json")


def test_the_reconciliation_after_a_write_obeys_named_policies(capsys):
    Path("platform/gold.yaml").write_text(
        POLICY.replace("maxFilesRemoved: 1", "minRetention: {commits: 10}")
    )
    before = set(Path("lake").rglob("*.parquet"))

    assert run(*DELETE, *THEN, "--policies", "platform", REQUIRED) == 5
    said = json.loads(capsys.readouterr().out)
    [table] = said["reconciliation"]["result"]["tables"]
    assert ("completed", 3) == (said["how"], said["reconciliation"]["exitCode"])
    assert ["minRetention"] == [note["rule"] for note in table["refusals"] if "step" in note]
    assert before == set(Path("lake").rglob("*.parquet"))


def test_a_write_without_a_required_policy_writes_nothing(capsys):
    before = set(Path("lake").rglob("*"))

    assert run(*DELETE, *THEN, REQUIRED) == SpecError.exit_code
    assert "no policy covers orders" in read_errors(capsys)
    assert before == set(Path("lake").rglob("*"))


@pytest.mark.parametrize("option", [REQUIRED, "--policies=platform"])
def test_a_write_alone_takes_no_policies(option, capsys):
    assert run(*DELETE, option) == UsageError.exit_code
    assert "add --then reconcile" in read_errors(capsys)


@pytest.mark.parametrize("module", ["cli.run_apply", "render.result"])
def test_code_for_what_comes_after_a_write_fails_before_it(module, monkeypatch, capsys):
    """Else a committed write would end with an error, and who repeats it has its rows twice."""
    for name in ("cli.run_apply", module):
        package, _, last = f"reconciler.{name}".rpartition(".")
        monkeypatch.delattr(sys.modules[package], last, raising=False)
        monkeypatch.delitem(sys.modules, f"reconciler.{name}", raising=False)
    monkeypatch.setitem(sys.modules, f"reconciler.{module}", None)
    before = set(Path("lake").rglob("*"))

    assert run(*DELETE, *THEN) == 1
    assert module in read_errors(capsys)
    assert before == set(Path("lake").rglob("*"))


def test_named_policies_outside_the_repository_change_no_table(capsys):
    Path("specs/.git").rmdir()
    os.system(
        "cd specs && git init -q && git add . && git -c user.name=x -c user.email=x@y commit -qm x"
    )
    named = ("specs", "--policies", "platform", "--changed-since", "HEAD")

    assert run("plan", *named, *NOW) == 0
    assert "0 of 1 table" in capsys.readouterr().out
    Path("specs/orders.yaml").write_text(SPEC.replace("commits: 2", "commits: 3"))
    assert run("plan", *named, *NOW) == 3


def test_commands_warn_about_tables_that_they_work_on(capsys):
    Path("specs/orders.yaml").write_text(SPEC + SMALL)
    Path("specs/free.yaml").write_text(SPEC.replace("orders", "free") + SMALL)
    queries = "  queries: [{name: q, where: a = 1}]\n"
    Path("specs/asked.yaml").write_text(SPEC.replace("orders", "asked") + SMALL + queries)
    assert run("plan", "specs", "--name", "orders", "-o", "plan.json", *NOW) == 0
    planned = read_errors(capsys)
    run("apply", "plan.json", "--specs", "specs", "--digest", f"sha256:{'0' * 64}")
    applied = read_errors(capsys)
    Path("lake").rename("gone")  # so that neither starts Spark
    run("read", "orders", "--specs", "specs")
    read = read_errors(capsys)
    run("advise", "specs")
    advised = read_errors(capsys)

    for said, name in (
        (planned, "orders"),
        (applied, "orders"),
        (read, "orders"),
        (advised, "asked"),
    ):
        assert {other: f"specs/{other}.yaml:" in said for other in ("orders", "free", "asked")} == {
            other: other == name for other in ("orders", "free", "asked")
        }


def test_a_command_for_selected_tables_does_not_repeat_what_an_environment_lists(capsys):
    Path("specs/environments").mkdir()
    Path("specs/environments/prod.yaml").write_text(
        "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
        "spec: {tables: {orders: ../../lake/orders, gone: /lake/gone}}\n"
    )

    run("plan", "specs", "--env", "prod", *NOW)
    assert "no spec declares: gone" in read_errors(capsys)
    run("plan", "specs", "--env", "prod", "--name", "orders", *NOW)
    assert "gone" not in read_errors(capsys)
