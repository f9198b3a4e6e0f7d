"""Every command line in a template or on its page is one that there is."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from reconciler.cli.app import COMMANDS, build_program
from tests.ci.lake import ROOT, TEMPLATES

FOLDERS = ("github", "gitlab", "jenkins", "cron", "kubernetes", "airflow", "container")
PAGES = ("clusters.md", "editors.md")
FILES = sorted(
    file
    for place in (*(TEMPLATES / folder for folder in FOLDERS), ROOT / "docs" / "ci")
    for file in [*place.rglob("*"), *((ROOT / "docs" / page) for page in PAGES)]
    if file.is_file()
)
CALL = re.compile(r"\breconciler\"? (?:--log-format \w+ )?([a-z]+)\b([^|>;`\n]*)")


def calls() -> list[tuple[str, str, str]]:
    """File, command and the rest of the line, of everything that looks like a call."""
    found = []
    for file in FILES:
        text = re.sub(r"\\\n\s*", "", file.read_text(encoding="utf-8"))
        name = file.relative_to(ROOT).as_posix()
        found += [(name, c, rest) for c, rest in CALL.findall(text) if c in COMMANDS]
    return sorted(set(found))


def test_calls_are_seen():
    seen = {(name, command) for name, command, _ in calls()}

    assert ("ci/github/workflows/reconciler-apply.yml", "apply") in seen
    assert ("ci/jenkins/Jenkinsfile", "comment") in seen
    assert ("docs/editors.md", "lint") in seen
    assert ("docs/clusters.md", "apply") in seen


@pytest.mark.parametrize("command", sorted({command for _, command, _ in calls()}))
def test_every_option_exists(command):
    shown = CliRunner().invoke(build_program(), [command, "--help"], env={"COLUMNS": "200"}).output
    used = {
        (name, option)
        for name, called, rest in calls()
        if called == command
        for option in re.findall(r"(?<!\S)(--[a-z][a-z-]+|-[a-z])\b", rest)
    }

    assert [] == sorted((name, option) for name, option in used if option not in shown)
