"""Damage one file of a metadata table: a rebuild heals the table, or an error names the file."""

from __future__ import annotations

import os
import random
import shutil

import pytest

from tests.crash.test_metadata_repair_stops import INDEXED, RepairDrill
from tests.selection import examples, long
from tests.trees import unpack

ROUNDS = examples(3, many=340)


def damage(path, rng):
    """Cut a file, flip a bit of it, empty it or remove it; return what was done."""
    data, how = path.read_bytes(), rng.choice(("cut", "flip", "flip", "flip", "empty", "remove"))
    at = rng.randrange(max(len(data), 1))
    if how == "remove":
        path.unlink()
    elif how == "flip" and data:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
    else:
        path.write_bytes(data[:at] if how == "cut" else b"")
    if how != "remove":
        os.utime(path, (1, 1))  # nobody is writing it
    return f"{how} {path.name} at {at}"


def list_metadata_files(it):
    root = it.table / ".hoodie/metadata"
    found = [p for p in root.rglob("*") if p.is_file() and not p.name.endswith(".crc")]
    return sorted([*found, *it.table.glob(".hoodie/.index_defs/index.json")])


@pytest.mark.parametrize("version", ["1.2.0", long("0.15.0"), long("1.0.2")])
def test_a_damaged_metadata_table_is_rebuilt_or_its_file_is_named(version, tmp_path):
    unpack(INDEXED / f"{version}.zip", tmp_path / "t/table")
    it = RepairDrill(tmp_path / "t", {"repair": "rebuild"})
    it.copy(tmp_path / "before")
    files = [path.relative_to(it.table) for path in list_metadata_files(it)]
    rng = random.Random(20)
    healed = 0
    for number in range(ROUNDS):
        it.again(tmp_path / "before")
        path = it.table / (rng.choice(files) if number % 3 else rng.choice(files[:12]))
        what = f"{number}: {damage(path, rng)}"

        plan = it.plan()
        if plan.tables[0].error is None:
            result = it.apply(plan)
            error = result.tables[0].error
        else:
            error = plan.tables[0].error

        if error is not None:
            assert path.name in error, what
            continue
        healed += bool(plan.tables[0].steps)
        left = {one.metadata_partition for one in it.verify().differences}
        again = it.plan().tables[0]
        assert () == again.steps, what
        if version == "0.15.0" and left == {"column_stats"}:  # it has a column that stops a rebuild
            assert "it is not rebuilt" in again.warnings[0].because, what
        else:
            assert set() == left, what
    assert healed >= ROUNDS // 10


@pytest.mark.parametrize("version", ["1.2.0", long("0.15.0"), long("1.0.2")])
@pytest.mark.parametrize("gone", [".", long(".hoodie"), long("files"), long("record_index")])
def test_a_metadata_table_that_lacks_a_folder_is_rebuilt(version, gone, tmp_path):
    unpack(INDEXED / f"{version}.zip", tmp_path / "t/table")
    it = RepairDrill(tmp_path / "t", {"repair": "rebuild"})
    live = {*it.live} - (
        {"column_stats"} if version == "0.15.0" and gone != "record_index" else set()
    )
    shutil.rmtree(it.table / ".hoodie/metadata" / gone)

    result = it.apply(it.plan())

    assert (0, None) == (result.exit_code, result.tables[0].error)
    assert live == {*it.live}
    assert () == it.verify().differences
    assert () == it.plan().tables[0].steps


def test_without_a_repair_a_damaged_listing_is_an_error_that_says_how_to_get_one(tmp_path):
    unpack(INDEXED / "1.2.0.zip", tmp_path / "t/table")
    it = RepairDrill(tmp_path / "t", {"repair": "report"})
    (listing,) = it.table.glob(".hoodie/metadata/files/*.hfile")
    listing.write_bytes(b"")
    os.utime(listing, (1, 1))

    error = it.plan().tables[0].error

    assert listing.name in error
    assert error.endswith(
        "; declare metadata.repair: rebuild in the spec, or let a Hudi writer rebuild the metadata "
        "table"
    )
