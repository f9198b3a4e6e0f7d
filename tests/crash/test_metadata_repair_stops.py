"""Stop the repair of a metadata table at any call: readers see a whole partition or none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import reconciler
from reconciler.hudi.load import PROPERTIES, load_properties
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.verification.verify import verify_metadata
from tests.crash.clustering_drill import ClusteringDrill
from tests.crash.drill import NOW, Killed
from tests.metadata_lies import MetadataLiar
from tests.selection import long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.trees import unpack

INDEXED = Path(__file__).parents[1] / "tables/indexed"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  metadata: {{verify: {verify}, repair: {repair}}}
  concurrency: {{lock: {{provider: {lock}}}}}
"""


@dataclass
class RepairDrill(ClusteringDrill):
    """A table whose metadata table is verified and repaired."""

    def __post_init__(self):
        said = {"verify": "each-apply", "repair": "drop", "lock": "filesystem", **self.said}
        (self.folder / "spec.yaml").write_text(SPEC.format(path=self.table, **said))
        (self.spec,) = reconciler.load_specs(self.folder / "spec.yaml")

    def plan(self):
        return reconciler.plan([self.spec], now=NOW)

    @property
    def live(self):
        return load_properties(self.storage).metadata_partitions

    def verify(self):
        return verify_metadata(ReadOnlyStorage(self.storage), None)

    def list_metadata_folders(self):
        root = self.table / ".hoodie/metadata"
        return sorted(path.name for path in root.glob("*") if path.name != ".hoodie")


def make_drill(version, folder, lie, **said):
    unpack(INDEXED / f"{version}.zip", folder / "table")
    it = RepairDrill(folder, said)
    liar = MetadataLiar(it.table)
    base = min(p for p in it.table.rglob("*.parquet") if ".hoodie" not in p.parts)
    LIES[lie](liar, base)
    return it


def lie_about_ranges(liar, base):
    liar.set_range(base.parent.name, base.name, "i", 5000, 6000)


def lie_about_files(liar, base):
    liar.list_file(base.parent.name, base.name.replace("-0_", "-0_9", 1), 10)


def lie_about_filters_and_keys(liar, base):
    liar.remove_filter(base.parent.name, base.name)
    key = pq.read_table(base, columns=["_hoodie_record_key"])[0][0].as_py()
    liar.set_location(key, "nowhere", base.name)


LIES = {"ranges": lie_about_ranges, "files": lie_about_files, "both": lie_about_filters_and_keys}
DROPPED = {
    "ranges": {"column_stats", "partition_stats"},
    "both": {"bloom_filters", "record_index"},
}
STORIES = [
    ("1.2.0", "ranges"),
    long(("0.15.0", "files")),
    long(("1.0.2", "both")),
    long(("1.2.0", "files")),
]


@dataclass
class Story:
    """A table before its repair, and what an undisturbed apply comes to."""

    it: RepairDrill
    before: Path
    live: tuple[str, ...]
    stops: list[tuple[int, str]]


@pytest.fixture(scope="module", params=STORIES)
def story(request, tmp_path_factory):
    version, lie = request.param
    home = tmp_path_factory.mktemp("story")
    it = make_drill(version, home / "t", lie)
    it.copy(home / "before")
    expected = () if lie == "files" else tuple(sorted(set(it.live) - DROPPED[lie]))
    counted = []
    result = it.apply(
        it.plan(), around=lambda s: counted.append(RecordingStorage(s)) or counted[-1]
    )

    assert (0, None) == (result.exit_code, result.tables[0].error)
    assert expected == it.live
    assert [] == list(it.plan().tables[0].steps)
    mutations = [call for call in counted[0].calls if call.mutates]
    stops = [
        (at, call.method)
        for at, call in enumerate(mutations, 1)
        if any(path.startswith((".hoodie/metadata", PROPERTIES)) for path in call.paths)
    ]
    return Story(it=it, before=home / "before", live=expected, stops=stops)


@pytest.mark.parametrize("mode", ["before", long("torn"), long("after")])
def test_a_repair_that_stops_anywhere_is_ended_by_the_next_run(story, mode):
    it = story.it
    for at, method in take_turn(story.stops, of=8):
        if mode == "torn" and method != "delete_many":
            continue
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
        assert list(story.live) == it.list_metadata_folders(), at
        assert [] == list(it.plan().tables[0].steps), at


def test_a_repair_touches_nothing_else(story):
    story.it.again(story.before)
    before = {p: p.read_bytes() for p in story.it.table.rglob("*") if p.is_file()}

    story.it.apply(story.it.plan())

    after = {p: p.read_bytes() for p in story.it.table.rglob("*") if p.is_file()}
    changed = {p for p in {*before, *after} if before.get(p) != after.get(p)}
    names = {p.relative_to(story.it.table).as_posix() for p in changed}
    assert {PROPERTIES} == {n for n in names if not n.startswith(".hoodie/metadata/")}


def test_nothing_is_dropped_while_a_write_is_pending(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "ranges")
    (it.table / ".hoodie/timeline/20261121180000000.commit.requested").write_bytes(b"")

    plan = it.plan()

    assert () == plan.tables[0].steps
    (note,) = [note for note in plan.tables[0].warnings if note.rule == "metadata"]
    assert "is pending and may rely on it" in note.because


def test_a_write_that_begins_after_the_review_keeps_the_partitions(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "ranges")
    plan = it.plan()
    (it.table / ".hoodie/timeline/20261121180000000.commit.requested").write_bytes(b"")

    it.apply(plan)

    assert "column_stats" in it.live


def test_a_repair_that_was_done_meanwhile_is_nothing_to_do(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "ranges")
    plan = it.plan()
    it.apply(plan)

    result = it.apply(plan)

    assert 0 == result.exit_code
    assert "nothing" == result.tables[0].outcomes[0].how


def test_only_what_was_reviewed_is_dropped(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "ranges")
    plan = it.plan()
    base = min(p for p in it.table.rglob("*.parquet") if ".hoodie" not in p.parts)
    lie_about_files(MetadataLiar(it.table), base)

    result = it.apply(plan)

    assert 4 == result.exit_code
    assert 5 == len(it.live)
    (left,) = result.tables[0].outcomes[0].repaired.left
    assert "which was not reviewed: plan again" in left.because


def test_differences_are_only_reported_unless_the_spec_wants_a_drop(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "ranges", repair="report")

    (table,) = it.plan().tables

    assert () == table.steps
    assert ["metadata"] == [note.rule for note in table.warnings]
    assert "declare metadata.repair: rebuild or drop" in table.warnings[0].because


def test_a_plan_compares_only_the_listing_unless_the_spec_wants_more(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "ranges", verify="never")
    assert ((), ()) == (it.plan().tables[0].steps, it.plan().tables[0].warnings)
    base = min(p for p in it.table.rglob("*.parquet") if ".hoodie" not in p.parts)
    lie_about_files(MetadataLiar(it.table), base)

    (step,) = it.plan().tables[0].steps

    assert ("bloom_filters", "column_stats", "files", "partition_stats", "record_index") == (
        step.partitions
    )
    assert 1 == step.differences


def test_a_difference_that_comes_with_an_apply_fails_its_check(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "both")
    plan = it.plan()
    base = min(p for p in it.table.rglob("*.parquet") if ".hoodie" not in p.parts)
    liar = MetadataLiar(it.table)

    class Lying(RecordingStorage):
        """Lies about a range once the properties were replaced."""

        def replace(self, path, data):
            super().replace(path, data)
            if path == PROPERTIES:
                lie_about_ranges(liar, base)

    result = it.apply(plan, around=Lying)

    assert 5 == result.exit_code
    (note,) = result.tables[0].outcomes[-1].differences
    assert "recorded: 5000 to 6000, no null" in note.because


def test_known_differences_do_not_fail_the_check_of_an_apply(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "both")
    plan = it.plan()
    base = min(p for p in it.table.rglob("*.parquet") if ".hoodie" not in p.parts)
    lie_about_ranges(MetadataLiar(it.table), base)

    result = it.apply(plan)

    assert 0 == result.exit_code
    assert () == result.tables[0].outcomes[-1].differences
    assert ["column_stats", "files", "partition_stats"] == list(it.live)
