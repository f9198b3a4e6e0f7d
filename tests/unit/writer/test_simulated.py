"""A plan's prediction for the next rows is what the writer does."""

from __future__ import annotations

import pytest

from reconciler.layout.sizing.assignment_rules import CopyOnWrite
from reconciler.layout.sizing.simulate_inserts import simulate_inserts
from tests.unit.writer.ledger import Ledger, few_a_file, row, wide


def rows(count, first):
    return [row(key, name=wide(key)) for key in range(first, first + count)]


@pytest.mark.parametrize("count", [20, 90, 150, 200])
def test_the_writer_does_what_was_simulated(tmp_path, count):
    table = Ledger(tmp_path, rule=few_a_file(60))
    table.insert(*rows(24, first=0))
    (found,) = simulate_inserts(table.standing(), {"p=a": count}, CopyOnWrite(), table.rule)
    made = table.insert(*rows(count, first=100)).files
    filled = [each for each in made if each.previous_name is not None]
    new = [each for each in made if each.previous_name is None]

    assert (len(filled), len(new)) == (found.filled, found.new)
    assert sum(each.counts.inserts for each in filled) == found.filled_rows
    for files, said in ((filled, found.filled_sizes), (new, found.new_sizes)):
        sizes = [each.file.size for each in files]
        assert said is None or min(sizes) == pytest.approx(said.least, rel=0.15)
        assert said is None or max(sizes) == pytest.approx(said.most, rel=0.15)
