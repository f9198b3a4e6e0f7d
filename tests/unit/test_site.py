"""The documentation site has every page, and its links hold; ``./ci/docs`` builds it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NAVIGATION = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
TABS = ["Home", "Tutorial", "How-to", "Reference", "Concepts", "Design"]
LINK = re.compile(r"(?<!\\)\]\(<?([^)\s>]+)>?\)")


def list_pages(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for inner in entry.values():
            if isinstance(inner, str):
                yield inner
            else:
                yield from list_pages(inner)


def slug_of_code_hosts(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def slug_of_the_site(heading: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


@cache
def without_code(page: Path) -> str:
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that the site and code hosts both make for the headings of a page."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", without_code(page))
    headings = [one.strip().replace("`", "") for one in re.findall(r"(?m)^#+ (.*)$", text)]
    return frozenset(
        slug for one in headings if (slug := slug_of_code_hosts(one)) == slug_of_the_site(one)
    )


def find_broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", without_code(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_relative_to(DOCS):
            yield f"{link}: not a page of the site"
        elif not target.is_file():
            yield f"{link}: no such page"
        elif anchor and anchor not in anchors(target):
            yield f"{link}: no such heading, or with another anchor on the site than on code hosts"


def test_the_navigation_has_every_page_once():
    assert [page.relative_to(DOCS).as_posix() for page in PAGES] == sorted(list_pages(NAVIGATION))


def test_the_navigation_leads_from_learning_to_the_design():
    assert [name for entry in NAVIGATION for name in entry] == TABS


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(DOCS).as_posix() for page in PAGES])
def test_links_and_anchors_of_a_page_hold(page):
    assert [] == list(find_broken_links(page))


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("[a](nowhere.md)", "no such page"),
        ("[a](glossary.md#nowhere)", "no such heading"),
        ("[a](#nowhere)", "no such heading"),
        ("[a](../README.md)", "not a page of the site"),
    ],
)
def test_a_broken_link_is_found(link, problem, monkeypatch):
    page = DOCS / "index.md"
    monkeypatch.setitem(globals(), "without_code", lambda one: f"# A\n{link}\n{one.name}")
    anchors.cache_clear()
    try:
        [found] = find_broken_links(page)
    finally:
        anchors.cache_clear()

    assert problem in found


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(DOCS).as_posix() for page in PAGES])
def test_lists_and_tables_of_a_page_have_a_blank_line_before_them(page):
    """Without one, the site shows the list as text, which code hosts do not."""
    start = re.compile(r"(?m)^(?![ #|\-*]|\d+\. )[^\n]+\n((?:[-*]|\d+\.) [^\n]*|\|[^\n]*)$")

    assert [] == start.findall(without_code(page))


@pytest.mark.long
def test_the_site_builds_without_a_warning(tmp_path):
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    program = Path(sys.executable).with_name("zensical")

    done = subprocess.run(
        [program, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert (tmp_path / "site" / "index.html").is_file()
    assert [] == re.findall(
        r'<(?:link|script|img)[^>]*(?:src|href)="?(https?:[^" >]*)',
        (tmp_path / "site" / "index.html").read_text(),
    )
