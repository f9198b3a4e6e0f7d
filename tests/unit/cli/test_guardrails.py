"""Policies and readers as people meet them on the command line; no JVM."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler import runtime
from reconciler.plans.guardrails import PolicyNotes, evaluate_policies
from reconciler.plans.model import TablePlan
from reconciler.spec.load import load_specs
from tests.command import run
from tests.trees import unpack

CASE = Path(__file__).parents[2] / "cases" / "clean" / "cow_basic__1.2.0" / "table.zip"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: orders}
spec:
  path: ../lake/orders
  timezone: UTC
  retention: {commits: 2}
  concurrency: {lock: {provider: filesystem}}
"""
POLICY = """\
apiVersion: reconciler/v1
kind: Policy
metadata: {name: gold, owner: the platform team}
spec:
  maxFilesRemoved: 1
"""
WAIVER = """\
  waivers:
    - {rule: maxFilesRemoved, table: orders, until: 2199-12-31, reason: the backfill}
"""
NOW = ("--now", "2026-11-22T00:00:00+00:00")


@pytest.fixture(autouse=True)
def _repository(tmp_path, monkeypatch):
    for folder in (".git", "specs", "policies", "lake"):
        (tmp_path / folder).mkdir()
    unpack(CASE, tmp_path / "lake" / "orders")
    (tmp_path / "specs" / "orders.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)


def files() -> set[str]:
    return {str(path) for path in Path("lake").rglob("*") if path.is_file()}


def write(text: str) -> None:
    Path("policies/gold.yaml").write_text(text)


@pytest.mark.parametrize("given", ["specs", "specs/orders.yaml", "."])
def test_a_clean_above_a_limit_is_refused_however_its_spec_is_named(given, capsys):
    """Its step is shown, so that a reviewer who may grant a waiver sees what would go."""
    write(POLICY)

    assert run("plan", given, *NOW) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "policy gold lets a plan remove 1 file, but this one removes 4" in said
    assert "or ask the platform team for a waiver [maxFilesRemoved]" in said
    assert "! clean refused policy gold" in said
    assert "1 table: 1 blocked in part Nothing to apply." in said
    assert "! clean not applied (maxFilesRemoved): 4 files, 1.7 MiB in 2 partitions" in said
    assert "superseded by" in said
    assert "- clean" not in said
    assert "no files to remove" in said


@pytest.mark.parametrize("scheme", ["local://", "file:", "FILE://localhost"])
def test_a_policy_over_paths_holds_for_every_spelling_of_a_path(scheme, tmp_path, capsys):
    write(POLICY.replace("spec:", 'selector: {paths: ["../lake/*"]}\nspec:'))
    spec = SPEC.replace("../lake", f"{scheme}{tmp_path}/lake")
    Path("specs/orders.yaml").write_text(spec)

    assert run("plan", "specs", *NOW) == 3
    assert "policy gold lets a plan remove 1 file" in " ".join(capsys.readouterr().out.split())


def test_a_waiver_is_named_where_it_lets_a_plan_through(capsys):
    write(POLICY + WAIVER)

    assert run("plan", "specs", *NOW) == 0
    assert "waived until 2199-12-31 (the backfill)" in capsys.readouterr().out


def test_a_policy_made_since_the_review_stops_the_apply_before_spark(capsys):
    assert run("plan", "specs", *NOW, "-o", "plan.json") == 0
    write(POLICY)
    before = files()
    capsys.readouterr()

    assert run("apply", "plan.json", "--specs", "specs", "--format", "json") == 3
    said = capsys.readouterr()
    [table] = json.loads(said.out)["tables"]
    assert ["maxFilesRemoved"] == [note["rule"] for note in table["refusals"]]
    assert "Spark" not in said.err
    assert before == files()


def test_what_nobody_reviews_stays_within_the_policy_too(capsys):
    write(POLICY)
    before = files()

    assert run("apply", "specs", "--auto-approve", *NOW) == 3
    assert "Spark" not in capsys.readouterr().err
    assert before == files()


@pytest.mark.parametrize("command", ["plan", "lint", "status"])
def test_a_broken_policy_stops_every_command(command, capsys):
    write("kind: [")

    assert run(command, "specs/orders.yaml") == 1
    assert "policies/gold.yaml" in capsys.readouterr().err


def test_lint_points_out_a_waiver_of_no_table(capsys):
    write((POLICY + WAIVER).replace("table: orders", "table: order"))

    assert run("lint", "specs") == 0
    assert (
        "policies/gold.yaml:7:7: warning: spec.waivers: is for 'order', but no table has this "
        "name; did you mean 'orders'?"
    ) in capsys.readouterr().err


def test_lint_says_which_waivers_are_over(capsys, monkeypatch):
    write(POLICY + WAIVER)
    monkeypatch.setattr(runtime, "now", lambda: runtime.datetime(2200, 1, 1, tzinfo=runtime.UTC))

    assert run("lint", "specs") == 0
    assert "spec.waivers: ended on 2199-12-31; remove it" in capsys.readouterr().err


def test_a_suspended_table_is_shown_and_not_applied(capsys):
    Path("specs/orders.yaml").write_text(SPEC + "  suspend: true\n")

    assert run("plan", "specs", *NOW, "-o", "plan.json") == 3
    assert "the spec has suspend: true; remove it to continue [suspend]" in capsys.readouterr().out
    assert json.loads(Path("plan.json").read_text())["tables"][0]["steps"]
    assert run("apply", "plan.json") == 3


def test_readers_keep_files_and_say_so(capsys):
    lag = "  readers: {incrementalConsumers: [{name: fraud, maxLag: 300d}]}\n"
    Path("specs/orders.yaml").write_text(SPEC + lag)

    assert run("plan", "specs", *NOW) == 0
    assert "= orders  readers may still read 4 slices" in capsys.readouterr().out


@pytest.fixture
def page():
    """The page about guardrails: its text in one line, and its documents."""
    text = (Path(__file__).parents[3] / "docs" / "guardrails.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return " ".join(text.split()), blocks


def test_the_page_shows_what_is_said_of_its_policy_and_its_table(page):
    text, (policy, table, _) = page
    write(policy)
    Path("specs/orders.yaml").write_text(table)
    [spec] = load_specs([Path("specs")])
    [refusal] = evaluate_policies(_idle(spec), spec, datetime(2029, 1, 1, tzinfo=UTC)).refusals

    assert f"! clean refused {refusal.because} [{refusal.rule}]" in text


def test_the_page_shows_what_is_said_of_its_waiver(page):
    text, (policy, table, _) = page
    write(policy)
    Path("specs/orders.yaml").write_text(table.replace("finance.orders", "finance.payments"))
    [spec] = load_specs([Path("specs")])
    [warning] = evaluate_policies(_idle(spec), spec, datetime(2030, 6, 30, 23, tzinfo=UTC)).warnings

    assert f" {warning.because} " in text


def test_the_example_of_a_policy_limits_no_example_of_a_table(capsys):
    root = Path(__file__).parents[3]
    specs = load_specs([root / "specs"])
    verdicts = {
        evaluate_policies(_idle(spec), spec, datetime(2029, 1, 1, tzinfo=UTC)) for spec in specs
    }

    assert ["finance.payments"] == [spec.name for spec in specs if spec.guarded_by]
    assert {PolicyNotes()} == verdicts
    assert 0 == run("lint", root / "specs", root / "policies")
    assert "" == capsys.readouterr().err


def _idle(spec):
    return TablePlan(name=spec.name, path=spec.path, spec={}, spec_digest="")
