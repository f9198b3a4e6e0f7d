"""Where the keys of a write are looked up, and what is said of it."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from reconciler.layout.sizing.assignment_rules import CopyOnWrite, MergeOnRead
from reconciler.rewrite.model import Tally
from reconciler.writer.lookup_choice import choose_way, make_lookup
from reconciler.writer.lookup_costs import KeyLookup, LookupChoice, LookupWay
from reconciler.writer.row_counts import WriteCounts


def job(*, files, has_index=True, fields=(), partitions=("",), kind=None):
    """Stand for the job of a write into a table of so many files of 24 MiB."""
    index = SimpleNamespace(slices=range(10)) if has_index else None
    groups = SimpleNamespace(
        partitions=partitions, is_live=np.ones(files, np.bool_), base=np.full(files, 24 * 2**20)
    )
    rules = SimpleNamespace(partition=SimpleNamespace(fields=fields))
    return SimpleNamespace(
        index=index,
        kind=kind or CopyOnWrite(),
        groups=groups,
        row_job=SimpleNamespace(rules=rules),
    )


@pytest.mark.parametrize(
    ("given", "rows", "way"),
    [
        (job(files=1_000, has_index=False), 10, LookupWay.FILES),
        (job(files=1_000), 10, LookupWay.RECORD_INDEX),
        (job(files=8), 100_000, LookupWay.FILES),
        # a key may be elsewhere than its row says
        (job(files=8, fields=("p",), partitions=("p=1",)), 100_000, LookupWay.RECORD_INDEX),
        (job(files=8, partitions=("", "p=1")), 100_000, LookupWay.RECORD_INDEX),
        (job(files=8, kind=MergeOnRead()), 100_000, LookupWay.RECORD_INDEX),
    ],
)
def test_the_index_is_read_where_only_it_knows_or_where_it_costs_less(given, rows, way):

    assert way is choose_way(given, rows).way


def test_files_are_counted_by_what_told_their_keys():
    choice = LookupChoice(way=LookupWay.FILES, because="it is so")
    total = WriteCounts(answers=Counter({"range": 5, "filter": 2, "keys": 3}))

    expected = KeyLookup(
        way=LookupWay.FILES, because="it is so", out_of_range=5, filtered=2, searched=3
    )
    assert expected == make_lookup(choice, total)


def test_the_index_names_the_files_that_change():
    choice = LookupChoice(way=LookupWay.RECORD_INDEX, because="it is so")
    total = WriteCounts(changes={3: Tally(), 5: Tally()})

    found = make_lookup(choice, total)

    assert found == KeyLookup(way=LookupWay.RECORD_INDEX, because="it is so", searched=2)


def test_nothing_is_said_where_no_key_was_looked_up():

    assert make_lookup(None, WriteCounts()) is None
