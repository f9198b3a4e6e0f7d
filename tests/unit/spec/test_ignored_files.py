"""Which files beside policies are named because nobody reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.spec.load import read_specs

TABLE = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: t}
spec: {path: ../lake/t}
"""
POLICY = """\
apiVersion: reconciler/v1
kind: Policy
metadata: {name: gold}
spec: {maxFilesRemoved: 10}
"""


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (".git", "specs", "policies"):
        Path(name).mkdir()
    Path("specs/t.yaml").write_text(TABLE)


def said(*paths):
    loaded = read_specs([Path(path) for path in paths or ("specs",)])
    assert () == loaded.problems.errors
    return [str(problem).removeprefix(f"{Path.cwd()}/") for problem in loaded.problems]


@pytest.mark.parametrize("name", ["gold.YAML", "gold.Yml", "gold", "gold.json", "gold.yaml.off"])
def test_a_policy_by_another_ending_is_named(name):
    Path("policies", name).write_text(POLICY)

    assert [f"policies/{name}: warning: is not read; name it *.yaml or *.yml"] == said()


def test_a_hidden_policy_is_named():
    Path("policies/.gold.yaml").write_text(POLICY)

    hint = "name it *.yaml or *.yml, without a dot in front"
    assert [f"policies/.gold.yaml: warning: is not read; {hint}"] == said()


def test_a_policy_in_json_or_of_a_kind_in_another_case_is_one():
    Path("policies/gold").write_text('{"apiVersion": "reconciler/v1",\n "kind": "policy"}')

    assert ["policies/gold: warning: is not read; name it *.yaml or *.yml"] == said()


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "notes.txt", "gold.yaml~", ".gold.yaml.swp", "gold.yaml.orig"),
        *("#gold.yaml#", "._gold.yaml", "gold.yaml.bak", "README.MD"),
    ],
)
def test_a_text_or_what_an_editor_left_is_none(name):
    Path("policies", name).write_text(POLICY)

    assert [] == said()


@pytest.mark.parametrize("name", ["CODEOWNERS", ".gitkeep", "LICENSE", ".yamllint.yaml"])
def test_a_file_that_says_nothing_of_a_policy_is_none(name):
    Path("policies", name).write_text("# our policy\n* @platform\nmy-kind: Policy\n")

    assert [] == said()


def test_one_in_a_folder_of_policies_is_named_once_and_a_circle_of_links_ends():
    Path("policies/team").mkdir()
    Path("policies/team/gold").write_text(POLICY)
    os.symlink("..", "policies/team/up")
    os.symlink("nowhere", "policies/lost")

    assert ["policies/team/gold: warning: is not read; name it *.yaml or *.yml"] == said()


def test_a_pipe_is_not_waited_for():
    os.mkfifo("policies/gold.YAML")

    assert [] == said()


def test_one_that_is_named_is_read_and_so_are_those_with_the_right_ending():
    Path("policies/gold.YAML").write_text(POLICY)
    Path("policies/silver.yml").write_text(POLICY.replace("gold", "silver"))

    assert [] == said("specs", "policies/gold.YAML")
