"""A log file that lost its end is read as far as it is whole, as by Hudi, and that is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli import app
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.storage.open import open_storage
from tests.trees import unpack

TABLES = Path(__file__).parents[2] / "tables"


@pytest.fixture(params=["v6_lazy_mor_tls", "v8_mor_part", "v9_mor_part"])
def table(request, tmp_path) -> Path:
    unpack(TABLES / f"{request.param}.zip", tmp_path)
    return tmp_path / request.param


def logs_of(table: Path) -> list[Path]:
    """Those of the newest slices."""
    scan = open_scan(open_storage(str(table)), ReadRequest())
    lists = scan.slices.column("logs").to_pylist()
    return sorted(table / path for paths in lists for path in paths)


def explained(table: Path, capsys, *more: str) -> tuple[str, list[str]]:
    assert 0 == app.run(["read", str(table), "--explain", *more])
    text = capsys.readouterr().out
    assert 0 == app.run(["read", str(table), "--explain", "--format", "json", *more])
    return text, json.loads(capsys.readouterr().out)["damaged"]


def test_of_whole_log_files_nothing_is_said(table, capsys):
    text, damaged = explained(table, capsys)

    assert logs_of(table)
    assert [] == damaged
    assert "damaged" not in text


@pytest.mark.parametrize("left", [0, 1, -1])
def test_a_log_file_that_was_cut_off_is_named_with_what_is_not_read(left, table, capsys):
    log = logs_of(table)[-1]
    whole = log.read_bytes()
    log.write_bytes(whole[:left])
    text, damaged = explained(table, capsys)

    size = len(whole[:left])
    bytes_ = "byte" if size == 1 else "bytes"
    (said,) = damaged
    assert said == (
        f"{log.relative_to(table)}: has {size} {bytes_}, but its writer declared {len(whole)}: the "
        "missing rows are not read; restore the file from a copy"
    )
    assert f"damaged{log.relative_to(table)}:has{size}byte" in "".join(text.split())


def test_log_files_that_are_not_read_are_not_looked_at(table, capsys):
    log = logs_of(table)[-1]
    log.write_bytes(log.read_bytes()[:-1])

    assert [] == explained(table, capsys, "--read-optimized")[1]


def test_a_commit_that_cannot_be_read_is_no_reason_for_a_read_to_fail(table, capsys):
    commits = (table / ".hoodie").rglob("*.deltacommit")
    damaged = sorted(path for path in commits if "metadata" not in path.parts)[-2]
    damaged.write_bytes(b"{}")
    (said,) = explained(table, capsys)[1]

    assert said.startswith("log files were not checked for missing ends: ")
    assert damaged.name in said
