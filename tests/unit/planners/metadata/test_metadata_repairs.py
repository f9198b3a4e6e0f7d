from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Instant
from reconciler.planners.metadata.planner import plan_metadata
from reconciler.spec.model import MetadataUpkeep, TableSpec
from reconciler.state.metadata_differences import (
    DAMAGED_FILE,
    LOST_FILE,
    CheckBuilder,
    MetadataVerification,
)

ALL = ("bloom_filters", "column_stats", "files", "partition_stats", "record_index")


@dataclass
class State:
    """What the planner asks of a table's state."""

    metadata_verification: MetadataVerification | None
    metadata_partitions: tuple[str, ...] = ALL
    properties: dict = field(default_factory=dict)
    timeline: Timeline = field(default_factory=lambda: Timeline.from_files([]))


def found(counts, **more):
    """Return a verification with a number of differences by metadata partition."""
    checks, differences = [], []
    for name, count in counts.items():
        builder = CheckBuilder(metadata_partition=name, unit="file", compared=9)
        for number in range(count):
            said = {"recorded": "a", "actual": "b", "effect": "c"}
            builder.add("wrong", "p=1", f"f{number}", **said)
        check, listed = builder.build()
        checks.append(check)
        differences += listed
    return MetadataVerification(checks=tuple(checks), differences=tuple(differences), **more)


def spec(repair="drop"):
    return TableSpec(name="t", path="/t", metadata=MetadataUpkeep(repair=repair))


def dropped(counts, obstacles=(), **more):
    state = State(found(counts, obstacles=dict(obstacles)), **more)
    return [step.partitions for step in plan_metadata(spec(), state).steps]


def pending(name):
    instant = Instant.parse(name)
    return Timeline.from_files([TimelineFile(instant, name, 0, 0)])


def test_without_differences_or_block_nothing_is_planned():
    assert [] == dropped({"files": 0, "column_stats": 0})
    assert () == plan_metadata(TableSpec(name="t", path="/t"), State(found({"files": 1}))).steps


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("column_stats", [("column_stats", "partition_stats")]),
        ("partition_stats", [("column_stats", "partition_stats")]),
        ("bloom_filters", [("bloom_filters",)]),
        ("record_index", [("record_index",)]),
        ("files", [ALL]),
    ],
)
def test_what_depends_on_a_wrong_partition_is_dropped_with_it(wrong, expected):
    assert expected == dropped({name: int(name == wrong) for name in ALL})


def test_each_wrong_index_has_a_step_of_its_own_with_its_number():
    steps = plan_metadata(spec(), State(found({"bloom_filters": 2, "record_index": 3}))).steps

    assert [(("bloom_filters",), 2), (("record_index",), 3)] == [
        (step.partitions, step.differences) for step in steps
    ]
    assert (
        "record_index differs from the files in 3 entries (p=1/f0: recorded: a; actual: b)"
        == steps[1].because
    )


def test_a_wrong_listing_drops_everything_once():
    (step,) = plan_metadata(spec(), State(found({"files": 1, "column_stats": 4}))).steps

    assert (ALL, 5) == (step.partitions, step.differences)


@pytest.mark.parametrize(
    ("counts", "live", "why"),
    [
        ({"files": 1}, (*ALL, "secondary_index_n"), "the secondary index n would go with it"),
        ({"files": 1}, (*ALL, "expr_index_e"), "the expression index e would go with it"),
        (
            {"record_index": 1},
            (*ALL, "secondary_index_n"),
            "the secondary index n finds rows by it",
        ),
    ],
)
def test_an_index_that_no_writer_builds_anew_keeps_what_it_needs(counts, live, why):
    decision = plan_metadata(spec(), State(found(counts), metadata_partitions=live))

    assert () == decision.steps
    assert why in decision.warnings[0].because


def test_other_indexes_are_dropped_beside_a_secondary_index():
    live = (*ALL, "secondary_index_n")

    assert [("bloom_filters",)] == dropped({"bloom_filters": 1}, metadata_partitions=live)


@pytest.mark.parametrize(
    "name", ["20260101000000000.inflight", "20260101000000000.rollback.inflight"]
)
def test_pending_work_keeps_everything(name):
    state = State(found({"column_stats": 1}, leftovers=("bloom_filters",)), timeline=pending(name))
    decision = plan_metadata(spec(), state)

    assert () == decision.steps
    (note,) = decision.warnings
    assert f"{name} is pending and may rely on it" in note.because


def test_a_partition_that_is_being_built_keeps_everything():
    inflight = {"hoodie.table.metadata.partitions.inflight": "record_index"}
    decision = plan_metadata(spec(), State(found({"column_stats": 1}), properties=inflight))

    assert () == decision.steps
    assert "another process is building record_index" in decision.warnings[0].because


def test_differences_are_warnings_if_the_spec_only_wants_a_report():
    decision = plan_metadata(spec("report"), State(found({"files": 1, "column_stats": 4})))

    assert () == decision.steps
    assert ["metadata"] == [note.rule for note in decision.warnings]


def test_what_a_stopped_drop_has_left_is_a_step():
    state = State(found({}, leftovers=("files",)), metadata_partitions=())
    (step,) = plan_metadata(spec(), state).steps

    assert (("files",), 0) == (step.partitions, step.differences)
    assert "left files of .hoodie/metadata, which nobody reads" in step.because


def test_a_wrong_index_of_our_own_is_a_warning():
    decision = plan_metadata(spec(), State(found({".zindex": 2})))

    assert () == decision.steps
    assert "remove the folder .hoodie/.zindex" in decision.warnings[0].because


def test_what_differs_is_rebuilt_if_the_spec_wants_that():
    steps = plan_metadata(spec("rebuild"), State(found({"partition_stats": 2}))).steps

    assert [("rebuild", ("column_stats", "partition_stats"))] == [
        (step.change, step.partitions) for step in steps
    ]


@pytest.mark.parametrize(
    ("begun", "live", "leftovers", "expected"),
    [
        ("column_stats", ("files",), ("column_stats",), [("rebuild", ("column_stats",))]),
        ("column_stats,files", (), ("files",), [("rebuild", ("column_stats", "files"))]),
        ("column_stats", ("column_stats", "files"), (), []),
        ("column_stats", (), ("files",), [("drop", ("files",))]),
        ("secondary_index_n", ("files",), (), []),
    ],
)
def test_a_stopped_rebuild_is_begun_again(begun, live, leftovers, expected):
    state = State(
        found({}, leftovers=leftovers),
        metadata_partitions=live,
        properties={"reconciler.metadata.rebuild": begun},
    )

    steps = plan_metadata(spec("rebuild"), state).steps

    assert expected == [(step.change, step.partitions) for step in steps]


def test_a_stopped_rebuild_is_not_begun_again_if_the_spec_wants_a_drop():
    state = State(
        found({}, leftovers=("column_stats",)),
        metadata_partitions=("files",),
        properties={"reconciler.metadata.rebuild": "column_stats"},
    )

    (step,) = plan_metadata(spec("drop"), state).steps

    assert ("drop", ("column_stats",)) == (step.change, step.partitions)


WHY = {"column_stats": "because of c", "partition_stats": "because of c"}


def test_what_cannot_be_rebuilt_is_a_warning_that_says_what_to_do():
    state = State(found({"column_stats": 1}, obstacles=WHY))

    decision = plan_metadata(spec("rebuild"), state)

    assert () == decision.steps
    (note,) = decision.warnings
    assert note.because.endswith(
        "; it is not rebuilt: because of c; declare metadata.repair: drop, and a Hudi writer "
        "that has the index switched on builds it anew"
    )
    assert [("column_stats", "partition_stats")] == dropped({"column_stats": 1}, obstacles=WHY)


def test_a_whole_rebuild_says_what_is_dropped():
    (step,) = plan_metadata(spec("rebuild"), State(found({"files": 1}, obstacles=WHY))).steps

    assert ALL == step.partitions
    assert step.because.endswith("; column_stats and partition_stats are dropped: because of c")


@pytest.mark.parametrize(
    ("begun", "live", "expected"),
    [
        ("column_stats", ("files",), [("drop", ("column_stats",))]),
        (
            "bloom_filters,column_stats",
            ("files",),
            [("rebuild", ("bloom_filters",)), ("drop", ("column_stats",))],
        ),
        ("column_stats,files", (), [("rebuild", ("column_stats", "files"))]),
    ],
)
def test_a_stopped_rebuild_that_cannot_be_ended_is_given_up(begun, live, expected):
    state = State(
        found({}, obstacles=WHY),
        metadata_partitions=live,
        properties={"reconciler.metadata.rebuild": begun},
    )

    steps = plan_metadata(spec("rebuild"), state).steps

    assert expected == [(step.change, step.partitions) for step in steps]
    assert "because of c" in steps[-1].because


@pytest.mark.parametrize("repair", ["drop", "rebuild", "report"])
def test_entries_of_lost_files_stay_as_nothing_else_tells_that_rows_are_lost(repair):
    builder = CheckBuilder(metadata_partition="files", unit="file", compared=9)
    said = {"recorded": "a file of 9 bytes", "actual": "no such file"}
    builder.add("extra", "p=1", "a", **said, effect="c")
    builder.add("extra", "p=1", "b", **said, effect=LOST_FILE)
    check, listed = builder.build()
    state = State(MetadataVerification(checks=(check,), differences=tuple(listed)))

    decision = plan_metadata(spec(repair), state)

    assert decision.steps == ()
    (warning,) = decision.warnings
    assert "p=1/b is gone" in warning.because
    assert "restore the file" in warning.because


def test_a_damaged_file_of_the_metadata_table_is_a_reason_of_its_own():
    checks, differences = [], []
    for name, file in (("column_stats", "a.hfile"), ("record_index", ".hoodie/metadata/x")):
        builder = CheckBuilder(metadata_partition=name, unit="key")
        builder.add("wrong", "", file, recorded="is cut", actual=DAMAGED_FILE, effect="c")
        check, listed = builder.build()
        checks.append(check)
        differences += listed
    state = State(MetadataVerification(checks=tuple(checks), differences=tuple(differences)))

    said = [step.because for step in plan_metadata(spec(), state).steps]

    assert said == [
        "column_stats is damaged (.hoodie/metadata/column_stats/a.hfile: is cut)",
        "record_index is damaged (.hoodie/metadata/x: is cut)",
    ]
