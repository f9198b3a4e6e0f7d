"""Which way of looking up keys costs least."""

from __future__ import annotations

import pytest

from reconciler.writer.lookup_costs import LookupWay, asks_filter, choose_lookup

MIB = 2**20


@pytest.mark.parametrize(
    ("keys", "asks"), [(1, True), (1_000, True), (100_000, False), (1_000_000, False)]
)
def test_a_filter_is_asked_if_that_costs_less_than_reading_the_keys(keys, asks):

    assert asks == asks_filter(keys, rows=250_000, filter_bytes=866_000)


def test_a_filter_is_not_asked_for_a_file_of_few_rows():

    assert not asks_filter(1, rows=1_000, filter_bytes=866_000)


def test_a_filter_with_too_many_keys_rules_out_no_file():

    assert asks_filter(300, rows=250_000, filter_bytes=866_000)
    assert not asks_filter(300, rows=25_000_000, filter_bytes=866_000)


@pytest.mark.parametrize(
    ("keys", "files", "way"),
    [
        (10, 1_000, LookupWay.RECORD_INDEX),
        (1_000, 10_000, LookupWay.RECORD_INDEX),
        (10, 1, LookupWay.FILES),
        (100_000, 8, LookupWay.FILES),
        (1_000_000, 80, LookupWay.FILES),  # every file has some of them
        (1, 0, LookupWay.FILES),
    ],
)
def test_an_index_is_read_if_it_names_few_of_many_files(keys, files, way):
    choice = choose_lookup(keys, [24 * MIB] * files, index_groups=10)

    assert way is choice.way
    assert f"of {files} files: the record index costs about" in choice.because


def test_a_larger_table_makes_the_index_no_worse_a_choice():
    ways = [
        choose_lookup(500, [24 * MIB] * n, index_groups=10).way for n in (1, 10, 100, 1_000, 10_000)
    ]

    assert ways == sorted(ways, key=[LookupWay.FILES, LookupWay.RECORD_INDEX].index)
