"""Writes beside damaged log files add their rows to what readers see, or name the file."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from reconciler.errors import ReconcilerError
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.storage.open import open_storage
from reconciler.writer.request import WriteMode
from tests.crash.write_drill import BEFORE, copy_table, make_table
from tests.selection import long, rounds
from tests.write_runs import COLUMNS, make_rows, read_snapshot

ROUNDS = rounds("DAMAGE_ROUNDS", few=2, many=500)


def damage(path, random):
    """Cut, flip or empty a file."""
    data = bytearray(path.read_bytes())
    how = random.choice(["cut", "flip", "flip", "flip", "empty"])
    if how == "cut":
        del data[random.randrange(len(data)) :]
    elif how == "flip":
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    else:
        data.clear()
    path.write_bytes(data)


def read_or_fail(it):
    """Return the rows that readers see, with their keys; None if the damage is an error."""
    try:
        return read_with_keys(it)
    except ReconcilerError:
        return None


def read_with_keys(it):
    """Return the rows with their keys: a flipped bit may have made another key of one."""
    return sorted(read_snapshot(open_storage(it.spec.path), (RECORD_KEY, *COLUMNS)), key=str)


@pytest.mark.parametrize("version", [long(6), 9])
def test_a_write_beside_a_damaged_log_file_adds_its_rows_to_what_readers_see(tmp_path, version):
    it = make_table(tmp_path / "t", version, "MERGE_ON_READ")
    it.write(make_rows((2, "b", 9, None)), WriteMode.DELETE)
    changed = (2, "b", 20, "again")
    for number in range(ROUNDS):
        random = Random(f"{version} {number}")
        run = copy_table(it, tmp_path / f"{number}")
        logs = sorted(Path(run.spec.path).glob("p=b/.*.log.*"))
        path = random.choice(logs)
        damage(path, random)
        before = read_or_fail(run)

        problem = ""
        try:
            run.write(make_rows(changed))
        except ReconcilerError as error:
            problem = str(error)

        if problem:
            assert path.name in problem, number
        elif before is not None:
            others = [row for row in before if row[0] != str(changed[0])]
            expected = sorted([*others, (str(changed[0]), *changed)], key=str)
            assert expected == read_with_keys(run), number
        shutil.rmtree(tmp_path / f"{number}")
    assert BEFORE[:1] == [row for row in it.read_rows() if row[1] == "a"]
