"""A base file that a write reads is replaced by another write, and cleaned, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import BusyError, NotFoundError, ReconcilerError
from reconciler.writer.local import LocalWriter
from reconciler.writer.request import WriteMode
from tests.crash.write_drill import BATCH, get_timeline_folder, list_leftovers, make_table
from tests.storage_wrappers import RecordingStorage
from tests.write_runs import WriteRuns, make_rows

#: rows of another write, which replaces every file
OTHER = [(1, "a", 7, "7"), (2, "b", 7, "7"), (3, "b", 7, "7")]


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    return make_table(tmp_path / "it", request.param)


@dataclass(frozen=True)
class WriterWithTexts:
    """Raises the errors of its tasks as Spark does: only their text is left."""

    inner: LocalWriter

    def write(self, *rows: Any, **how: Any):
        try:
            return self.inner.write(*rows, **how)
        except NotFoundError as error:
            raise ReconcilerError(str(error)) from error


def list_files(it):
    return set(Path(it.spec.path).glob("*/*.parquet"))


def act_before_reading(act):
    """Return storage that calls ``act`` before a requested write reads its first base file."""
    seen = []

    class Before(RecordingStorage):
        is_requested = False

        def create(self, path, data):
            super().create(path, data)
            self.is_requested |= path.endswith(".commit.requested")

        def read_range(self, path, start, length):
            is_base = path.endswith(".parquet") and not path.startswith(".hoodie")
            if self.is_requested and is_base and not seen:
                seen.append(path)
                act()
            return super().read_range(path, start, length)

    return Before


def replace_files(it):
    """Write and clean as another run, which keeps one version of every file."""
    replaced = list_files(it)
    other = WriteRuns(it.spec)
    other.clock, other.count = it.clock, 50
    other.write(make_rows(*OTHER), living=frozenset({it.count}))
    for file in replaced:
        file.unlink()
    return other


@pytest.mark.parametrize(
    "writer", [LocalWriter, lambda storage: WriterWithTexts(LocalWriter(storage))]
)
@pytest.mark.parametrize("mode", [WriteMode.UPSERT, WriteMode.DELETE])
def test_a_write_whose_file_is_cleaned_gives_way_to_the_write_that_replaced_it(
    it, mode, writer, monkeypatch
):
    monkeypatch.setattr("tests.write_runs.LocalWriter", writer)

    with pytest.raises(BusyError, match=r"partition 'p=.': commit \d+ has written to its file gr"):
        it.write(BATCH, mode, around=act_before_reading(lambda: replace_files(it)))
    assert OTHER == it.read_rows()
    # of the write nothing; the listing still has what was cleaned
    assert {"p=a", "p=b"} == set(list_leftovers(it))


def test_the_write_that_replaced_a_file_may_be_archived(it):
    def act():
        other = replace_files(it)
        other.write(make_rows((9, "d", 1, "nine")), living=frozenset({it.count}))
        done = sorted(path.name[:17] for path in get_timeline_folder(it).glob("*.commit"))
        for path in get_timeline_folder(it).iterdir():
            if path.name[:17] in done[:2]:
                path.unlink()

    with pytest.raises(BusyError, match="was removed meanwhile, and writes were archived"):
        it.write(BATCH, around=act_before_reading(act))


def test_a_file_that_is_gone_although_nothing_has_replaced_it_is_named(it):
    (lost,) = (file for file in list_files(it) if file.parent.name == "p=a")

    with pytest.raises(NotFoundError, match=lost.name):
        it.write(BATCH, around=act_before_reading(lost.unlink))


def test_a_file_that_is_gone_from_a_partition_that_nobody_wrote_to_is_named(it):
    (lost,) = (file for file in list_files(it) if file.parent.name == "p=a")

    def act():
        other = WriteRuns(it.spec)
        other.clock, other.count = it.clock, 50
        other.write(make_rows(*OTHER[1:]), living=frozenset({it.count}))
        lost.unlink()

    with pytest.raises(NotFoundError, match=lost.name):
        it.write(BATCH, around=act_before_reading(act))
