"""``reconciler demo`` as far as it needs no JVM."""

from __future__ import annotations

import tempfile

import pytest

from reconciler.cli.demo import orders
from tests.command import run


@pytest.fixture
def few(monkeypatch, tmp_path):
    """A shop with few orders, in a folder of temporary files that is the test's own."""
    monkeypatch.setattr(orders, "_WEB", 200)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_rows_that_are_not_those_that_were_brought_end_it(few, monkeypatch, capsys):
    left = orders.remaining_orders
    monkeypatch.setattr(orders, "remaining_orders", lambda written: left(written).slice(1))

    assert run("demo") == 1
    said = capsys.readouterr()
    assert "the rows differ from those written" in said.err
    assert "reconciler plan" not in said.out
    assert list(few.iterdir()) == []


def test_commands_are_shown_as_they_are_typed_in_the_folder(few, monkeypatch, capsys):
    monkeypatch.setattr(orders, "remaining_orders", lambda _written: orders.SCHEMA.empty_table())
    folder = few / "a shop"

    assert run("demo", "--dir", folder) == 1
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("$ ")]
    assert shown[:2] == [
        f"$ cd '{folder}'",
        "$ reconciler write orders.yaml rows/morning.parquet --operation bulk-insert",
    ]
    assert all((folder / name).exists() for name in ("orders.yaml", "rows/morning.parquet"))


def test_a_folder_that_is_there_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").write_text("mine")

    assert run("demo", "--dir", tmp_path) == 1
    assert "already exists; name a new folder" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]
