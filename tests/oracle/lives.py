"""What is checked of a table after it was clustered, whoever did it: a function a way to go on."""

from __future__ import annotations

import re

from tests.oracle import ours
from tests.oracle.hudi import COMPACT_METADATA, data_files, keep_commits, keep_versions
from tests.oracle.layouts import (
    BY_LISTING,
    CLUSTERING_GIVES_WAY,
    Clusterer,
    Shape,
    Shelf,
    Subject,
    by_hudi,
    changed,
    completed,
    replaced,
)

_FILE_ID = re.compile(r"\.?([0-9a-f-]{36}-\d+)_.*")


def same_rows(shelf: Shelf, shape: Shape) -> None:
    """Every view shows the rows that it showed: now, filtered, in time, and what changed since."""
    before, after = shelf.before(shape), shelf.after(shape)
    views = {**before.views(), **before.increments()}
    answers = before.read(views, shelf.answers())

    assert [] == [f"{name}: {one.refusal}" for name, one in answers.items() if one.refusal]
    assert [] == changed(answers, after.read(views, shelf.answers()))
    after.assert_right(shelf.answers())
    assert_only_new_files_are_read(after, shelf)


def assert_only_new_files_are_read(after: Subject, shelf: Shelf) -> None:
    """No replaced group is read, rows name the file that they are in, and the write says so."""
    (gone,) = replaced(after.table).values()
    assert len(gone) > 1
    if not after.shape.keeps_meta:
        return  # rows do not say where they are
    (found,) = after.read({"": {"options": BY_LISTING}}, shelf.answers()).values()
    assert found.rows is not None
    names = set(found.rows.column("_hoodie_file_name").to_pylist())
    assert set() == {_id(name) for name in names} & gone
    assert names <= {path.rpartition("/")[2] for path in data_files(after.path)}


def goes_on(shelf: Shelf, shape: Shape) -> None:
    """Hudi updates, deletes, compacts, clusters, cleans and archives what was clustered."""
    now = shelf.copy_of(shelf.after(shape))
    (gone,) = replaced(now.table).values()
    for number, index in enumerate(shape.indexes):
        value = 30 + number
        old, new = ("a01", "a10", "b04", "c01"), (f"a9{number}", f"c9{number}")
        options = {**COMPACT_METADATA, "hoodie.index.type": index}
        now.write(dict.fromkeys(old + new, value), options=options)
        now.assert_right(shelf.answers(), f"after an upsert by {index}")
    now.write({"a02": 0, "b03": 0}, "delete")
    if shape.merge_on_read:
        now.compact()
    now.assert_right(shelf.answers(), "after a delete, and a compaction of log files")
    by_hudi(now)
    now.assert_right(shelf.answers(), "after a clustering on top")
    now.hudi.clean(now.served(), keep_commits(1))
    now.assert_right(shelf.answers(), "after a clean")
    assert set() == gone & file_ids(now)
    now.hudi.archive(now.served())
    now.write({"a05": 60, "b91": 60}, options=COMPACT_METADATA)
    now.assert_right(shelf.answers(), "after archiving")


def written_once(shelf: Shelf, shape: Shape) -> None:
    """Hudi updates and inserts in one write, deletes, and cleans."""
    now = shelf.copy_of(shelf.after(shape))
    (gone,) = replaced(now.table).values()
    options = {**COMPACT_METADATA, "hoodie.index.type": shape.indexes[-1]}
    now.write(dict.fromkeys(("a01", "a10", "b04", "c01", "a90", "d90"), 30), options=options)
    now.write({"a02": 0, "b03": 0}, "delete")
    now.hudi.clean(now.served(), keep_versions(1))
    now.assert_right(shelf.answers(), "after writes and a clean")
    assert set() == gone & file_ids(now)


def taken_back(shelf: Shelf, shape: Shape, clusterer: Clusterer) -> None:
    """Hudi rolls a later write back, then restores a savepoint from before the clustering."""
    before = shelf.before(shape)
    now = shelf.copy_of(before)
    now.hudi.savepoint(now.table, completed(now.table)[-1][0])
    clusterer(now)
    model, kept = dict(now.model), dict(now.kept)
    later = now.write({"a04": 40, "b05": 40, "b95": 40})
    now.hudi.rollback(now.served(), later)
    now.model, now.kept = model, kept
    now.assert_right(shelf.answers(), "after the rollback of the write")
    now.hudi.restore(now.served(), completed(before.table)[-1][0])
    now.assert_right(shelf.answers(), "after the restore")
    assert file_ids(before) == file_ids(now)
    assert {} == replaced(now.table)
    # the restore leaves a clustering pending, its own as well as ours; a write may take it back
    now.write({"a04": 41, "b95": 41}, options=CLUSTERING_GIVES_WAY)
    now.assert_right(shelf.answers(), "after a write on top")


def cleaned_by_us(shelf: Shelf, shape: Shape) -> None:
    """Our clean removes the groups that were replaced, and Hudi goes on."""
    now = shelf.copy_of(shelf.after(shape))
    (gone,) = replaced(now.table).values()
    assert gone <= file_ids(now)
    ours.clean(now.table, {"fileVersions": 1})

    assert set() == gone & file_ids(now)
    now.assert_right(shelf.answers(), "after our clean")
    now.write({"a06": 44, "b06": 44, "a96": 44}, options=COMPACT_METADATA)
    now.assert_right(shelf.answers(), "after a write")


def file_ids(subject: Subject) -> set[str]:
    """Of all data files that are there."""
    return {_id(path.rpartition("/")[2]) for path in data_files(subject.path)}


def _id(name: str) -> str:
    found = _FILE_ID.fullmatch(name)
    assert found, name
    return found[1]
