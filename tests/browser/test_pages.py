"""HTML pages in a real browser: no error, no barrier, and lists that can be searched and sorted.

Looking for barriers costs most. The page of a plan has all that the others have, so usual runs look
at it and at one page of a table.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reconciler.render.html.documents import render_document
from reconciler.render.html.file_list import FATES
from reconciler.render.html.model import FileList, PageHead, TablePage
from tests.browser.chromium import BrowserPage, running_browser
from tests.command import run
from tests.plain_tables import add_commit, write_table
from tests.selection import long
from tests.trees import unpack

pytestmark = pytest.mark.oracle

ROOT = Path(__file__).parents[2]
NOW = ("--now", "2026-12-01T00:00:00+00:00", "--env", "prod", "-q")
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}}}
spec:
  path: {name}
  timezone: UTC
  retention: {{commits: 1}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
PRICES = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {name: prod}
spec:
  costs: {storage: 0.023 USD/GB-month}
"""
CLUSTERED = """\
  files: {target: 200KiB, small: 100KiB}
  clustering: {columns: [customer, amount], when: {smallFileShareAbove: 0.2, gainAbove: 0.1}}
  queries:
    - {name: one customer, where: "customer = 42", maxScan: 10%}
    - {name: dear, where: "amount > 990"}
"""


def long_cases(names, widths):
    """Every page, width and scheme, for runs of every case."""
    return [long(*case) for case in product(names, widths, ("light", "dark"))]


def make_orders(seed, rows=400):
    rng = np.random.default_rng(seed)
    amount, keys = rng.uniform(0, 1000, rows), rng.permutation(rows)
    return pa.table({"id": keys, "customer": rng.permutation(rows), "amount": amount})


@pytest.fixture(scope="module")
def specs(tmp_path_factory) -> Path:
    """A table to cluster, one with a savepoint and removals, and one that is not there."""
    folder = tmp_path_factory.mktemp("browser")
    parts = {f"day={day}": [make_orders(10 * day + n) for n in range(5)] for day in range(2)}
    write_table(folder / "orders", parts, by="day")
    add_commit(folder / "orders", {"day=0": [make_orders(99)]}, "20260102000000000")
    packed = ROOT / "tests/cases/clean/cow_savepoint__0.15.0/table.zip"
    unpack(packed, folder / "pinned", hollow=True)
    for name, more in (("orders", CLUSTERED), ("pinned", ""), ("gone", "")):
        (folder / f"{name}.yaml").write_text(SPEC.format(name=name) + more)
    (folder / "environments").mkdir()
    (folder / "environments/prod.yaml").write_text(PRICES)
    return folder


@pytest.fixture(scope="module")
def find_page(specs, tmp_path_factory):
    """Return the page of that name, which is made when a test asks for it."""
    site = tmp_path_factory.mktemp("site")
    options = (*sorted(specs.glob("*.yaml")), *NOW)

    def find(name: str) -> Path:
        file = site / f"{name}.html"
        if name in ("plan", "status"):
            if not file.exists():
                run(name, *options, "--format", "html", "-o", file)
            return file
        if not (site / "index.html").exists():
            run("report", *options, "-o", site)
        return file if file.exists() else site / "tables" / file.name

    return find


@pytest.fixture(scope="module")
def browser():
    with running_browser() as started:
        yield started


@pytest.fixture
def opened(browser, find_page):
    shown: list[BrowserPage] = []

    def show(page, **options):
        file = page if isinstance(page, Path) else find_page(page)
        shown.append(BrowserPage(browser, file, **options))
        return shown[-1]

    yield show
    for one in shown:
        one.close()


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("orders", 1280, "dark"),
        ("plan", 400, "light"),
        *long_cases(("index", "orders", "pinned", "gone", "plan", "status"), (400, 1280)),
    ],
)
def test_a_page_has_no_error_and_no_barrier(opened, name, width, scheme):
    shown = opened(name, width=width, scheme=scheme)
    shown.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")

    assert [] == shown.find_barriers()
    assert [] == shown.problems
    assert not shown.is_too_wide()
    assert [] == shown.list_clipped()


FOCUSED = """(({ ariaLabel, labels, innerText }) =>
    ariaLabel || (labels && labels[0] ? labels[0].innerText : innerText))(document.activeElement)"""


def test_the_keyboard_goes_to_what_can_be_used(opened):
    page = opened("pinned").page
    stops = []
    for _ in range(11):
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUSED).partition(":")[0].strip())

    assert stops == [
        "Skip to the content", "All tables", "Theme", "Show as a table", "Show as a table",
        "Find a file", "Show", "Files of pinned", "File", "Partition", "Kind",
    ]  # fmt: skip


def test_files_are_searched_chosen_and_explained(opened):
    page = opened("pinned").page
    page.get_by_label("Find a file").fill("b/620407f8")
    page.get_by_label("Show", exact=True).select_option(label="removed")

    assert page.locator(".files output").inner_text() == "1 of 9 files"
    page.locator(".files .scroll").focus()
    page.keyboard.press("ArrowDown")
    assert "base, 424.5 KiB, removed: superseded by" in page.locator(".chosen").inner_text()


def test_the_table_of_tables_is_sorted_searched_and_filtered(opened):
    shown = opened("index")
    page = shown.page
    names = page.locator("#fleet tbody tr:visible th")

    assert [] == shown.list_clipped(), "with ten columns and costs"
    assert ["gone", "orders", "pinned"] == names.all_inner_texts(), "the worst first"
    page.get_by_role("button", name="Size").click()
    assert ["pinned", "orders", "gone"] == names.all_inner_texts()
    assert page.locator("#fleet th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert page.locator("#fleet-order").inner_text() == "Sorted by Size, descending"
    page.get_by_label("Show").select_option(label="Healthy (2)")
    assert ["pinned", "orders"] == names.all_inner_texts()
    page.get_by_label("Find a table").fill("order")
    assert ["orders"] == names.all_inner_texts()
    assert page.locator("#fleet-count").inner_text() == "1 of 3 tables"
    page.get_by_role("link", name="orders").click()
    assert page.locator("h1").inner_text() == "orders"


def test_the_table_of_tables_fits_on_a_narrow_screen_and_on_paper(opened):
    shown = opened("index", width=400)
    page = shown.page
    names = page.locator("#fleet tbody tr:visible th")

    assert [] == shown.list_clipped()
    assert page.locator("#fleet td[data-title='Small files']:visible").count() == 2
    page.get_by_label("Sort by").select_option(label="Size")
    assert ["pinned", "orders", "gone"] == names.all_inner_texts()
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})
    assert not shown.is_too_wide()


def test_a_link_of_the_table_of_tables_opens_the_folded_table(opened):
    page = opened("plan").page
    folded = page.locator("[id='table:pinned']")

    assert not folded.locator(".path").is_visible()
    page.locator("#fleet").get_by_role("link", name="pinned").click()
    folded.locator(".path").wait_for(state="visible")
    assert folded.locator(".files tbody tr[data-place]").count() == 9


def test_the_switch_of_the_theme_wins_over_the_system(opened):
    page = opened("index", scheme="light").page
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Theme").click()

    assert page.evaluate(colour) != light
    assert page.get_by_role("button", name="Theme: dark").is_visible()


def make_long_page(folder, count):
    files = {
        "fates": list(FATES), "kinds": ["base", "log", "cdc"], "reasons": [""],
        "partitions": [f"dt=2026-01-{day:02d}" for day in range(1, 31)],
        "partition": [n % 30 for n in range(count)],
        "name": [f"{n:08x}-a5d4-471c-b443-7d807f51295b-0_0-301-322_20261121050710536.parquet"
                 for n in range(count)],
        "size": [n * 1000 for n in range(count)],
        "kind": [0] * count, "fate": [n % 3 for n in range(count)], "reason": [0] * count,
    }  # fmt: skip
    table = TablePage(
        name="t", anchor="t", path="/t", kind="",
        files=FileList(count=count, data=json.dumps(files)),
    )  # fmt: skip
    file = folder / "long.html"
    file.write_bytes(render_document(PageHead(title="t", kicker="", made=""), tables=[table]))
    return file


def test_a_hundred_thousand_files_open_and_are_searched_at_once(opened, tmp_path):
    shown = opened(make_long_page(tmp_path, 100_000))
    page = shown.page
    session = shown.context.new_cdp_session(page)
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    spent = {one["name"]: one["value"] for one in metrics}

    assert spent["TaskDuration"] < 2, "seconds of the page's thread"
    assert page.locator(".files output").inner_text() == "100 000 files"
    assert page.locator(".files tbody tr").count() < 60, "rows that are seen"
    page.get_by_label("Find a file").fill("0001869f")
    assert page.locator(".files output").inner_text() == "1 of 100 000 files"
    assert [] == shown.problems
