"""The pages under ``docs/how-to`` print what they show; tables are written in this process."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import reconciler
from reconciler.cli import apply_executors, run_apply
from reconciler.cli.demo.orders import OrderBatch
from reconciler.cli.demo.table import write_batch
from reconciler.executor.deletion import LocalDeleter
from reconciler.render.write_result import write_text
from reconciler.storage.open import open_storage
from tests.command import run
from tests.pages import ShownFile, assert_shown, read_story
from tests.trees import unpack

COLUMNS = {"customer_id": pa.int64(), "country": pa.string()}
CASES = Path(__file__).parents[1] / "cases" / "clean"
ADOPTED = {
    "sales/orders": "cow_basic__1.2.0",
    "sales/returns": "cow_completed_clustering__0.15.0",
    "web/clicks": "mor_logs__1.0.2",
    "web/visits": "cow_insert_only__0.15.0",
}
#: the day after the tables were written, for commands that would take today
NOW = ("--now", "2026-11-22T00:00:00Z")
ON_A_DAY = ("plan", "status", "report", "simulate")
CREATED = {
    "type": "COPY_ON_WRITE",
    "version": 9,
    "recordKey": ["customer_id"],
    "partitionBy": ["country"],
    "ordering": ["updated_at"],
}


@pytest.fixture(autouse=True)
def _work_here(tmp_path, monkeypatch):
    """Run commands in an empty folder, and applies in this process."""
    monkeypatch.chdir(tmp_path)
    workers = apply_executors.Executors(LocalDeleter(open_storage))
    monkeypatch.setattr(run_apply, "open_executors", lambda *_, **__: nullcontext(workers))


def test_the_page_on_adopting_many_tables(tmp_path, capsys):
    for name, case in ADOPTED.items():
        unpack(CASES / case / "table.zip", tmp_path / "lake" / name, hollow=True)

    follow("how-to/adopt-many-tables.md", tmp_path, capsys)

    assert 5 == len(list((tmp_path / "site").rglob("*.html")))


def test_the_page_on_costs(tmp_path, capsys):
    table = unpack(CASES / "cow_basic__1.2.0" / "table.zip", tmp_path / "lake/sales/orders")
    for file in table.glob("*/*.parquet"):
        os.truncate(file, file.stat().st_size << 20)  # a table of terabytes, on no disk

    follow("how-to/costs.md", tmp_path, capsys)

    assert "Cost a month" in (tmp_path / "site" / "index.html").read_text()


def follow(page, folder, capsys):
    """Write the files and run the commands of a page, and compare what they print."""
    for shown in read_story(page):
        if isinstance(shown, ShownFile):
            (folder / shown.path).parent.mkdir(exist_ok=True)
            (folder / shown.path).write_text(shown.text)
            continue
        command, *words = shlex.split(shown.line)[1:]
        assert 0 == run(command, *words, *(NOW if command in ON_A_DAY else ())), shown.line
        printed = capsys.readouterr()
        assert_shown(shown, printed.out or printed.err)


def test_the_page_on_erasure(tmp_path, capsys):
    first, *story = read_story("how-to/erasure.md")
    assert isinstance(first, ShownFile)
    erased = prepare_customers(tmp_path, first)
    (tmp_path / "erase.csv").write_text("customer_id,country\n7,de\n")
    capsys.readouterr()

    for shown in story:
        if isinstance(shown, ShownFile):
            (tmp_path / shown.path).write_text(shown.text)
            continue
        words = [erased if word.endswith(".parquet") else word for word in shlex.split(shown.line)]
        if words[1] == "write":
            print(erase(tmp_path / words[2], tmp_path / words[3]))
        else:
            assert 0 == run(*words[1:]), capsys.readouterr().err
        assert_shown(shown, capsys.readouterr().out)

    assert not list(tmp_path.rglob(erased))
    assert 1 == len((tmp_path / "audit.jsonl").read_text().splitlines()[:1])
    assert json.loads((tmp_path / "plan.json").read_text())["tables"]


def prepare_customers(folder, spec: ShownFile) -> str:
    """Write customers, a savepoint and an upsert; return the name of the file with customer 7."""
    path = folder / spec.path
    path.parent.mkdir()
    path.write_text(f"{spec.text}  table: {json.dumps(CREATED)}\n")
    write(path, "bulk-insert", range(1000))
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3]
    time.sleep(0.002)
    path.write_text(re.sub(r"at: [^}]*", f"at: {at}Z", path.read_text()))
    assert 0 == run("apply", folder / "specs", "--auto-approve")
    write(path, "upsert", range(0, 1000, 10))
    [file] = (folder / "customers" / "country=de").glob("*.parquet")
    return file.name


def write(spec, operation, numbers):
    rows = pa.table(
        {
            "customer_id": pa.array(numbers, pa.int64()),
            "country": ["de" if number % 2 else "fr" for number in numbers],
            "updated_at": pa.array([datetime.now(UTC)] * len(numbers), pa.timestamp("us", "UTC")),
        }
    )
    return write_rows(spec, operation, rows)


def erase(spec, file) -> str:
    types = pyarrow.csv.ConvertOptions(column_types=COLUMNS)
    return write_rows(spec, "delete", pyarrow.csv.read_csv(file, convert_options=types))


def write_rows(spec, operation, rows) -> str:
    [table] = reconciler.load_specs(spec)
    batch = OrderBatch(name=spec.stem, operation=operation, rows=rows)
    return write_text(table.name, operation, write_batch(table, batch))
