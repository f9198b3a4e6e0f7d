"""The generated pages of the reference are up to date, and say what there is."""

from __future__ import annotations

import json
import re

import pytest

from ci.site.reference import PAGES, SCHEMA, write_pages
from reconciler.cli.app import COMMANDS


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return write_pages()


def test_the_pages_are_up_to_date(pages):
    """After a change of the schema or of options run ``python ci/site/reference.py``."""
    written = {page.name: page.read_text(encoding="utf-8") for page in PAGES.iterdir()}

    assert pages == written


def test_every_field_of_the_schema_is_there_with_its_meaning(pages):
    definitions = json.loads(SCHEMA.read_text())["$defs"]
    fields = {
        (name, description)
        for block in definitions.values()
        for name, value in block.get("properties", {}).items()
        if (description := value.get("description")) and name != "fromEnv"
    }
    text = "".join(pages.values()).replace("\\", "")

    assert len(fields) > 100
    assert [] == sorted(
        one for one in fields if not re.search(rf"\| `{one[0]}` .*{re.escape(one[1])}", text)
    )


def test_every_command_is_there(pages):
    headings = re.findall(r"(?m)^## ([a-z]+)$", pages["command-line.md"])

    assert [*COMMANDS] == headings


def test_every_exit_code_is_there(pages):
    operations = (PAGES.parent / "operations.md").read_text().split("## Exit codes", 1)[1]
    codes = re.findall(r"(?m)^\| (\d+) \|", operations)

    assert codes == re.findall(r"(?m)^\| (\d+) \|", pages["command-line.md"])
