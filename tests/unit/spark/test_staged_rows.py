"""Blocks that are staged between tasks."""

from __future__ import annotations

import pytest

from reconciler.spark.staged_rows import LocalRowSource


class Text:
    def __init__(self, text):
        self.text = text

    def write(self, sink, *, compressed):
        assert not compressed
        sink.write(self.text.encode())


def texts(place, pieces):
    yield place, sorted(piece.to_pybytes().decode() for piece in pieces)


def by_length(_number, words):
    for word in words:
        yield len(word) - 1, Text(word)


@pytest.fixture
def words(tmp_path):
    return LocalRowSource([["a", "of", "b"], [], ["to", "c"]], str(tmp_path)).shuffle(by_length, 3)


def test_every_place_gets_what_all_tasks_have_for_it_as_often_as_it_is_asked(words):
    expected = [(0, ["a", "b", "c"]), (1, ["of", "to"]), (2, [])]

    assert words.collect(texts) == expected
    assert words.collect(texts) == expected


def test_what_is_made_of_pieces_goes_on_while_they_stay(words):
    def doubled(place, pieces):
        for piece in pieces:
            yield 1 - place, Text(2 * piece.to_pybytes().decode())

    assert words.shuffle(doubled, 2).collect(texts) == [
        (0, ["ofof", "toto"]),
        (1, ["aa", "bb", "cc"]),
    ]
    assert len(words.collect(texts)) == 3


def test_pieces_of_two_stages_meet_at_their_places(words):
    def told(place, _pieces):
        yield place, Text(f"place {place}")

    found = words.union(words.shuffle(told, 3)).collect(texts)

    assert found == [
        (0, ["a", "b", "c", "place 0"]),
        (1, ["of", "place 1", "to"]),
        (2, ["place 2"]),
    ]


def test_a_task_that_fails_leaves_no_file(tmp_path):
    def fails(_number, words):
        yield 0, Text(next(words))
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        LocalRowSource([["a"]], str(tmp_path)).shuffle(fails, 1)
    assert [] == list(tmp_path.iterdir())
