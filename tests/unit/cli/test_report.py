"""HTML pages from the command line, of tables that real Hudi wrote; no JVM."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.command import run
from tests.trees import unpack

ROOT = Path(__file__).parents[3]
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {path}
  timezone: UTC
  retention: {{commits: 2}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
NOW = ("--now", "2026-11-22T00:00:00+00:00")


@pytest.fixture(scope="module")
def specs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("specs")
    packed = ROOT / "tests/cases/clean/cow_savepoint__0.15.0/table.zip"
    unpack(packed, folder / "orders", hollow=True)
    (folder / "orders.yaml").write_text(SPEC.format(name="sales.orders", path="orders"))
    (folder / "gone.yaml").write_text(SPEC.format(name="gone", path="nowhere"))
    return folder


def test_a_report_has_a_first_page_and_one_for_each_table(specs, tmp_path, capsys):
    site = tmp_path / "new" / "site"

    assert run("report", specs, "-o", site, *NOW) == 1, "a table cannot be read"
    index = (site / "index.html").read_text()
    links = re.findall(r'<th scope="row"><a href="([^"]*)">', index)

    assert ["tables/gone.html", "tables/sales.orders.html"] == links
    assert all((site / link).is_file() for link in links)
    assert 'href="../index.html"' in (site / links[1]).read_text()
    assert f"Report on 2 tables: {site}/index.html\n" in capsys.readouterr().out


def test_a_report_is_the_same_whenever_it_is_made_at_the_same_time(specs, tmp_path):
    for nth in ("1", "4"):
        run("report", specs, "-o", tmp_path / nth, *NOW, "--parallelism", nth)

    assert read_all(tmp_path / "1") == read_all(tmp_path / "4")


def read_all(folder):
    return {f.relative_to(folder): f.read_bytes() for f in folder.rglob("*.html")}


def test_programs_learn_where_the_pages_are(specs, tmp_path, capsys):
    options = ("--format", "json", "--name", "sales.*")

    assert run("report", specs, "-o", tmp_path, *NOW, *options) == 0
    assert json.loads(capsys.readouterr().out) == {
        "format": 1,
        "index": f"{tmp_path}/index.html",
        "tables": [{"error": None, "name": "sales.orders", "page": "tables/sales.orders.html"}],
    }


def test_a_report_overwrites_no_page_of_others(specs, tmp_path, capsys):
    (tmp_path / "index.html").write_text("<h1>mine</h1>")

    assert run("report", specs, "-o", tmp_path, *NOW) == 1
    assert "index.html: is no report of reconciler; name another folder" in capsys.readouterr().err
    assert (tmp_path / "index.html").read_text() == "<h1>mine</h1>"


def test_a_plan_goes_to_its_page_alone(specs, tmp_path, capsys):
    file = tmp_path / "plan.html"
    options = ("--name", "sales.*", "--format", "html", "-o", file, "--detailed-exitcode")

    assert run("plan", specs, *NOW, *options) == 2
    page = file.read_text()

    assert "" == capsys.readouterr().out
    assert page.startswith("<!doctype html>")
    assert "<h1>sales.orders</h1>" in page
    plan = tmp_path / "plan.json"
    run("plan", specs, *NOW, "--name", "sales.*", "-o", plan)
    assert json.loads(plan.read_text())["digest"] in page


def test_a_saved_plan_has_a_page_too(specs, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    run("plan", specs, *NOW, "--name", "sales.*", "-o", plan)
    capsys.readouterr()

    assert run("show", plan, "--format", "html") == 0
    assert "<h1>sales.orders</h1>" in capsys.readouterr().out


def test_a_status_is_a_page_of_all_tables(specs, tmp_path, capsys):
    file = tmp_path / "status.html"

    assert run("status", specs, *NOW, "--format", "html", "-o", file) == 1
    page = file.read_text()

    assert "" == capsys.readouterr().out
    assert re.findall(r'<details class="table fold" id="([^"]*)">', page) == [
        "table:gone",
        "table:sales.orders",
    ]
    assert 'class="file-data"' not in page, "no list of files"
