"""Real Hudi reads and writes on after our inserts have moved old rows into larger files."""

from __future__ import annotations

import base64
from itertools import combinations
from random import Random

import pytest

from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.verification.verify import verify_metadata
from reconciler.writer.request import WriteMode
from tests.manual_clustering import add_milliseconds
from tests.moving_tables import move_soon
from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.clustered_tables import list_completed
from tests.oracle.hudi import FEW_GROUPS, INDEXES, SMALL_FILTERS
from tests.oracle.our_writer import make_spec, read_rows, write
from tests.record_indexes import find_places
from tests.selection import EVERY_CASE, long

pytestmark = pytest.mark.oracle
#: rows of a batch, and the bytes of their texts
BATCH, WIDTH = 8, 4_000
#: about seven batches
TARGET = 240_000
NO_METADATA = {"hoodie.metadata.enable": "false", **SMALL_FILTERS}
#: Hudi rolls nothing back that its metadata table was compacted after
LATE = {"hoodie.metadata.compact.max.delta.commits": "50"}
INDEXED = {**INDEXES, **FEW_GROUPS, **LATE, "hoodie.index.type": "RECORD_INDEX"}
#: where Hudi's own bounds of long texts differ from those of footers
OF_LONG_TEXTS = ("column_stats", "partition_stats")
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"


@pytest.fixture(autouse=True)
def moves(monkeypatch):
    move_soon(monkeypatch)


def make_rows(first, count=BATCH, ts=1):
    """Return rows of one partition whose texts no encoding makes smaller."""
    found = []
    for number in range(first, first + count):
        text = base64.b64encode(Random(number).randbytes(WIDTH)).decode()
        found.append([f"a{number:04}", "a", ts, text, number / 4])
    return found


def keys(rows):
    return [row[0] for row in rows]


@pytest.mark.parametrize(
    ("version", "options", "merge_on_read"),
    [
        ("1.2.0", INDEXED, False),
        long("0.15.0", INDEXED, False),
        long("1.0.2", INDEXED, False),
        long("1.1.1", INDEXED, False),
        long("1.2.0", INDEXED, True),
        long("0.15.0", NO_METADATA, True),
        long("0.15.0", NO_METADATA, False),
        long("1.0.2", NO_METADATA, False),
        long("1.1.1", NO_METADATA, True),
        long("1.2.0", NO_METADATA, False),
    ],
)
def test_hudi_reads_rows_that_moved_and_writes_on(
    real_hudi, tmp_path, version, options, merge_on_read
):
    """As of every instant and between every two; its upserts and deletes find each moved row."""
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", options=options, merge_on_read=merge_on_read)
    has_metadata = options is INDEXED
    model = {row[0]: row for row in make_rows(0, 1)}
    hudi.write(table, [*model.values()], "insert")
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=merge_on_read, target=TARGET)

    def assert_right(*, other_than=()):
        rows = sorted(model.values(), key=repr)
        assert rows == read_rows(table)
        assert rows == hudi.rows(table, metadata=has_metadata)
        if has_metadata:
            found = verify_metadata(open_storage(str(table.path)), None).differences
            assert [] == [one for one in found if one.metadata_partition not in other_than]

    known, moved, number = [keys(model.values())], set(), 1
    for _ in range(6):
        before = find_places(table.path)
        rows = make_rows(number)
        number += BATCH
        write(spec, rows, WriteMode.INSERT)
        model |= {row[0]: row for row in rows}
        known.append(sorted(model))
        after = find_places(table.path)
        moved |= {key for key, place in before.items() if after[key] != place}
        state = observe(open_storage(str(table.path)), None, observed_ms=0)
        assert 4 >= len(state.view.files.group_partition)
    assert len(moved) > BATCH
    assert_right()
    _assert_instants(hudi, table, known, metadata=has_metadata)

    changed = [[key, "a", 5, "new", 0.5] for key in sorted(moved)[:2]]
    fresh = make_rows(number, 2, ts=5)
    hudi.write(table, [*changed, *fresh])
    model |= {row[0]: row for row in (*changed, *fresh)}
    gone = sorted(moved)[2]
    hudi.write(table, [(gone, "a", 9)], "delete")
    del model[gone]
    assert_right(other_than=OF_LONG_TEXTS)

    kept = dict(model)
    number += 2
    before = find_places(table.path)
    for _ in range(4):
        write(spec, rows := make_rows(number), WriteMode.INSERT)
        number += BATCH
        after = find_places(table.path)
        model |= {row[0]: row for row in rows}
        if any(after[key] != place for key, place in before.items()):
            break
        before, kept = after, dict(model)
    else:
        raise AssertionError("no rows moved after Hudi's writes")
    assert_right(other_than=OF_LONG_TEXTS)
    hudi.rollback(table, max(requested for requested, _ in list_completed(table)))
    model = kept
    assert_right(other_than=OF_LONG_TEXTS)
    moved_again = [key for key, place in before.items() if after.get(key) != place][:2]
    again = [[key, "a", 11, "again", 1.5] for key in moved_again]
    hudi.write(table, again)
    model |= {row[0]: row for row in again}
    assert_right(other_than=OF_LONG_TEXTS)


def _assert_instants(hudi, table, known, *, metadata):
    """Compare reads as of every instant and between every two with the keys known then."""
    times = list_completed(table)
    assert len(known) == len(times)
    pairs = list(combinations(range(len(times)), 2))
    for begin, end in pairs if EVERY_CASE else pairs[-4::2] + pairs[3:4]:
        first = times[begin][1]
        # 1.0 reads what completed at that time, too
        first = add_milliseconds(first, 1) if hudi.version == "1.0.2" else first
        said = {"hoodie.datasource.query.type": "incremental", BEGIN: first, END: times[end][1]}
        found = hudi.rows(table, columns=("id",), options=said, metadata=metadata)
        expected = sorted(set(known[end]) - set(known[begin]))
        assert expected == keys(found), (begin, end)
    for nth, (requested, _) in enumerate(times):
        found = hudi.rows(table, columns=("id",), as_of=requested, metadata=metadata)
        assert known[nth] == keys(found), nth
