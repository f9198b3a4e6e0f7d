"""What the documents show is true."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from unittest.mock import MagicMock, create_autospec

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import reconciler.api
from reconciler.cli.app import COMMANDS, build_program
from reconciler.errors import Problems
from reconciler.executor.result import ApplyResult
from reconciler.plans.plan import Plan
from reconciler.spec.formatting.canonical import format_file
from reconciler.spec.load import load_specs, read_specs
from reconciler.status.reconciliation import ReconciledWrite
from tests.command import run

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text()
COMMANDS_PAGE = (ROOT / "docs" / "commands.md").read_text()
SPECS = [
    (page, block)
    for page in PAGES
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
]
PROGRAMS = [
    pytest.param(block, id=f"{page.relative_to(ROOT).as_posix()}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]
RESULTS = {"write": ReconciledWrite, "plan": Plan, "apply": ApplyResult}


@pytest.mark.parametrize(
    ("page", "block"), SPECS, ids=[page.relative_to(ROOT).as_posix() for page, _ in SPECS]
)
def test_a_spec_that_a_page_shows_loads(tmp_path, page, block):
    (tmp_path / "spec.yaml").write_text(block)
    loaded = read_specs([tmp_path], may_lack_paths=True)

    assert [] == [str(problem) for problem in loaded.problems], page
    assert len(loaded.tables) == block.count("kind: HudiTable"), page


def test_every_document_that_a_page_shows_is_in_canonical_form():
    other = {
        f"{page.relative_to(ROOT)}: {block}"
        for page, block in SPECS
        if re.search("^apiVersion:", block, re.MULTILINE)
        and block.encode() != format_file(block.encode(), page.name, Problems())
        and "metadata:   {" not in block  # the page of editors shows what formatting changes
    }

    assert set() == other


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_a_page_shows_runs(program, monkeypatch):
    for name in reconciler.__all__:
        result = create_autospec(RESULTS[name], instance=True) if name in RESULTS else MagicMock()
        function = create_autospec(getattr(reconciler.api, name), return_value=result)
        monkeypatch.setattr(reconciler.api, name, function)
    monkeypatch.setattr(pyarrow.parquet, "read_table", create_autospec(pyarrow.parquet.read_table))
    given = ("spark", "session", "frame", "frames", "spec", "place")
    names: dict[str, object] = dict.fromkeys(given, MagicMock()) | {"reconciler": reconciler}

    exec(program, names)
    if "into_table" in names:
        names["into_table"](MagicMock(), 1)


def test_programs_are_shown():
    assert len(PROGRAMS) > 3


def test_the_readme_shows_a_spec_then_the_picture_then_two_commands(tmp_path, capsys):
    [spec] = [block for page, block in SPECS if page.name == "README.md"]
    places = [README.index(part) for part in ("```yaml", "docs/pictures/demo.svg", "./ci/demo ")]
    (tmp_path / "orders.yaml").write_text(spec)

    assert sorted(places) == places
    assert 8 == len(spec.splitlines())
    assert 0 == run("lint", tmp_path / "orders.yaml")
    assert "1 table, no problems\n" in capsys.readouterr().out


def test_the_environment_of_its_page_places_the_spec_of_its_page(tmp_path):
    environment, table = [block for page, block in SPECS if page.name == "environments.md"]
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "prod.yaml").write_text(environment)
    (tmp_path / "orders.yaml").write_text(table)

    [spec] = load_specs([tmp_path], "prod")

    assert (spec.path, spec.timezone) == ("s3://lake/sales/orders", "UTC")


def test_the_page_of_the_demo_shows_its_spec():
    spec = (files("reconciler") / "cli" / "demo" / "orders.yaml").read_text()

    assert f"```yaml\n{spec}```" in (ROOT / "docs" / "demo.md").read_text()


def test_every_command_of_the_readme_and_the_reference_exists_with_its_options():
    said = re.findall(r"`reconciler (\w+)([^`]*)`", README + COMMANDS_PAGE)

    assert said
    for command, rest in said:
        shown = CliRunner().invoke(build_program(), [command, "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0, command
        for option in re.findall(r"(?<!\w)--[a-z-]+", rest):
            assert option in shown.output, (command, option)


@pytest.mark.parametrize("page", PAGES, ids=[p.relative_to(ROOT).as_posix() for p in PAGES])
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())

    assert [] == [link for link in links if not (page.parent / link).exists()]


def test_every_module_that_the_architecture_names_exists():
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = {
        name
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", page)
        if not (ROOT / name).exists() and not (ROOT / "reconciler" / name).exists()
    }

    assert set() == named


def test_the_reference_has_every_command():
    named = set(re.findall(r"^\| `reconciler (\w+)", COMMANDS_PAGE, re.MULTILINE))

    assert set(COMMANDS) == named


def test_the_page_of_editors_shows_what_formatting_does():
    page = (ROOT / "docs" / "editors.md").read_text()
    part = page.split("## One form for all files", 1)[1]
    before, after = re.findall(r"```yaml\n(.*?)```", part, re.DOTALL)

    assert after.encode() == format_file(before.encode(), "orders.yaml", Problems())


def test_the_page_of_writers_shows_what_the_command_prints(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "writers.md").read_text()
    [spec] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "orders.yaml").write_text(spec)
    monkeypatch.chdir(tmp_path)
    walks = re.findall(r"```\n\$ reconciler (options [^\n]*)\n(.*?)```", page, re.DOTALL)

    assert 4 == len(walks)
    for line, shown in walks:
        printed = CliRunner().invoke(build_program(), line.split())
        assert printed.exit_code == 0, printed.output
        assert printed.output.startswith(shown.removesuffix("…\n")), line
