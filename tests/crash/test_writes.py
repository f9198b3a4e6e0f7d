"""Writes of rows, as whole runs: what is in the table afterwards, and what nobody may see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from reconciler.errors import FormatError, PlanError, RowsError, SpecError, UnsupportedError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.state.write_history import read_newest_writes
from reconciler.storage.open import open_storage
from reconciler.writer.request import WriteMode
from tests.storage_wrappers import RecordingStorage
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows


@pytest.fixture(params=[6, 8, 9])
def it(request, tmp_path):
    return WriteRuns(write_spec(tmp_path, version=request.param))


def test_the_first_write_makes_the_table(it):
    done = it.write(make_rows((1, "a", 1, "one"), (2, "b", 1, "two")))

    assert ("completed", 2, 2) == (done.status, done.files, done.counts.inserts)
    assert [(1, "a", 1, "one"), (2, "b", 1, "two")] == it.read_rows()


@pytest.mark.parametrize("extra", [{}, {"reconciler.tool": "reconciler 1.0"}], ids=str)
def test_the_history_knows_writes_of_this_tool(it, extra):
    it.write(make_rows((1, "a", 1, "one")), extra=extra)
    storage = open_storage(it.spec.path)
    properties = load_properties(storage)
    (written,) = read_newest_writes(storage, properties, load_timeline(storage, properties))

    assert bool(extra) == written.is_ours


def test_rows_are_changed_where_they_are_and_others_added(it):
    it.write(make_rows((1, "a", 1, "one"), (2, "b", 1, "two")))

    done = it.write(make_rows((1, "a", 2, "ONE"), (3, "a", 1, "three")))

    assert (1, 1) == (done.counts.updates, done.counts.inserts)
    assert (1, 0) == (done.rewritten_groups, done.created_groups)
    assert [(1, "a", 2, "ONE"), (2, "b", 1, "two"), (3, "a", 1, "three")] == it.read_rows()


def test_what_is_older_than_the_row_that_is_there_changes_nothing(it):
    it.write(make_rows((1, "a", 5, "one")))
    it.write(make_rows((1, "a", 4, "older")))

    assert [(1, "a", 5, "one")] == it.read_rows()


def test_rows_are_deleted_by_their_keys(it):
    it.write(make_rows((1, "a", 1, "one"), (2, "a", 1, "two")))

    done = it.write(make_rows((1, "a", 9, None), (7, "a", 9, None)), WriteMode.DELETE)

    assert (1, 1) == (done.counts.deletes, done.counts.absent_deletes)
    assert [(2, "a", 1, "two")] == it.read_rows()


def test_partitions_are_overwritten_where_rows_come(it):
    it.write(make_rows((1, "a", 1, "one"), (2, "b", 1, "two")))

    done = it.write(make_rows((5, "a", 1, "five")), WriteMode.INSERT_OVERWRITE)

    assert 1 == done.replaced_groups
    assert [(2, "b", 1, "two"), (5, "a", 1, "five")] == it.read_rows()


def test_the_whole_table_is_overwritten(it):
    it.write(make_rows((1, "a", 1, "one"), (2, "b", 1, "two")))
    it.write(make_rows((5, "c", 1, "five")), WriteMode.INSERT_OVERWRITE_TABLE)

    assert [(5, "c", 1, "five")] == it.read_rows()


def test_partitions_are_deleted(it):
    it.write(make_rows((1, "a", 1, "one"), (2, "b", 1, "two")))
    it.write(make_rows(), WriteMode.DELETE_PARTITION, partitions=["p=a"])

    assert [(2, "b", 1, "two")] == it.read_rows()


def test_a_deletion_of_partitions_writes_no_rows_that_come_with_it(it):
    it.write(make_rows((1, "a", 1, "one"), (2, "b", 1, "two")))
    done = it.write(make_rows((3, "a", 1, "three")), WriteMode.DELETE_PARTITION, partitions=["p=a"])

    assert (0, 1) == (done.files, done.replaced_groups)
    assert [(2, "b", 1, "two")] == it.read_rows()


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("secondary_index_x", "secondary index x, .* or drop the index and create it again"),
        ("expr_index_x", "expression index x, .* or drop the index and create it again"),
        ("vector_index_x", "partition 'vector_index_x' is unknown.* let Hudi write the rows"),
    ],
)
def test_an_index_that_cannot_be_kept_is_named_before_anything_is_written(it, index, said):
    it.write(make_rows((1, "a", 1, "one")))
    properties = Path(it.spec.path, ".hoodie/hoodie.properties")
    live = "hoodie.table.metadata.partitions=files"
    text = properties.read_text()
    assert live in text
    properties.write_text(text.replace(live, f"{live},{index}"))
    record = []

    with pytest.raises(UnsupportedError, match=said):
        it.write(
            make_rows((2, "a", 1, "two")),
            around=lambda s: record.append(RecordingStorage(s)) or record[-1],
        )
    assert [] == [call for call in record[0].mutations if "lock" not in call.paths[0]]


def cast(batch, name, kind):
    at = batch.schema.get_field_index(name)
    columns = [c.cast(kind) if n == at else c for n, c in enumerate(batch.columns)]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


@pytest.mark.parametrize(("name", "kind"), [("id", pa.float64()), ("ts", pa.string())])
def test_what_decides_about_rows_comes_in_the_tables_type(it, name, kind):
    it.write(make_rows((1, "a", 10, "one")))

    with pytest.raises(RowsError, match=f"column {name}, part of the table's .* cast it"):
        it.write(cast(make_rows((1, "a", 9, "two")), name, kind))
    assert [(1, "a", 10, "one")] == it.read_rows()


def test_the_column_of_the_partitions_is_never_filled_in(it):
    it.write(make_rows((1, "a", 1, "one")))

    with pytest.raises(RowsError, match="lack column p, part of the table's partition"):
        it.write(make_rows((1, "a", 2, "two")).drop_columns(["p"]), fills_missing=True)


def test_wider_whole_numbers_are_the_same_keys(it):
    it.write(cast(make_rows((1, "a", 1, "one")), "id", pa.int32()))
    it.write(make_rows((1, "a", 2, "two")))

    assert [(1, "a", 2, "two")] == it.read_rows()


def test_no_table_begins_with_rows_that_lack_what_it_is_declared_by(it):
    with pytest.raises(RowsError, match=r"lack column ts, which spec\.table\.ordering names"):
        it.write(make_rows((1, "a", 1, "one")).drop_columns(["ts"]))
    twice = make_rows((1, "a", 1, "one")).rename_columns(["id", "p", "ts", "ID"])
    with pytest.raises(RowsError, match="ID, id, which Hudi's readers cannot tell apart"):
        it.write(twice)
    with pytest.raises(PlanError, match=r"no table at .* to delete from"):
        it.write(make_rows((1, "a", 1, "one")), WriteMode.DELETE)

    assert [] == [*Path(it.spec.path).glob("**/*.properties")]


def test_a_table_keeps_the_keys_that_it_was_made_with(it):
    it.write(make_rows((1, "a", 1, "one")))
    it.spec = replace(it.spec, table=replace(it.spec.table, record_key=("id", "x")))

    with pytest.raises(SpecError, match=r"recordKey is id, x, and the table .* has id"):
        it.write(make_rows((1, "a", 2, "two")))


def test_rows_are_not_ordered_by_another_column_than_the_spec_says(it):
    it.write(make_rows((1, "a", 1, "one")))
    it.spec = replace(it.spec, table=replace(it.spec.table, ordering=("x",)))

    with pytest.raises(SpecError, match=r"ordering is x, and the table .* has ts"):
        it.write(make_rows((1, "a", 2, "two")))


def test_a_table_without_rows_that_was_made_with_other_keys_can_be_removed(it):
    with pytest.raises(RowsError, match="record key id: null or empty"):
        it.write(make_rows((None, "a", 1, "one")))
    it.spec = replace(it.spec, table=replace(it.spec.table, record_key=("x",)))

    with pytest.raises(SpecError, match=r"recordKey is x, .* nothing was written to it yet"):
        it.write(make_rows((1, "a", 1, "one")))


@pytest.mark.parametrize("schema", [{"type": "recrd"}, {"type": "string"}, {"type": "record"}])
def test_no_table_is_made_with_a_schema_that_is_none(it, schema):
    it.spec = replace(it.spec, table=replace(it.spec.table, schema=schema))

    with pytest.raises(SpecError, match=r"spec\.table\.schema is no Avro schema"):
        it.write(make_rows((1, "a", 1, "one")))
    assert [] == [*Path(it.spec.path).glob("**/*.properties")]


@pytest.mark.parametrize(("first", "second"), [("x", "x/y"), ("x/y", "x")])
def test_no_partition_is_made_in_another_whose_rows_would_hide_its_own(it, first, second):
    it.write(make_rows((1, first, 1, "one")))
    there = folders_of(it)

    with pytest.raises(RowsError, match=r"partition 'p?=?x/y' lies inside partition 'p?=?x'"):
        it.write(make_rows((2, second, 1, "two")))

    assert ([(1, first, 1, "one")], there) == (it.read_rows(), folders_of(it))


def folders_of(it):
    return sorted(path.parent.name for path in Path(it.spec.path).rglob("*.parquet"))


def test_a_table_is_not_emptied_by_rows_that_are_not_there(it):
    it.write(make_rows((1, "a", 1, "one")))

    with pytest.raises(RowsError, match="would empty the table"):
        it.write(make_rows(), WriteMode.INSERT_OVERWRITE_TABLE)
    assert [(1, "a", 1, "one")] == it.read_rows()


def test_partitions_that_are_not_there_are_named(it):
    it.write(make_rows((1, "a", 1, "one")))
    done = it.write(make_rows(), WriteMode.DELETE_PARTITION, partitions=["a"])

    assert ("nothing", ["partitions"]) == (done.status, [note.rule for note in done.warnings])
    assert "p=a" in done.warnings[0].because


def newest_in(it, partition):
    """The path of its base file that was written last."""
    return max(Path(it.spec.path, partition).glob("*.parquet"), key=lambda p: p.name.split("_")[2])


@pytest.mark.parametrize("way", [WriteMode.UPSERT, WriteMode.INSERT, WriteMode.DELETE])
def test_older_rows_do_not_pass_for_the_newest_where_a_committed_file_is_gone(it, way):
    it.write(make_rows((1, "a", 1, "one"), (2, "b", 1, "two")))
    it.write(make_rows((1, "a", 2, "ONE"), (3, "a", 1, "three")))
    gone = newest_in(it, "p=a")
    gone.unlink()
    timeline = sorted(Path(it.spec.path, ".hoodie").rglob("*.commit*"))

    with pytest.raises(FormatError, match=f"p=a/{gone.name}: is gone, .*; restore it from a copy"):
        it.write(make_rows((3, "a", 9, "new")), way)
    assert timeline == sorted(Path(it.spec.path, ".hoodie").rglob("*.commit*"))


def test_what_is_overwritten_may_have_lost_its_files(it):
    it.write(make_rows((1, "a", 1, "one"), (2, "b", 1, "two")))
    it.write(make_rows((1, "a", 2, "ONE"), (3, "a", 1, "three")))
    newest_in(it, "p=a").unlink()
    it.write(make_rows((5, "a", 1, "five")), WriteMode.INSERT_OVERWRITE)

    assert [(2, "b", 1, "two"), (5, "a", 1, "five")] == it.read_rows()
