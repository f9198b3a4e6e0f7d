from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reconciler.cli.app import build_program
from reconciler.cli.completion import environment_names

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: %s, labels: {team: %s}}
spec: {path: x}
"""


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for folder in ("specs", "environments", ".git"):
        Path(folder).mkdir()
    Path("specs/a.yaml").write_text(SPEC % ("sales.orders", "core"))
    Path("specs/b.yaml").write_text(SPEC % ("sales.customers", "ads") + "---\n- no spec\n")
    Path("specs/c.yaml").write_text("kind: HudiTable\nmetadata: [\n")
    for name in ("prod.yaml", "dev.yml", "README.md"):
        Path("environments", name).touch()
    return tmp_path


def offered(line: str) -> list[str]:
    """What bash is told when the key is pressed at the end of the line."""
    words = line.split(" ")
    env = {
        "_RECONCILER_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    return CliRunner().invoke(build_program(), [], env=env, prog_name="reconciler").output.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("reconciler pl", ["plan"]),
        ("reconciler lint --fi", ["--fix"]),
        ("reconciler plan --name ", ["sales.customers", "sales.orders"]),
        ("reconciler plan --name sales.o", ["sales.orders"]),
        ("reconciler plan specs/b.yaml --exclude ", ["sales.customers"]),
        ("reconciler plan -l ", ["team=ads", "team=core"]),
        ("reconciler plan nowhere --name ", []),
    ],
)
def test_a_shell_is_offered_what_there_is(line, expected):

    assert expected == offered(line)


class Context:
    def __init__(self, specs: list[Path] | None) -> None:
        self.params, self.args = {"specs": specs}, []


@pytest.mark.parametrize("specs", [None, [Path("specs")], [Path("specs/a.yaml")]])
def test_the_environments_around_the_specs_are_offered(specs):

    assert ["dev", "prod"] == environment_names(Context(specs), "")
    assert ["prod"] == environment_names(Context(specs), "p")


def test_no_environment_is_offered_where_there_is_none():
    shutil.rmtree("environments")

    assert [] == environment_names(Context(None), "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_it_can_read(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = CliRunner().invoke(
        build_program(), ["--show-completion", shell], prog_name="reconciler"
    )
    script = tmp_path / "script"
    script.write_text(shown.output)

    assert shown.exit_code == 0
    assert f"_RECONCILER_COMPLETE=complete_{shell}" in shown.output
    if shutil.which(shell):
        subprocess.run([shell, "-n", script], check=True)
