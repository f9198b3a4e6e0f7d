"""Hudi's own index as we build it, against what Hudi itself wrote of the same files."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from reconciler.errors import BusyError, UnsupportedError
from reconciler.hudi.load import PROPERTIES
from reconciler.hudi.metadata_columns import indexed_columns, wrappings
from reconciler.hudi.metadata_index import DEFINITIONS, defined_columns
from reconciler.hudi.metadata_keeping import keeping
from tests.building import build, opened
from tests.column_stats import BOTH, entries, gaps, metadata_of
from tests.rewriting import unpacked
from tests.trees import unpack

INDEXED = Path(__file__).parent / "indexed"
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
#: what Hudi says of a column of nulls: from zero to zero
NOTHING = (0, 0)


@pytest.fixture(params=VERSIONS)
def table(request, tmp_path):
    return unpack(INDEXED / f"{request.param}.zip", tmp_path / "t")


def without_index(path):
    """The same table, whose index was dropped: its folders are there still."""
    file = path / PROPERTIES
    file.write_text(re.sub("(column|partition)_stats,", "", file.read_text()))
    return path


def kinds(path):
    """The table's columns and their types."""
    _table, look = opened(path, ["id"])
    return {part.name: part.type for part in look.state.index.schema}


def test_bounds_are_wrapped_as_hudi_wraps_them(table):
    metadata, properties = metadata_of(table)
    types = kinds(table)
    columns = indexed_columns(metadata)
    if properties.table_version == 6:  # one that Hudi tries, and fails for greater values
        columns = [column for column in columns if column != "d38"]
    learned = wrappings(metadata, columns)

    assert 17 <= len(learned)
    assert learned == {
        column: keeping(types[column], properties.table_version).wrapping for column in learned
    }


@pytest.mark.parametrize("version", ["1.0.2", "1.2.0"])
def test_entries_are_those_of_hudi(tmp_path, version):
    path = unpack(INDEXED / f"{version}.zip", tmp_path / "t")
    expected = entries(path)
    columns = defined_columns(metadata_of(path)[0].source)
    expected = {
        name: {
            key: ((None, None) if key[1] == "nul" else said[:2]) + said[2:]
            for key, said in of_all.items()
        }
        for name, of_all in expected.items()
    }
    built = build(without_index(path), ["i"])

    assert BOTH == built.partitions
    assert {*columns} == {*built.columns}
    assert {*columns} == {*defined_columns(metadata_of(path)[0].source)}
    assert expected == entries(path)


def test_definitions_keep_what_else_is_defined(tmp_path):
    path = without_index(unpack(INDEXED / "1.2.0.zip", tmp_path / "t"))
    before = json.loads((path / DEFINITIONS).read_text())
    build(path, ["i"])

    after = json.loads((path / DEFINITIONS).read_text())
    for said in (before, after):
        said["indexDefinitions"]["column_stats"].pop("sourceFields")
    assert before == after


def test_properties_learn_where_the_definitions_are(tmp_path):
    path = without_index(unpack(INDEXED / "1.2.0.zip", tmp_path / "t"))
    file = path / PROPERTIES
    line = "hoodie.table.index.defs.path=.hoodie/.index_defs/index.json\n"
    file.write_text(file.read_text().replace(line, ""))
    (path / DEFINITIONS).unlink()
    build(path, ["i"])

    assert line in file.read_text()
    assert ["column_stats"] == [*json.loads((path / DEFINITIONS).read_text())["indexDefinitions"]]


def test_an_index_that_has_the_columns_is_left_alone(tmp_path):
    path = unpack(INDEXED / "1.2.0.zip", tmp_path / "t")
    before = sorted((path / ".hoodie").rglob("*"))

    assert () == build(path, ["i"]).partitions
    assert before == sorted((path / ".hoodie").rglob("*"))


def test_a_column_that_hudi_has_no_place_for_is_no_reason_to_build(tmp_path):
    path = unpack(INDEXED / "1.0.2.zip", tmp_path / "t")

    assert () == build(path, ["i", "d38"]).partitions


def test_a_decimal_that_hudi_0_15_could_not_write_forbids_the_index(tmp_path):
    path = without_index(unpack(INDEXED / "0.15.0.zip", tmp_path / "t"))

    with pytest.raises(UnsupportedError, match=r"column d38, of type decimal128\(38, 10\)"):
        build(path, ["i"])


def test_pending_writes_forbid_the_index(tmp_path):
    path = unpacked("v9_cow_part", tmp_path / "t")

    with pytest.raises(BusyError, match=r"20261121045719987\.inflight is pending"):
        build(path, ["x"])


def test_a_deltacommit_of_somebody_else_on_the_metadata_table_forbids_the_index(tmp_path):
    path = without_index(unpack(INDEXED / "1.2.0.zip", tmp_path / "t"))
    timeline = path / ".hoodie/metadata/.hoodie/timeline"
    for state in ("requested", "inflight"):
        (timeline / f"20300101000000000.deltacommit.{state}").write_bytes(b"")

    with pytest.raises(BusyError, match=r"20300101000000000\.deltacommit\.inflight is pending"):
        build(path, ["i"])


def test_a_pending_log_compaction_of_the_metadata_table_forbids_the_index(tmp_path):
    path = without_index(unpack(INDEXED / "1.2.0.zip", tmp_path / "t"))
    timeline = path / ".hoodie/metadata/.hoodie/timeline"
    (timeline / "20300101000000000.logcompaction.requested").write_bytes(b"")

    with pytest.raises(BusyError, match=r"20300101000000000\.logcompaction\.requested is pending"):
        build(path, ["i"])


def test_log_files_have_entries_that_keep_them_and_their_partitions(tmp_path):
    path = unpacked("v9_mor_part", tmp_path / "t")
    _table, look = opened(path, ["x"])
    for one in look.state.timeline.instants:
        if not one.is_completed:
            for file in (path / ".hoodie/timeline").glob(f"{one.requested}.*"):
                file.unlink()
    build(path, ["x"])

    said = entries(path)["column_stats"]
    logs = {
        name: stats for (name, column), stats in said.items() if name[0] == "." and column == "x"
    }
    assert 0 < len(logs)
    assert {(-math.inf, math.inf, 1, 2)} == {*logs.values()}
    assert [] == gaps(path, {name for name, _column in said})
