"""Stop the rebuild of metadata partitions at any call: the next apply ends it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi.load import PROPERTIES, load_properties
from reconciler.hudi.table.properties import REBUILT
from tests.crash.drill import Killed
from tests.crash.test_metadata_repair_stops import RepairDrill, lie_about_ranges, make_drill
from tests.crash.write_drill import act_after
from tests.metadata_lies import MetadataLiar
from tests.selection import long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault

STORIES = [
    ("1.2.0", "both"),
    long(("0.15.0", "files")),
    long(("0.15.0", "both")),
    long(("1.0.2", "ranges")),
    long(("1.0.2", "files")),
    long(("1.2.0", "files")),
]


@dataclass
class Story:
    """A table before its repair, and what an undisturbed apply comes to."""

    it: RepairDrill
    before: Path
    live: tuple[str, ...]
    folders: list[str]
    stops: list[tuple[int, str]]


@pytest.fixture(scope="module", params=STORIES)
def story(request, tmp_path_factory):
    version, lie = request.param
    home = tmp_path_factory.mktemp("story")
    it = make_drill(version, home / "t", lie, repair="rebuild")
    live = it.live
    it.copy(home / "before")
    counted = []
    result = it.apply(
        it.plan(), around=lambda s: counted.append(RecordingStorage(s)) or counted[-1]
    )

    assert (0, None) == (result.exit_code, result.tables[0].error)
    if version != "0.15.0":  # it has a column that only Hudi can index in this version
        assert live == it.live
    assert () == it.verify().differences
    assert [] == list(it.plan().tables[0].steps)
    assert REBUILT not in load_properties(it.storage).raw
    mutations = [call for call in counted[0].calls if call.mutates]
    stops = [
        (at, call.method)
        for at, call in enumerate(mutations, 1)
        if any(path.startswith((".hoodie/metadata", PROPERTIES)) for path in call.paths)
    ]
    return Story(
        it=it, before=home / "before", live=it.live, folders=it.list_metadata_folders(), stops=stops
    )


@pytest.mark.parametrize("mode", ["before", long("torn"), long("after")])
def test_a_rebuild_that_stops_anywhere_is_ended_by_the_next_run(story, mode):
    it = story.it
    for at, _method in take_turn(story.stops, of=40, turn=17):
        it.again(story.before)
        with pytest.raises(Killed):
            it.apply(
                it.plan(),
                around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at, mode=mode), Killed()),
            )

        listed = set(it.live)
        assert listed <= set(it.list_metadata_folders()), at
        checks = it.verify().checks
        assert all(check.compared or not check.differences for check in checks), at
        second = it.apply(it.plan())
        assert (0, None) == (second.exit_code, second.tables[0].error), at
        assert story.live == it.live, at
        assert story.folders == it.list_metadata_folders(), at
        assert () == it.verify().differences, at
        assert [] == list(it.plan().tables[0].steps), at


def test_a_rebuild_touches_only_the_metadata_table_and_its_list(story):
    story.it.again(story.before)
    before = {p: p.read_bytes() for p in story.it.table.rglob("*") if p.is_file()}

    story.it.apply(story.it.plan())

    after = {p: p.read_bytes() for p in story.it.table.rglob("*") if p.is_file()}
    changed = {p for p in {*before, *after} if before.get(p) != after.get(p)}
    names = {p.relative_to(story.it.table).as_posix() for p in changed}
    others = {n for n in names if not n.startswith((".hoodie/metadata/", PROPERTIES))}
    assert others <= {".hoodie/.index_defs/index.json"}


def test_nothing_is_rebuilt_while_a_write_is_pending(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "ranges", repair="rebuild")
    plan = it.plan()
    (step,) = plan.tables[0].steps
    assert ("rebuild", ("column_stats", "partition_stats")) == (step.change, step.partitions)
    (it.table / ".hoodie/timeline/20261121180000000.commit.requested").write_bytes(b"")

    result = it.apply(plan)

    assert 6 == result.exit_code
    assert it.verify().differences
    (note,) = [note for note in it.plan().tables[0].warnings if note.rule == "metadata"]
    assert "it is not rebuilt" in note.because


def stop_before_the_list(it):
    """Stop a rebuild when its files are written and its partitions are not listed."""

    def stop(*_args):
        raise Killed

    plan = it.plan()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reconciler.executor.metadata_repair.list_partitions", stop)
        with pytest.raises(Killed):
            it.apply(plan)


@pytest.mark.parametrize("is_known", [True, long(False)])
def test_a_stopped_rebuild_that_meets_an_obstacle_is_given_up(is_known, tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "ranges", repair="rebuild")
    stop_before_the_list(it)
    assert "column_stats,partition_stats" == load_properties(it.storage).raw[REBUILT]

    def refuse(_table):
        raise UnsupportedError("there is a column of a new type")

    with pytest.MonkeyPatch.context() as patch:
        if is_known:
            patch.setattr("reconciler.verification.rebuild_obstacles.check_stats", refuse)
        plan = it.plan()
        assert ["drop" if is_known else "rebuild"] == [s.change for s in plan.tables[0].steps]
        patch.setattr("reconciler.executor.metadata_records.check_stats", refuse)

        result = it.apply(plan)

        assert (0, None) == (result.exit_code, result.tables[0].error)
        assert ["bloom_filters", "files", "record_index"] == it.list_metadata_folders()
        assert REBUILT not in load_properties(it.storage).raw
        assert () == it.plan().tables[0].steps


def test_an_obstacle_that_comes_after_the_review_is_said(tmp_path, monkeypatch):
    it = make_drill("1.2.0", tmp_path / "t", "ranges", repair="rebuild")
    plan, live = it.plan(), it.live

    def refuse(_table):
        raise UnsupportedError("there is a column of a new type")

    monkeypatch.setattr("reconciler.verification.rebuild_obstacles.check_stats", refuse)

    result = it.apply(plan)

    assert (4, live) == (result.exit_code, it.live)
    (left,) = result.tables[0].outcomes[0].repaired.left
    assert ("column_stats", "partition_stats") == left.partitions
    assert "it is not rebuilt: there is a column of a new type; declare" in left.because


@pytest.mark.long
def test_a_drop_after_a_stopped_rebuild_ends_it_too(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "ranges", repair="rebuild")
    with pytest.raises(Killed):
        it.apply(
            it.plan(),
            around=lambda s: FaultyStorage(s, StorageFault(at=18, mode="before"), Killed()),
        )
    assert "column_stats,partition_stats" == load_properties(it.storage).raw[REBUILT]
    assert "column_stats" in it.list_metadata_folders()
    other = RepairDrill(it.folder, {"repair": "drop"})

    other.apply(other.plan())

    assert ["bloom_filters", "files", "record_index"] == other.list_metadata_folders()
    assert REBUILT not in load_properties(it.storage).raw
    assert () == other.plan().tables[0].steps


@pytest.mark.long
def test_only_what_was_reviewed_is_rebuilt(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "both", repair="rebuild")
    plan = it.plan()
    base = min(p for p in it.table.rglob("*.parquet") if ".hoodie" not in p.parts)
    lie_about_ranges(MetadataLiar(it.table), base)

    it.apply(plan)

    assert {"column_stats"} == {one.metadata_partition for one in it.verify().differences}


@pytest.mark.parametrize("lie", ["ranges", long("files")])
def test_a_write_that_begins_while_partitions_are_built_keeps_them_unlisted(lie, tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", lie, repair="rebuild")
    plan, live = it.plan(), it.live
    begun = it.table / ".hoodie/timeline/20261121180000000.commit.requested"

    result = it.apply(
        plan, around=act_after(r"metadata/column_stats/\.hoodie", lambda: begun.write_bytes(b""))
    )

    assert 6 == result.exit_code
    assert f"{begun.name} is pending and may rely on" in result.tables[0].error
    assert "column_stats" not in it.live
    assert () == it.plan().tables[0].steps
    begun.unlink()  # it was rolled back
    assert 0 == it.apply(it.plan()).exit_code
    assert live == it.live
    assert () == it.verify().differences
