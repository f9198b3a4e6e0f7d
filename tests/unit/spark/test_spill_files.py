"""Blocks in spill files between tasks."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark.spill_files import SpillWriter, read_blocks


class Text:
    def __init__(self, data):
        self.data = data

    def write(self, sink, *, compressed):
        assert not compressed
        sink.write(self.data)


def shelf(folder, *pieces):
    with SpillWriter(str(folder)) as found:
        for place, data in pieces:
            found.write(place, Text(data))
        return found.finish()


def fetched(files, place):
    return [data.to_pybytes() for data in read_blocks(files, place)]


def test_every_place_gets_its_pieces_file_by_file_in_the_order_they_were_put(tmp_path):
    files = [
        shelf(tmp_path, (3, b"a"), (0, b"b" * 1000), (3, b""), (3, b"c")),
        shelf(tmp_path),
        shelf(tmp_path, (1, b"d"), (3, b"e")),
    ]

    expected = {0: [b"b" * 1000], 1: [b"d"], 2: [], 3: [b"a", b"", b"c", b"e"], 4: []}
    assert expected == {place: fetched(files, place) for place in range(5)}
    assert {0} == {data.address % 64 for data in read_blocks(files, 3)}


def test_pieces_stay_when_their_file_has_gone(tmp_path):
    (data,) = read_blocks([one := shelf(tmp_path, (0, b"abc"))], 0)
    Path(one.path).unlink()

    assert b"abc" == data.to_pybytes()


def test_every_attempt_has_a_file_of_its_own_and_one_that_fails_leaves_none(tmp_path):
    first, second = shelf(tmp_path, (0, b"a")), shelf(tmp_path, (0, b"b"))
    with pytest.raises(AttributeError), SpillWriter(str(tmp_path)) as third:
        third.write(0, None)

    assert {first.path, second.path} == {str(path) for path in tmp_path.iterdir()}
    assert [b"b"] == fetched([second], 0)


@pytest.mark.parametrize("size", [20_000, 2_000_000], ids=["at the end", "at once"])
def test_a_full_disk_is_told_in_one_sentence_and_nothing_stays_on_it(size, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(ReconcilerError) as raised:
            shelf(tmp_path, (0, bytes(size)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert (
        f"{tmp_path}: cannot write the spill file: File too large; free space "
        "there, or put temporary files elsewhere (spark.local.dir, else TMPDIR)"
    ) == str(raised.value)
    assert [] == list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(ReconcilerError, match=r"gone: cannot write .*: No such file or directory"):
        shelf(tmp_path / "gone", (0, b""))


def test_a_file_that_something_else_removed_is_told(tmp_path):
    one = shelf(tmp_path, (0, b"abc"))
    Path(one.path).unlink()
    with pytest.raises(ReconcilerError, match="cannot read the spill file") as raised:
        fetched([one], 0)

    assert str(raised.value).startswith(f"{one.path}: cannot read the spill file")
    assert "\n" not in str(raised.value)
