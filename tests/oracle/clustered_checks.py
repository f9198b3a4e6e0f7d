"""Checks of a table after a clustering, whoever did it: a function per continuation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.oracle import our_clean
from tests.oracle.clustered_tables import (
    BY_LISTING,
    CLUSTERING_GIVES_WAY,
    Clusterer,
    Shape,
    Subject,
    SubjectCache,
    cluster_by_hudi,
    find_changes,
    list_completed,
    list_replaced,
)
from tests.oracle.hudi import COMPACT_METADATA, data_files, keep_commits, keep_versions

_FILE_ID = re.compile(r"\.?([0-9a-f-]{36}-\d+)_.*")


def check_same_rows(shelf: SubjectCache, shape: Shape) -> None:
    """Every view shows the same rows, and they come from the new files."""
    check_same_answers(shelf, shape)
    assert_only_new_files_are_read(shelf.clustered(shape), shelf)


def check_same_answers(shelf: SubjectCache, shape: Shape) -> None:
    """Every view shows the same rows: now, filtered, in the past, and since then."""
    before, after = shelf.unclustered(shape), shelf.clustered(shape)
    views = {**before.views(), **before.increments()}
    answers = before.read(views, shelf.new_answer_folder())

    assert [] == [f"{name}: {one.refusal}" for name, one in answers.items() if one.refusal]
    assert [] == find_changes(answers, after.read(views, shelf.new_answer_folder()))
    after.assert_right(shelf.new_answer_folder())


def assert_only_new_files_are_read(after: Subject, shelf: SubjectCache) -> None:
    """No replaced group is read, and rows name the file that holds them."""
    (gone,) = list_replaced(after.table).values()
    assert len(gone) > 1
    if not after.shape.keeps_meta:
        return  # rows do not say where they are
    (found,) = after.read({"": {"options": BY_LISTING}}, shelf.new_answer_folder()).values()
    assert found.rows is not None
    names = set(found.rows.column("_hoodie_file_name").to_pylist())
    assert set() == {_id(name) for name in names} & gone
    assert names <= {path.rpartition("/")[2] for path in data_files(after.path)}


def check_hudi_continues(
    shelf: SubjectCache, shape: Shape, indexes: Sequence[str] | None = None
) -> None:
    """Hudi updates, deletes, compacts, clusters, cleans and archives the clustered table.

    ``indexes``: those that it finds rows by; all of the shape by default.
    """
    now = shelf.copy_subject(shelf.clustered(shape))
    (gone,) = list_replaced(now.table).values()
    for number, index in enumerate(indexes or shape.indexes):
        value = 30 + number
        old, new = ("a01", "a10", "b04", "c01"), (f"a9{number}", f"c9{number}")
        options = {**COMPACT_METADATA, "hoodie.index.type": index}
        now.write(dict.fromkeys(old + new, value), options=options)
        now.assert_right(shelf.new_answer_folder(), f"after an upsert by {index}")
    now.write({"a02": 0, "b03": 0}, "delete")
    if shape.merge_on_read:
        now.compact()
    now.assert_right(shelf.new_answer_folder(), "after a delete, and a compaction of log files")
    cluster_by_hudi(now)
    now.assert_right(shelf.new_answer_folder(), "after a clustering on top")
    now.hudi.clean(now.with_services(), keep_commits(1))
    now.assert_right(shelf.new_answer_folder(), "after a clean")
    assert set() == gone & list_file_ids(now)
    now.hudi.archive(now.with_services())
    now.write({"a05": 60, "b91": 60}, options=COMPACT_METADATA)
    now.assert_right(shelf.new_answer_folder(), "after archiving")


def check_one_write(shelf: SubjectCache, shape: Shape) -> None:
    """Hudi updates and inserts in one write, deletes, and cleans."""
    now = shelf.copy_subject(shelf.clustered(shape))
    (gone,) = list_replaced(now.table).values()
    options = {**COMPACT_METADATA, "hoodie.index.type": shape.indexes[-1]}
    now.write(dict.fromkeys(("a01", "a10", "b04", "c01", "a90", "d90"), 30), options=options)
    now.write({"a02": 0, "b03": 0}, "delete")
    now.hudi.clean(now.with_services(), keep_versions(1))
    now.assert_right(shelf.new_answer_folder(), "after writes and a clean")
    assert set() == gone & list_file_ids(now)


def check_rollback_and_restore(shelf: SubjectCache, shape: Shape, clusterer: Clusterer) -> None:
    """Hudi rolls a later write back, then restores a savepoint from before the clustering."""
    before = shelf.unclustered(shape)
    now = shelf.copy_subject(before)
    now.hudi.savepoint(now.table, list_completed(now.table)[-1][0])
    clusterer(now)
    model, kept = dict(now.model), dict(now.kept)
    later = now.write({"a04": 40, "b05": 40, "b95": 40})
    now.hudi.rollback(now.with_services(), later)
    now.model, now.kept = model, kept
    now.assert_right(shelf.new_answer_folder(), "after the rollback of the write")
    now.hudi.restore(now.with_services(), list_completed(before.table)[-1][0])
    now.assert_right(shelf.new_answer_folder(), "after the restore")
    assert list_file_ids(before) == list_file_ids(now)
    assert {} == list_replaced(now.table)
    # the restore leaves a clustering pending, its own as well as ours; a write may take it back
    now.write({"a04": 41, "b95": 41}, options=CLUSTERING_GIVES_WAY)
    now.assert_right(shelf.new_answer_folder(), "after a write on top")


def check_our_clean(shelf: SubjectCache, shape: Shape) -> None:
    """Our clean removes the replaced groups, and Hudi continues."""
    now = shelf.copy_subject(shelf.clustered(shape))
    (gone,) = list_replaced(now.table).values()
    assert gone <= list_file_ids(now)
    our_clean.clean(now.table, {"fileVersions": 1})

    assert set() == gone & list_file_ids(now)
    now.assert_right(shelf.new_answer_folder(), "after our clean")
    now.write({"a06": 44, "b06": 44, "a96": 44}, options=COMPACT_METADATA)
    now.assert_right(shelf.new_answer_folder(), "after a write")


def list_file_ids(subject: Subject) -> set[str]:
    """Return the file ids of all data files."""
    return {_id(path.rpartition("/")[2]) for path in data_files(subject.path)}


def _id(name: str) -> str:
    found = _FILE_ID.fullmatch(name)
    assert found, name
    return found[1]
