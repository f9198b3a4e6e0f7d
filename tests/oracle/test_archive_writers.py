"""Archives that we write hold what real Hudi writes, and real Hudi goes on with them."""

from __future__ import annotations

import pytest

from tests.oracle.archived_tables import (
    AT_ONCE,
    EARLY,
    archive_by_calls,
    archive_here,
    encode_records,
    list_active,
    list_archived,
    load_active,
    metadata_table,
    read_records,
    write_archivable_history,
)
from tests.oracle.hudi import COMPACT_METADATA, directory_listing, keep_commits
from tests.oracle.prepared_tables import TableKind, assert_rows_and_listing, copy_table
from tests.selection import long

pytestmark = pytest.mark.oracle
VERSIONS = OLD, _MIDDLE, NEW = "0.15.0", "1.0.2", "1.2.0"
KINDS = {
    (version, mor): TableKind(version=version, merge_on_read=mor)
    for version in VERSIONS
    for mor in (False, True)
}
#: layouts take turns with table types
TAKEN = (KINDS[OLD, True],)
OTHERS = [kind for kind in KINDS.values() if kind not in TAKEN]


@pytest.mark.parametrize("kind", [*TAKEN, *map(long, OTHERS)], ids=str)
def test_we_archive_what_hudi_archives_and_hudi_goes_on(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "theirs", write_archivable_history)
    copy_table(table.path, tmp_path / "ours")
    ours, before = table.at(tmp_path / "ours"), load_active(table)
    rows = hudi.rows(table)
    hudi.archive(table, AT_ONCE)
    archived = list_archived(before, table)
    of_hudi = read_records(table)

    assert {"commit", "replacecommit"} <= {instant.action.value for instant in archived}
    assert of_hudi == encode_records(table, archived)
    archive_here(ours, [load_active(ours)[i.requested, i.action.value] for i in archived])
    assert list_active(table) == list_active(ours)
    assert hudi.archived(table) == hudi.archived(ours)
    assert rows == hudi.rows(ours)
    assert directory_listing(ours.path) == hudi.listing(ours)
    _go_on(hudi, ours, rows)
    assert set(of_hudi) < set(read_records(ours))


def _go_on(hudi, table, rows):
    """Hudi writes, cleans and archives the table, and merges our file with its own."""
    before = {tuple(row) for row in hudi.archived(table)}
    for age in (11, 12):
        hudi.write(table, [("a1", "a", age)], options=COMPACT_METADATA)
    hudi.clean(table, keep_commits(1))
    hudi.archive(table, EARLY)
    found = [tuple(row) for row in hudi.archived(table)]

    assert before < set(found)
    assert len(found) == len({row[:3] for row in found})
    assert all(content for *_row, state, _time, content in found if state == "COMPLETED")
    merged = [["a1", "a", 12, "v12", 12.0], *(row for row in rows if row[0] != "a1")]
    assert_rows_and_listing(hudi, table, merged)


@pytest.mark.parametrize("version", [*map(long, VERSIONS)])
def test_we_archive_what_hudi_archives_of_a_metadata_table(library, tmp_path, version):
    hudi, table = library.table(KINDS[version, True], tmp_path / "t", write_archivable_history)
    metadata = metadata_table(table)
    archived = []
    for age in (7, 8, 9):
        before = load_active(metadata)
        options = EARLY | COMPACT_METADATA | {"hoodie.archive.automatic": "true"}
        hudi.write(table, [("b1", "b", age)], options=options)
        archived += list_archived(before, metadata)

    assert {"commit", "deltacommit"} <= {instant.action.value for instant in archived}
    assert read_records(metadata) == encode_records(metadata, archived)


@pytest.mark.parametrize("version", [*map(long, VERSIONS)])
def test_hudi_goes_on_after_every_call_of_an_archival_that_stopped(library, tmp_path, version):
    hudi, table = library.table(KINDS[version, False], tmp_path / "t", write_archivable_history)
    copy_table(table.path, tmp_path / "archived")
    before = load_active(table)
    hudi.archive(table.at(tmp_path / "archived"), AT_ONCE)
    archived = list_archived(before, table.at(tmp_path / "archived"))
    expected = hudi.archived(table.at(tmp_path / "archived"))
    calls = archive_by_calls(table, archived)
    for number, call in enumerate(calls):
        if number > 5 and number % 9:
            continue
        copy = table.at(tmp_path / str(number))
        copy_table(table.path, copy.path)
        hudi.archive(copy, AT_ONCE)

        found = hudi.archived(copy)
        assert {tuple(row[:3]) for row in expected} <= {tuple(row[:3]) for row in found}, call
        assert hudi.rows(table) == hudi.rows(copy)


@pytest.mark.parametrize("version", [*map(long, VERSIONS[1:])])
def test_a_newer_hudi_continues_and_upgrades_an_archive_of_layout_1(
    library, real_hudi, tmp_path, version
):
    old, table = library.table(KINDS[OLD, True], tmp_path / "t", write_archivable_history)
    copy_table(table.path, tmp_path / "archived")
    before = load_active(table)
    old.archive(table.at(tmp_path / "archived"), AT_ONCE)
    archive_here(table, list_archived(before, table.at(tmp_path / "archived")))
    rows, hudi = old.rows(table), real_hudi(version)
    archived = {tuple(row) for row in old.archived(table)}

    assert archived == {tuple(row) for row in hudi.archived(table)}
    _go_on(hudi, hudi.foreign(table, 6), rows)
    more = {tuple(row[:2]) for row in hudi.archived(table) if row[2] == "COMPLETED"}
    hudi.write(table, [("a1", "a", 13)], options={"hoodie.write.auto.upgrade": "true"})
    upgraded = hudi.archived(table)
    assert (table.path / ".hoodie" / "timeline" / "history").is_dir()
    assert more == {tuple(row[:2]) for row in upgraded}
    assert all(content for *_row, content in upgraded)


@pytest.mark.parametrize("version", [*map(long, VERSIONS)])
def test_we_archive_rollbacks_as_hudi_does(real_hudi, tmp_path, version):
    hudi = real_hudi(version)
    late = {"hoodie.metadata.compact.max.delta.commits": "99"}  # Hudi rolls back nothing before one
    table = hudi.table(tmp_path / "t", options=late)
    hudi.write(table, [("a1", "a", 1)])
    for age in range(2, 7):  # layout 1 keeps as many rollbacks as commits
        hudi.rollback(table, hudi.write(table, [("a1", "a", age)]))
        hudi.write(table, [("a1", "a", age)])
    hudi.write(table, [("a1", "a", 7)], options=COMPACT_METADATA)
    before = load_active(table)
    hudi.archive(table, AT_ONCE)
    archived = list_archived(before, table)

    assert "rollback" in {instant.action.value for instant in archived}
    assert read_records(table) == encode_records(table, archived)
