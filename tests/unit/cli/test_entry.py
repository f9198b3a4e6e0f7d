"""The start of the command, while its modules are still being read."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from reconciler import __main__
from reconciler.cli import app, entry

ROOT = Path(__file__).parents[3]


class _Interrupting:
    """Ctrl-C in the middle of an import."""

    def find_spec(self, name, *_):
        if name == "reconciler.cli.app":
            raise KeyboardInterrupt


@pytest.mark.parametrize("main", [entry.main, __main__.main])
def test_an_interruption_while_modules_are_read_is_one_line(main, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "reconciler.cli.app")
    monkeypatch.setattr(sys, "meta_path", [_Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()

    said = capsys.readouterr()
    assert (130, "", "interrupted\n") == (ended.value.code, said.out, said.err)


def test_an_interruption_before_the_command_begins_is_one_line(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "main", interrupted)
    with pytest.raises(SystemExit) as ended:
        entry.main()

    assert (130, "interrupted\n") == (ended.value.code, capsys.readouterr().err)


def test_an_interruption_with_nobody_to_tell_ends_all_the_same(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "main", interrupted)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit) as ended:
        entry.main()

    assert ended.value.code == 130


def test_the_code_of_the_command_is_the_code_of_the_program(monkeypatch):
    monkeypatch.setattr(app, "main", lambda: sys.exit(3))
    with pytest.raises(SystemExit) as ended:
        entry.main()

    assert ended.value.code == 3


def test_the_installed_command_starts_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert {"reconciler": "reconciler.cli.entry:main"} == project["scripts"]
