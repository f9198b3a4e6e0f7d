"""Whether a table's timeline is still where a session has found it."""

from __future__ import annotations

import pytest

from reconciler.errors import FormatError, StaleError
from reconciler.hudi.load import PROPERTIES
from reconciler.hudi.table.properties import (
    TableProperties,
    compute_checksum,
    format_java_properties,
)
from reconciler.transaction.upgrades import load_timeline_in_place
from tests.unit.transaction.fakes import FakeClock, Shelf

OLD = ".hoodie/20251231000000000.commit"
NEW = ".hoodie/timeline/20251231000000000_20251231000000005.commit"


@pytest.fixture
def shelf():
    return Shelf(FakeClock())


def encode(version):
    raw = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": str(version),
        "hoodie.table.timeline.timezone": "UTC",
    }
    checksum = {"hoodie.table.checksum": str(compute_checksum(raw))}
    return format_java_properties(raw | checksum)


def load(shelf, version):
    properties = TableProperties.parse(encode(version), PROPERTIES)
    return load_timeline_in_place("sales.orders", shelf, properties)


def test_a_timeline_with_completed_instants_costs_no_other_request(shelf):
    shelf.create(OLD, b"")  # the properties are not there to be read

    assert 1 == len(load(shelf, 6).instants)


def test_a_timeline_without_completed_instants_is_that_of_a_new_table(shelf):
    shelf.create(PROPERTIES, encode(9))
    shelf.create(".hoodie/timeline/20260101000000000.commit.requested", b"")

    assert 1 == len(load(shelf, 9).instants)


def test_a_timeline_of_a_table_that_is_being_created_is_read(shelf):
    shelf.create(".hoodie/timeline/20260101000000000.commit.requested", b"")

    assert 1 == len(load(shelf, 9).instants)


@pytest.mark.parametrize(
    ("before", "now", "path", "message"),
    [
        (6, 9, NEW, "the table was upgraded from version 6 to 9 meanwhile; run it again"),
        (9, 6, OLD, "the table was downgraded from version 9 to 6 meanwhile; run it again"),
    ],
)
@pytest.mark.parametrize("left", [(), (".hoodie/{}20260101000000000.inflight",)])
def test_a_timeline_that_was_moved_is_noticed(shelf, before, now, path, message, left):
    shelf.create(PROPERTIES, encode(now))
    shelf.create(path, b"")
    shelf.create("p=a/f.parquet", b"")
    for name in left:  # a run writes its inflight file without the lock
        shelf.create(name.format("timeline/" if before == 9 else ""), b"")

    with pytest.raises(StaleError, match=message):
        load(shelf, before)


def test_a_timeline_that_is_lost_stays_damage(shelf):
    shelf.create(PROPERTIES, encode(9))
    shelf.create("p=a/f.parquet", b"")

    with pytest.raises(FormatError, match="the timeline folder named in"):
        load(shelf, 9)
