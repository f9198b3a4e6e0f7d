"""Hudi's own index as we build it, against what Hudi itself wrote of the same files."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.errors import BusyError, UnsupportedError
from reconciler.executor.index import column_stats
from reconciler.executor.index.column_ranges import make_file_ranges
from reconciler.executor.index.column_stats import build_column_stats
from reconciler.hudi.load import PROPERTIES
from reconciler.hudi.metadata.bound_encoding import find_bound_encoding
from reconciler.hudi.metadata.index_definitions import DEFINITIONS, read_defined_columns
from reconciler.hudi.metadata.indexed_columns import learn_wrappers, read_indexed_columns
from reconciler.index.footers import index_footers
from tests.built_column_stats import build, open_test_session
from tests.column_stats import BOTH, find_gaps, load_metadata, read_entries
from tests.rewrite_jobs import unpack_table
from tests.storage_wrappers import RecordingStorage
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
    _table, look = open_test_session(path, ["id"])
    return {part.name: part.type for part in look.state.index_state.schema}


def test_bounds_are_wrapped_as_hudi_wraps_them(table):
    metadata, properties = load_metadata(table)
    types = kinds(table)
    columns = read_indexed_columns(metadata)
    if properties.table_version == 6:  # one that Hudi tries, and fails for greater values
        columns = [column for column in columns if column != "d38"]
    learned = learn_wrappers(metadata, columns)

    assert 17 <= len(learned)
    assert learned == {
        column: find_bound_encoding(types[column], properties.table_version).wrapper
        for column in learned
    }


@pytest.mark.parametrize("version", ["1.0.2", "1.2.0"])
def test_entries_are_those_of_hudi(tmp_path, version):
    path = unpack(INDEXED / f"{version}.zip", tmp_path / "t")
    expected = read_entries(path)
    columns = read_defined_columns(load_metadata(path)[0].source)
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
    assert {*columns} == {*read_defined_columns(load_metadata(path)[0].source)}
    assert expected == read_entries(path)


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


def state_of(path, columns):
    """What is known of the table's indexes."""
    _table, look = open_test_session(path, columns)
    return look.state.index_state


def test_an_index_of_every_file_has_no_gaps(table):
    assert 0 == state_of(table, ["i"]).hudi_files_without_entries


def test_files_without_entries_are_found_and_get_them(tmp_path, monkeypatch):
    path = without_index(unpack(INDEXED / "1.2.0.zip", tmp_path / "t"))
    left_out = []

    def all_but_one(index, keepings):
        for number, file in enumerate(make_file_ranges(index, keepings)):
            if number:
                yield file
            else:
                left_out.append(file.name)

    monkeypatch.setattr(column_stats, "make_file_ranges", all_but_one)
    build(path, ["i"])
    monkeypatch.undo()

    assert 18 == len(find_gaps(path, left_out))
    assert 1 == state_of(path, ["i"]).hudi_files_without_entries
    assert BOTH == build(path, ["i"]).partitions
    assert [] == find_gaps(path, left_out)
    assert 0 == state_of(path, ["i"]).hudi_files_without_entries


@pytest.mark.parametrize("version", ["1.0.2", "1.2.0"])
def test_files_without_an_entry_of_one_column_are_found(tmp_path, version):
    """As files that are older than a column, once a writer has written it down."""
    path = unpack(INDEXED / f"{version}.zip", tmp_path / "t")
    write_down(path, lambda columns: [*columns, "_hoodie_file_name"])

    assert 3 == state_of(path, ["i"]).hudi_files_without_entries
    built = build(path, ["i"])
    assert "_hoodie_file_name" in built.columns
    assert 0 == state_of(path, ["i"]).hudi_files_without_entries


def write_down(path, change):
    """As a writer that keeps other columns does with its next commit."""
    file = path / DEFINITIONS
    said = json.loads(file.read_text())
    definition = said["indexDefinitions"]["column_stats"]
    definition["sourceFields"] = change(definition["sourceFields"])
    file.write_text(json.dumps(said))


def test_what_a_writer_takes_out_again_is_not_built_again(tmp_path):
    path = without_index(unpack(INDEXED / "1.2.0.zip", tmp_path / "t"))
    build(path, ["i"])
    assert () == state_of(path, ["i"]).hudi_removed_by_writers
    write_down(path, lambda columns: [column for column in columns if column != "i"])

    assert ("i",) == state_of(path, ["i", "s"]).hudi_removed_by_writers
    assert () == build(path, ["i", "s"]).partitions
    write_down(path, lambda columns: [column for column in columns if column != "s"])
    assert ("i", "s") == state_of(path, ["i", "s"]).hudi_removed_by_writers


def test_what_hudi_itself_never_indexed_is_built(tmp_path):
    path = unpack(INDEXED / "1.2.0.zip", tmp_path / "t")
    write_down(path, lambda columns: [column for column in columns if column != "i"])

    assert () == state_of(path, ["i"]).hudi_removed_by_writers
    assert BOTH == build(path, ["i"]).partitions


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_counts_nulls_among_the_values(tmp_path, version):
    """Of files with one row too, and of a column that is null throughout."""
    path = unpack(INDEXED / f"{version}.zip", tmp_path / "t")
    counts = {key: said[2:] for key, said in read_entries(path)["column_stats"].items()}

    assert {(0, 1), (1, 1), (0, 2), (2, 2)} == {*counts.values()}
    look = open_test_session(path, ["i", "nul"])[1]
    schema = look.state.index_state.schema
    files = [name for name, column in counts if column == "i"]
    for name in files:
        (file,) = path.rglob(name)
        index = index_footers([("p", name, 1, pq.read_metadata(file))], ["i", "nul"], schema)
        keepings = {
            column: find_bound_encoding(schema.field(column).type, look.state.table_version)
            for column in ("i", "nul")
        }
        (found,) = make_file_ranges(index, keepings)
        assert {(r.column, r.nulls, r.values) for r in found.ranges} == {
            (column, *counts[name, column]) for column in ("i", "nul")
        }


@pytest.mark.parametrize("version", ["1.0.2", "1.2.0"])
def test_an_index_that_a_restore_has_emptied_is_built(tmp_path, version):
    """Its deltacommit is undone with what came after the savepoint, and it stays listed."""
    path = unpack(INDEXED / f"{version}.zip", tmp_path / "t")
    for file in (path / ".hoodie/metadata/column_stats").glob(".*col-stats*"):
        file.unlink()
    for file in (path / ".hoodie/metadata/column_stats").glob("col-stats*"):
        file.unlink()

    index = state_of(path, ["i"])
    assert (None, 3) == (index.hudi_problem, index.hudi_files_without_entries)
    assert BOTH == build(path, ["i"]).partitions
    assert 0 == state_of(path, ["i"]).hudi_files_without_entries


def test_a_column_that_hudi_has_no_place_for_is_no_reason_to_build(tmp_path):
    path = unpack(INDEXED / "1.0.2.zip", tmp_path / "t")

    assert () == build(path, ["i", "d38"]).partitions


def test_a_decimal_that_hudi_0_15_could_not_write_forbids_the_index(tmp_path):
    path = without_index(unpack(INDEXED / "0.15.0.zip", tmp_path / "t"))

    with pytest.raises(UnsupportedError, match=r"column d38 of type decimal128\(38, 10\)"):
        build(path, ["i"])


def test_pending_writes_forbid_the_index(tmp_path):
    path = unpack_table("v9_cow_part", tmp_path / "t")

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


LAST = "20261121173934299"


@dataclass
class Return:
    """A commit that was hidden and comes back at the n-th call that is about a path."""

    files: dict
    about: str = ""
    left: int = 0

    def look_at(self, call):
        if self.left and any(self.about in path for path in call.paths):
            self.left -= 1
            if not self.left:
                for path, data in self.files.items():
                    path.write_bytes(data)


class Meanwhile(RecordingStorage):
    def __init__(self, inner, returns):
        super().__init__(inner)
        self.returns = returns

    def _intercept(self, call, act, torn=None):
        self.returns.look_at(call)
        return super()._intercept(call, act, torn)


def hidden(path):
    """A table without index and without its last commit, that commit, and the file it wrote."""
    without_index(unpack(INDEXED / "1.2.0.zip", path))
    (file,) = path.rglob(f"*_{LAST}.parquet")
    gone = [file, *(path / ".hoodie/timeline").glob(f"{LAST}*")]
    returns = Return({one: one.read_bytes() for one in gone})
    for one in gone:
        one.unlink()
    table, look = open_test_session(path, ["i"], around=lambda storage: Meanwhile(storage, returns))
    assert 2 == len(look.state.index_state.files)
    return table, look, returns, file.name


MOMENTS = {
    "while footers are read": (".parquet", 1),
    "while the lock is taken": (".hoodie/lock", 1),
    "before the old index goes": (".hoodie/metadata/column_stats", 1),
    "while the index is written": ("col-stats-0001-0", 1),
}


@pytest.mark.parametrize("moment", MOMENTS, ids=MOMENTS.keys())
def test_a_commit_that_completes_meanwhile_is_in_the_index(tmp_path, moment):
    """Even of a writer that takes no lock."""
    path = tmp_path / "t"
    table, look, returns, name = hidden(path)
    returns.about, returns.left = MOMENTS[moment]
    built = build_column_stats(table, ["i"], look)

    assert 0 == returns.left
    assert name in {file for file, _column in read_entries(path)["column_stats"]}
    assert [] == find_gaps(path, [name])
    assert (BOTH, 3) == (built.partitions, built.files)
    assert () == build(path, ["i"]).partitions


def test_a_write_that_begins_meanwhile_keeps_the_index_from_being_listed(tmp_path):
    path = tmp_path / "t"
    table, look, returns, _name = hidden(path)
    returns.files = {f: data for f, data in returns.files.items() if "_" not in f.name}
    returns.about, returns.left = "col-stats-0001-0", 1

    with pytest.raises(BusyError, match=rf"{LAST}\.inflight is pending"):
        build_column_stats(table, ["i"], look)
    assert {} == read_entries(path)


def test_writers_that_never_rest_are_left_to_their_work(tmp_path, monkeypatch):
    path = without_index(unpack(INDEXED / "1.2.0.zip", tmp_path / "t"))
    table, look = open_test_session(path, ["i"])
    monkeypatch.setattr(column_stats, "_has_new_commits", lambda *_: True)

    with pytest.raises(BusyError, match="the timeline changed 3 times"):
        build_column_stats(table, ["i"], look)
    assert {} == read_entries(path)


class Stopped:
    """A clock that stands still."""

    def now_ms(self):
        return 1_800_000_000_000

    def sleep(self, seconds):
        pass


NOW = "20270115080000000"


@pytest.mark.parametrize(("name", "suffix"), [("v6_cow_part", "004"), ("v9_cow_part", "")])
def test_no_two_deltacommits_have_one_name(tmp_path, name, suffix):
    """Not where somebody else has begun an index at the very moment."""
    path = quiet(unpack_table(name, tmp_path / "t"))
    metadata, _properties = load_metadata(path)
    folder = path / metadata.folder
    last = metadata.timeline.commits[-1].requested
    for file in folder.glob(f"{last}[._]*"):
        taken = re.sub(r"_\d{17}", f"_{NOW}", file.name.replace(last, NOW + suffix))
        (folder / taken).write_bytes(file.read_bytes())
    before = {file.name for file in folder.iterdir()}
    table, look = open_test_session(path, ["x"], clock=Stopped())
    build_column_stats(table, ["x"], look)

    after = {file.name for file in folder.iterdir()}
    assert set() == before - after
    assert [f"{NOW[:-1]}1{suffix}"] == [*{re.split("[._]", name)[0] for name in after - before}]


def quiet(path):
    """The same table without the writes that were pending."""
    for one in open_test_session(path, ["x"])[1].state.timeline.instants:
        if not one.is_completed:
            for file in [
                *(path / ".hoodie/timeline").glob(f"{one.requested}.*"),
                *(path / ".hoodie").glob(f"{one.requested}.*"),
            ]:
                file.unlink()
    return path


def test_log_files_have_entries_that_keep_them_and_their_partitions(tmp_path):
    path = quiet(unpack_table("v9_mor_part", tmp_path / "t"))
    build(path, ["x"])

    said = read_entries(path)["column_stats"]
    logs = {
        name: stats for (name, column), stats in said.items() if name[0] == "." and column == "x"
    }
    assert 0 < len(logs)
    assert {(-math.inf, math.inf, 1, 2)} == {*logs.values()}
    assert [] == find_gaps(path, {name for name, _column in said})
