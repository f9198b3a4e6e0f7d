"""``docs/answers.md`` shows what the commands print."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.applied_table import apply_with_audit
from tests.command import run
from tests.trees import unpack

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "answers.md").read_text()
SHOWN = re.findall(r"```\n\$ reconciler ([^\n]*)\n(.*?)```", PAGE, re.DOTALL)
NOW = ("--now", "2026-11-21T05:00:00Z")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The table of the page, its spec, and two plans; nothing here writes to the table."""
    folder = tmp_path_factory.mktemp("answers")
    unpack(ROOT / "tests/cases/clean/cow_basic__1.2.0/table.zip", folder / "orders", hollow=True)
    [spec] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (folder / "orders.yaml").write_text(spec)
    longer = spec.replace("  timezone", "  readers: {longestQuery: 1d}\n  timezone")
    (folder / "longer.yaml").write_text(longer)
    shutil.copytree(folder / "orders", folder / "applied")
    (folder / "applied.yaml").write_text(spec.replace("path: orders", "path: applied"))
    apply_with_audit(folder / "applied.yaml", folder / "audit.jsonl")
    run("plan", folder / "orders.yaml", "-o", folder / "old.json", *NOW)
    run("plan", folder / "longer.yaml", "-o", folder / "new.json", *NOW)
    return folder


def test_the_page_shows_commands():
    assert SHOWN


@pytest.mark.parametrize(("line", "shown"), SHOWN, ids=[line for line, _ in SHOWN])
def test_a_command_prints_what_the_page_shows(line, shown, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    arguments = line.split()
    has_now = arguments[0] == "explain"

    assert run(*arguments, *(NOW if has_now else ())) == 0
    pattern = re.escape(shown).replace("…", ".*?")
    printed = capsys.readouterr().out
    assert re.fullmatch(pattern, printed, re.DOTALL), printed
