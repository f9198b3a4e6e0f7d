"""A pattern is compiled by one thread, when enough has been matched to make it pay."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from reconciler.index import thrift_patterns
from reconciler.index.footer_validation import find_chunk_starts, is_valid_footer
from reconciler.index.thrift_patterns import LateMatcher
from tests.unit.index.footer_samples import write_footer
from tests.unit.index.test_slim_footers import parse_footer


def test_small_work_compiles_no_pattern(monkeypatch):
    monkeypatch.setattr(thrift_patterns.LateMatcher, "compile", None)
    matcher = LateMatcher(lambda: b"x")

    assert [None] * 100 == [matcher(b"x", 0) for _ in range(100)]


def test_what_follows_is_matched():
    matcher = LateMatcher(lambda: b"x")
    found = [matcher(b"yx", 1) for _ in range(102)]

    assert [False] * 100 + [True] * 2 == [match is not None for match in found]
    assert matcher(b"yx", 0) is None


def test_only_one_of_many_threads_compiles():
    many = 8
    together, compiled = threading.Barrier(many), []

    def make_pattern():
        compiled.append("once")
        time.sleep(0.05)  # the other threads come meanwhile
        return b"x"

    matcher = LateMatcher(make_pattern)

    def match(_):
        together.wait(10)
        return matcher.compile()(b"x", 0) is not None

    with ThreadPoolExecutor(many) as threads:
        assert [True] * many == list(threads.map(match, range(many)))
    assert ["once"] == compiled


def test_footers_are_read_the_same_before_and_after_patterns_are_compiled():
    footer = write_footer(pa.table({"s": ["k", None], "n": [1, 2], "d": [1.5, 2.5]}))
    schema = parse_footer(footer).schema
    thrift_patterns._row_group_matchers.cache_clear()
    thrift_patterns.match_usual_chunk.cache_clear()
    starts = [find_chunk_starts(footer) for _ in range(102)]
    chunk, _ = thrift_patterns._row_group_matchers()

    assert [starts[0]] * 102 == starts
    assert chunk._compiled is not None
    assert all(is_valid_footer(footer, schema) for _ in range(102))
