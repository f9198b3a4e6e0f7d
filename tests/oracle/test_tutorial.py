"""``docs/tutorial.md`` as a newcomer follows it: real Hudi makes the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle.bundles import bundle
from tests.pages import assert_shown, code_blocks, fill_in, shown_commands

pytestmark = [pytest.mark.oracle, pytest.mark.long]
PAGE = "tutorial.md"


@pytest.fixture
def folder(tmp_path) -> Path:
    """An empty folder with the page's script; its bundle is the one that the tests have."""
    [script] = code_blocks(PAGE, "py")
    asked = '"spark.jars.packages", "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"'
    assert asked in script
    given = f'"spark.jars", "{bundle("1.2.0")}"'
    (tmp_path / "make_table.py").write_text(script.replace(asked, given))
    return tmp_path


def test_a_newcomer_follows_the_tutorial(folder):
    [spec] = code_blocks(PAGE, "yaml")

    for shown in shown_commands(PAGE):
        if shown.line == "reconciler lint specs":
            (folder / "specs" / "orders.yaml").write_text(spec)
        plan = folder / "plan.json"
        digest = json.loads(plan.read_bytes())["digest"] if plan.is_file() else ""
        done = run(fill_in(shown.line, digest), folder)
        assert done.returncode == 0, done.stderr
        if shown.output:
            assert_shown(shown, done.stdout or done.stderr)

    assert (folder / "plan.html").is_file()


def run(words, folder) -> subprocess.CompletedProcess[str]:
    program = {"reconciler": [sys.executable, "-m", "reconciler"], "python": [sys.executable]}
    command = [*program[words[0]], *words[1:]]
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
