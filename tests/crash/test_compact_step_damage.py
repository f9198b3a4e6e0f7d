"""Damaged input of a compaction: it is named, or merged as readers of the table read it."""

from __future__ import annotations

import random
import shutil

import pytest

from reconciler.errors import ReconcilerError
from tests.crash.test_compact_step import find_step, make
from tests.crash.test_failed_write_damage import damage
from tests.selection import examples, long

CASES = examples(2, many=500)


def list_inputs(it, step):
    """Return the files of the slices of a step."""
    groups = step.groups
    rows = zip(
        *(column.to_pylist() for column in (groups.partition, groups.base, groups.logs)),
        strict=True,
    )
    return [it.table / folder / name for folder, base, logs in rows for name in (base, *logs)]


def read(it):
    """Return the rows, or the text of the error."""
    try:
        return it.rows()
    except ReconcilerError as error:
        return str(error)


def list_said(result):
    (table,) = result.tables
    said = [table.error or ""]
    for outcome in table.outcomes:
        said += [note.because for note in outcome.warnings]
        said += [left.because for left in outcome.rewritten.left]
    return " ".join(said)


@pytest.mark.parametrize("version", ["1.2.0", long("0.15.0")])
def test_a_damaged_file_is_named_or_merged_as_readers_read_it(tmp_path, version):
    """Half of the damage comes after the review."""
    it = make(version, tmp_path / "t")
    whole, rows, rng = it.plan(), it.rows(), random.Random(21)
    paths = list_inputs(it, find_step(whole))
    for number in range(CASES):
        copy = it.copy(tmp_path / f"{number}")
        path = copy.table / rng.choice(paths).relative_to(it.table)
        plan = copy.plan()
        path.write_bytes(damage(path.read_bytes(), rng))
        before = read(copy)
        result = copy.apply(plan if number % 2 else copy.plan())

        after = read(copy)
        if isinstance(before, str):  # a compaction does not read the names of files
            assert after in (before, rows), (number, path.name)
        else:
            assert before == after, (number, path.name)
        assert 0 == result.exit_code or path.name in list_said(result), (number, result.tables)
        assert [] == copy.list_leftovers(), number
        shutil.rmtree(tmp_path / f"{number}")
