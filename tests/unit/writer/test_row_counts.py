"""New rows of unknown size are weighed before they are assigned."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from reconciler.layout.sizing.assignment_rules import FileSizeLimits, SteadyRule
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.spec.model import FileSizes
from reconciler.state.current_files import find_newest_bases
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.writer.job import RowOperation
from reconciler.writer.request import WriteMode
from reconciler.writer.row_counts import RowWeight, WeightSample
from tests.table_sessions import write_spec
from tests.unit.writer.ledger import ROWS, Ledger
from tests.write_runs import SCHEMA, WriteRuns

MIB = 1 << 20


def runs(folder, **files):
    sizes = FileSizes(target=MIB, small=800_000, **files)
    return WriteRuns(replace(write_spec(folder), files=sizes))


def narrow(count, first=0):
    """Return rows that take about thirty bytes each in a file."""
    keys = range(first, first + count)
    texts = [f"{random.Random(key).getrandbits(48):x}" for key in keys]
    columns = [list(keys), ["a"] * count, [1] * count, texts]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def sizes(runs):
    """Return the sizes of the files that readers see."""
    state = observe(open_storage(runs.spec.path), None, observed_ms=runs.clock.now_ms())
    return state.files.size[find_newest_bases(state.view)].tolist()


def is_as_wanted(found):
    small = [size for size in found if size < 800_000]
    return len(small) <= 1 and max(found) <= 1.15 * MIB


def test_the_first_write_of_a_table_makes_files_of_the_size_that_is_wanted(tmp_path):
    table = runs(tmp_path)
    table.write(narrow(60_000), WriteMode.INSERT)  # 58 files, at a kibibyte a row

    assert len(sizes(table)) > 1
    assert is_as_wanted(sizes(table))


def test_one_row_does_not_tell_how_big_the_others_are(tmp_path):
    table = runs(tmp_path)
    table.write(narrow(1), WriteMode.INSERT)
    table.write(narrow(60_000, first=1), WriteMode.INSERT)

    assert is_as_wanted(sizes(table))


def test_a_declared_size_counts_until_history_tells(tmp_path):
    table = runs(tmp_path, record_size=400)
    table.write(narrow(6_000), WriteMode.INSERT)

    assert len(sizes(table)) == 3


def test_a_table_of_many_rows_is_not_weighed_anew(tmp_path, monkeypatch):
    table = runs(tmp_path)
    table.write(narrow(1_000), WriteMode.INSERT)
    monkeypatch.setattr(WeightSample, "weigh", None)
    table.write(narrow(10, first=1_000), WriteMode.INSERT)

    assert len(table.read_rows()) == 1_010


def test_every_place_weighs_some_of_its_new_rows(tmp_path):
    known = RecordSize(fixed=0, per_row=1024.0, because="")
    rule = SteadyRule(
        sizes=FileSizeLimits(target=MIB, small=1), record_size=known, needs_row_sizes=True
    )
    table = Ledger(tmp_path, rule=rule)
    found = []
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array(range(9_000)),
            pa.array(["a"] * 9_000),
            pa.array([1] * 9_000),
            pa.array(["n"] * 9_000),
            pa.nulls(9_000, pa.bool_()),
        ],
        schema=ROWS,
    )
    table.write(RowOperation.INSERT, [rows], assigned=found.append)

    (bucket,) = found[0].assignment.expected_size.tolist()
    assert bucket == pytest.approx(next(iter(table.files.values()))[1], rel=0.1)


def test_a_sample_holds_no_more_rows_than_asked_and_few_of_wide_ones():
    wide = pa.RecordBatch.from_pydict({"x": ["x" * 10_000_000] * 8})
    some, few = WeightSample(5), WeightSample(100)
    some.add(pa.RecordBatch.from_pydict({"x": range(3)}), np.array([0, 2]))
    some.add(pa.RecordBatch.from_pydict({"x": range(9)}), np.arange(9))
    few.add(wide, np.arange(8))
    few.add(wide, np.arange(8))

    assert 5 == some.rows
    assert 4 == few.rows


def test_weights_of_places_are_added():
    both = RowWeight(rows=1, files=1, data=10, fixed=4).add(
        RowWeight(rows=3, files=1, data=10, fixed=6)
    )

    assert both.record_size == RecordSize(
        fixed=5, per_row=5.0, because="4 new rows were weighed", rows=4
    )
