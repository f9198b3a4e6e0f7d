"""Archives of tables that real Hudi made are of the code that makes these tables."""

from __future__ import annotations

import importlib
import os
import time

import pytest

from tests.oracle import kept_tables
from tests.oracle.kept_tables import FOLDER, KeptTable, find_digest, read_about
from tests.oracle.prepared_tables import KINDS, PreparedTables, name_kept, write_history

WORD = "one"
FACTS = {"options": {"a": "1"}}


def write_words():
    return [WORD, write_more()]


def write_more():
    return "more"


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """A table with one file, of which an archive was just made."""
    monkeypatch.setattr(kept_tables, "FOLDER", tmp_path / "kept")
    monkeypatch.setattr(kept_tables, "RECORDING", True)
    monkeypatch.setattr(kept_tables, "EVERY_CASE", False)
    file = tmp_path / "made" / "p" / "f"
    file.parent.mkdir(parents=True)
    file.write_text("rows")
    os.utime(file, ns=(0, 1_600_000_000_123_456_000))
    table = KeptTable(name="words-1", made_by=write_words, arguments=("words", 1))
    table.record(tmp_path / "made", FACTS)
    monkeypatch.setattr(kept_tables, "RECORDING", False)
    return table


def test_every_archive_is_of_the_code_as_it_is_now():
    archives = sorted(FOLDER.glob("*.tar.xz"))
    assert archives
    for archive in archives:
        origin = read_about(archive).origin
        module, function = origin["madeBy"].split(":")
        made_by = getattr(importlib.import_module(module), function)

        assert find_digest(made_by) == origin["code"], f"{archive.name}: RECORD_TABLES=1 makes it"


def test_a_table_comes_out_as_it_went_in(recorded, tmp_path):
    assert FACTS == recorded.unpack(tmp_path / "t")
    file = tmp_path / "t" / "p" / "f"
    assert "rows" == file.read_text()
    assert 1_600_000_000_123 == file.stat().st_mtime_ns // 1_000_000


@pytest.mark.parametrize(
    "other",
    [
        KeptTable(name="words-1", made_by=write_words, arguments=("words", 2)),
        KeptTable(name="words-1", made_by=write_more, arguments=("words", 1)),
    ],
)
def test_an_archive_of_other_code_is_refused_by_name_or_recorded_anew(
    recorded, tmp_path, monkeypatch, other
):
    assert recorded.archive == other.archive
    with pytest.raises(AssertionError, match=r"words-1\.tar\.xz is not of this code"):
        other.unpack(tmp_path / "t")
    monkeypatch.setattr(kept_tables, "RECORDING", True)
    assert None is other.unpack(tmp_path / "t")
    other.record(tmp_path / "made", FACTS)
    monkeypatch.setattr(kept_tables, "RECORDING", False)
    assert FACTS == other.unpack(tmp_path / "t")


def test_every_table_is_made_under_all(recorded, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_tables, "EVERY_CASE", True)

    assert None is recorded.unpack(tmp_path / "t")


def test_a_table_from_the_future_is_made_anew(recorded, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_500_000_000)

    assert None is recorded.unpack(tmp_path / "t")


def test_a_digest_changes_with_a_value_that_the_code_uses(monkeypatch):
    before = find_digest(write_words)
    monkeypatch.setitem(globals(), "WORD", "two")

    assert before != find_digest(write_words)


def test_a_digest_changes_with_a_function_that_the_code_uses(monkeypatch):
    before = find_digest(write_words)
    monkeypatch.setitem(globals(), "write_more", find_digest)

    assert before != find_digest(write_words)


def test_a_kept_history_starts_no_hudi(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_tables, "EVERY_CASE", False)
    kind = next(kind for kind in KINDS if name_kept(kind, write_history).archive.is_file())
    asked = []
    _, table = PreparedTables(asked.append, tmp_path).table(kind, tmp_path / "t")

    assert [kind.version] == asked
    assert table.instants(".commit") or table.instants(".deltacommit")
