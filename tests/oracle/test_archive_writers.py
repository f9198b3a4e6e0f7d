"""Archives that we write hold what real Hudi writes, and real Hudi goes on with them."""

from __future__ import annotations

import pytest

from tests.oracle.archived_tables import (
    EARLY,
    archive_here,
    encode_records,
    list_active,
    load_active,
    read_records,
    write_archivable_history,
)
from tests.oracle.hudi import COMPACT_METADATA, directory_listing, keep_commits
from tests.oracle.prepared_tables import (
    PLAIN,
    TableKind,
    assert_rows_and_listing,
    copy_table,
)
from tests.selection import cover_pairs

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(
    "kind", cover_pairs([(kind,) for kind in PLAIN], TableKind.list_values), ids=str
)
def test_we_archive_what_hudi_archives_and_hudi_goes_on(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "theirs", write_archivable_history)
    copy_table(table.path, tmp_path / "ours")
    ours, before = table.at(tmp_path / "ours"), load_active(table)
    rows = hudi.rows(table)
    hudi.archive(table)
    after = load_active(table)
    archived = [instant for key, instant in before.items() if key not in after]
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
    before = hudi.archived(table)
    for age in (11, 12):
        hudi.write(table, [("a1", "a", age)], options=COMPACT_METADATA)
    hudi.clean(table, keep_commits(1))
    hudi.archive(table, EARLY)
    found = hudi.archived(table)

    assert before < found
    assert len(found) == len({tuple(row[:3]) for row in found})
    assert all(content for *_row, state, _time, content in found if state == "COMPLETED")
    merged = [["a1", "a", 12, "v12", 12.0], *(row for row in rows if row[0] != "a1")]
    assert_rows_and_listing(hudi, table, merged)
