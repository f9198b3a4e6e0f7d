"""A table is made whole or not at all, wherever its making stops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import PlanError, StorageError
from reconciler.hudi.load import PROPERTIES, load_properties, load_timeline
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.hudi.timeline.instant import Action
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.writer.table_creation import create_table, make_declared_table
from tests.crash.drill import Killed
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.table_sessions import open_test_session, write_spec

NOW_MS = 1_796_083_200_000


@pytest.fixture(params=[6, 8, 9])
def spec(request, tmp_path):
    return write_spec(tmp_path, version=request.param)


def made(spec):
    """What there is: properties, timeline, the folders that its metadata table lists."""
    storage = open_storage(spec.path)
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    listing = read_metadata_listing(
        open_metadata_table(storage, version=properties.table_version, data=timeline)
    )
    return properties, timeline, listing


def test_a_table_is_there_with_its_metadata_table_and_its_first_write_announced(spec):
    instant = create_table(open_test_session(spec), make_declared_table(spec))

    properties, timeline, listing = made(spec)
    assert ("files",) == tuple(properties.metadata_partitions)
    assert [(instant, Action.COMMIT)] == [(i.requested, i.action) for i in timeline.instants]
    assert [] == [*listing.read_folders(set())]
    state = observe(open_storage(spec.path), spec, observed_ms=NOW_MS)
    assert (spec.table.version, 0) == (state.table_version, len(state.files))


def test_the_heart_of_the_first_write_beats_before_it_is_announced(spec):
    record = []
    create_table(
        open_test_session(spec, around=lambda s: record.append(RecordingStorage(s)) or record[-1]),
        make_declared_table(spec),
    )

    paths = [path for call in record[0].mutations for path in call.paths]
    beat = next(n for n, path in enumerate(paths) if ".heartbeat" in path)
    announced = next(n for n, path in enumerate(paths) if path.endswith(".commit.requested"))
    assert beat < announced < paths.index(PROPERTIES)


@pytest.mark.parametrize("how", ["before", "torn"])
def test_wherever_it_stops_the_next_run_makes_it(spec, how):
    record = []
    first = write_spec(_sub(spec, "first"), version=spec.table.version)
    create_table(
        open_test_session(first, around=lambda s: record.append(RecordingStorage(s)) or record[-1]),
        make_declared_table(first),
    )
    calls = record[0].mutations
    assert len(calls) >= 7
    for at, call in enumerate(calls, 1):
        if how == "torn" and not may_be_torn(call):
            continue
        it = write_spec(_sub(spec, f"{how}-{at}"), version=spec.table.version)
        clock = open_test_session(it).clock
        with pytest.raises(Killed):
            create_table(
                open_test_session(
                    it,
                    clock=clock,
                    around=lambda s, at=at: FaultyStorage(
                        s, StorageFault(at=at, mode=how), Killed()
                    ),
                ),
                make_declared_table(it),
            )
        second = open_test_session(it, pid=2, clock=clock)
        second.lock.release_stale()
        is_there = open_storage(it.path).stat(PROPERTIES) is not None

        assert (create_table(second, make_declared_table(it)) is None) == is_there, (at, call)
        assert ("files",) == tuple(made(it)[0].metadata_partitions), (at, call)


def may_be_torn(call):
    """Stores write a file whole; what nobody reads before there is a table need not be."""
    return call.method == "create" and ".hoodie/metadata/" in call.paths[0]


def _sub(spec, name):
    folder = Path(spec.path).parent / name
    folder.mkdir()
    return folder


def test_who_comes_second_finds_the_table(spec):
    create_table(open_test_session(spec), make_declared_table(spec))
    before = open_storage(spec.path).read(PROPERTIES)

    assert create_table(open_test_session(spec, pid=2), make_declared_table(spec)) is None
    assert before == open_storage(spec.path).read(PROPERTIES)


def test_a_folder_with_other_files_in_it_is_left_alone(spec):
    storage = open_storage(spec.path)
    storage.create("data.parquet", b"PAR1")

    with pytest.raises(PlanError, match=r"has data\.parquet but no Hudi table"):
        create_table(open_test_session(spec), make_declared_table(spec))
    assert ["data.parquet"] == [e.name for e in storage.list("") if not e.is_folder]


def test_a_table_that_has_lost_its_properties_is_not_made_anew(spec):
    folder = ".hoodie" if spec.table.version < 8 else ".hoodie/timeline"
    name = (
        "20260101000000000.commit"
        if spec.table.version < 8
        else "20260101000000000_20260101000001000.commit"
    )
    open_storage(spec.path).create(f"{folder}/{name}", b"{}")

    with pytest.raises(PlanError, match=r"restore .*hoodie\.properties from a copy"):
        create_table(open_test_session(spec), make_declared_table(spec))


def test_a_table_that_could_not_be_made_leaves_nothing_in_the_way(spec):
    class Denying(RecordingStorage):
        def create(self, path, data):
            if path == PROPERTIES and not self.calls_denied:
                self.calls_denied = True
                raise StorageError(path, "the disk is full")
            super().create(path, data)

        calls_denied = False

    with pytest.raises(StorageError, match="the disk is full"):
        create_table(open_test_session(spec, around=Denying), make_declared_table(spec))

    assert create_table(open_test_session(spec), make_declared_table(spec)) is not None
    assert 1 == len(made(spec)[1].instants)


def test_the_folder_of_the_lock_is_no_other_file(spec):
    locked = replace(spec.concurrency.lock, path="locks")
    spec = replace(spec, concurrency=replace(spec.concurrency, lock=locked))

    assert create_table(open_test_session(spec), make_declared_table(spec), "locks") is not None
