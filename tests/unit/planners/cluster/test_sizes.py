"""File sizes without a clustering: what is packed, split, folded or left alone; literal tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import numpy as np
import pytest

from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.record_size import FooterSizes, PastWrite, RecordSize
from reconciler.planners.cluster.passes import build_pass_metadata
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.cluster.size_limits import SizeLimits
from reconciler.planners.compose import plan_table
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.plans.added_bytes import estimate_bytes_added
from reconciler.render.drift import describe_difference
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    PartitionFilter,
    SizeTrigger,
    TableSpec,
)
from reconciler.state.clustering_facts import ClusteringFacts
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from tests.unit.planners.cluster.test_planner import bases, groups_of, log, rules_of, sized
from tests.unit.planners.cow import base, commit, stamp

NOW = datetime(2024, 1, 2, tzinfo=UTC)
PLAIN = RecordSize(fixed=0, per_row=1.0, because="")
#: a file of 270 bytes of rows and 250 others
MOSTLY_FOOTER = FooterSizes(rows=np.array([270]), bytes=np.array([520]), data=np.array([270]))
SIZES = FileSizes(target=100, small=80, large=200, when=SizeTrigger(), budget=ClusteringBudget())


def spec_of(clustering=None, **more):
    return TableSpec(name="t", path="/t", files=replace(SIZES, **more), clustering=clustering)


def decide(state, *, clustering=None, sizes=PLAIN, past=(), busy=None, **more):
    statistics = KnownStatistics(sizes=sizes, past=past)
    avoided = {"quiet": busy or {}}
    return plan_clustering(spec_of(clustering, **more), state, statistics, avoided=avoided)


def plan_of(state, now=NOW, past=(), written=(), footers=None, **more):
    facts = ClusteringFacts(
        written=written,
        clusterings=past,
        footers=footers,
        bounds=None,
        rows=np.zeros(len(state.files), np.int64),
    )
    return plan_table(spec_of(**more), state.with_facts(clustering_facts=facts), now)


def write_of(hour, **more):
    one = np.ones(1, np.int64)
    return PastWrite(
        instant=stamp(hour), action=Action.COMMIT, rows=one, bytes=one, is_base=one > 1, **more
    )


class TestCounts:
    """How many files rows become: none of them small where that is possible, and none large."""

    @pytest.mark.parametrize(
        ("data", "files"),
        [(0, 1), (60, 1), (100, 1), (105, 1), (160, 1), (170, 2), (200, 2), (240, 2), (260, 3)],
    )
    def test_files_are_near_the_target_and_not_small(self, data, files):
        limits = SizeLimits.from_spec(SIZES)

        assert [files] == limits.count_files(PLAIN, np.array([data])).tolist()

    def test_limits_that_leave_no_size_are_widened(self):
        """A file that is just too large could otherwise only become two small ones."""
        limits = SizeLimits.from_spec(replace(SIZES, small=150, large=120))

        assert (100, 200) == (limits.small, limits.large)

    def test_without_sizes_for_existing_files_the_target_alone_counts(self):
        limits = SizeLimits.from_spec(replace(SIZES, when=None))

        assert [2] == limits.count_files(PLAIN, np.array([120])).tolist()


class TestPacking:
    def test_small_files_of_a_partition_become_files_that_are_not_small(self):
        decision = decide(sized({"a": bases(30, 90, 20, 70), "b": bases(90, 95)}))

        assert [("a", 1, 120, ["g3", "g0", "g2"])] == groups_of(decision)
        assert ["large", "when", "when"] == [r for r in rules_of(decision) if r != "group"]

    def test_two_files_that_only_fill_a_bigger_one_are_packed_too(self):
        """Two files of 60 would otherwise be two small files for ever."""
        assert [("a", 1, 120, ["g0", "g1"])] == groups_of(decide(sized({"a": bases(60, 60)})))

    def test_the_last_small_file_stays(self):
        decision = decide(sized({"a": bases(30)}))

        assert (["noGain"], ()) == (rules_of(decision), decision.refusals)
        assert [
            "no rewrite for file sizes: 1 file slice would not make fewer files",
        ] == [note.because for note in decision.warnings]

    def test_files_of_earlier_runs_are_packed_again(self):
        past = PastClustering(instant=stamp(1), layout=ClusteringLayout(), extra={})
        decision = decide(sized({"a": bases(30, 40, hour=1)}), past=(past,))

        assert [("a", 1, 70, ["g1", "g0"])] == groups_of(decision)

    def test_files_that_were_packed_often_enough_wait_for_new_rows(self):
        """A wrong prediction of sizes ends too."""
        state, spec = sized({"a": bases(30, 40, hour=1)}), spec_of()
        past = PastClustering(instant=stamp(1), layout=ClusteringLayout(), extra={})
        for _ in range(2):
            facts = ClusteringFacts(
                written=(), clusterings=(past,), footers=None, bounds=None, rows=np.zeros(2)
            )
            known = state.with_facts(clustering_facts=facts)
            groups = decide(state, past=(past,)).groups
            past = replace(past, extra=build_pass_metadata(spec, known, groups))

        assert ["clustered", "clustered"] == rules_of(decide(state, past=(past,)))

    def test_partitions_and_budget_are_those_of_the_files(self):
        state = sized({"a": bases(10, 10), "b": bases(10, 10), "c": bases(10, 10)})
        decision = decide(
            state, partitions=PartitionFilter(exclude=("b",)), budget=ClusteringBudget(groups=1)
        )

        assert [("a", 1, 20, ["g0", "g1"])] == groups_of(decision)
        assert [
            "files.partitions.exclude has its partition, by b",
            "a run rewrites at most 1 group (files.budget)",
        ] == decision.because.to_pylist()[2::2]


class TestSplitting:
    def test_a_large_file_is_split_into_files_that_are_not_small(self):
        decision = decide(sized({"a": bases(520, 90, 90, 90)}))

        assert [("a", 6, 520, ["g0"])] == groups_of(decision)
        assert [
            "1 file slice of 520 B becomes 6 files: 1 base file is above files.large 200B"
        ] == decision.groups.because.to_pylist()

    def test_only_packing_leaves_large_files(self):
        when = SizeTrigger(small_file_share_above=0.3, large_files=False)

        assert [] == groups_of(decide(sized({"a": bases(520)}), when=when))

    def test_what_stays_names_the_conditions_of_the_files(self):
        when = SizeTrigger(small_file_share_above=None)
        decision = decide(sized({"a": bases(90, 70)}), when=when)

        assert {"no condition of files.when is known to hold here"} == {
            *decision.because.to_pylist()
        }
        assert "2 file slices are in partitions below the thresholds of files.when" in (
            decision.warnings[0].because
        )

    def test_a_file_that_is_mostly_footer_stays(self):
        footer = RecordSize(fixed=250, per_row=1.0, because="")
        decision = decide(sized({"a": bases(520)}), sizes=footer)

        assert ["oversized"] == rules_of(decision)
        assert "1 file slice is above files.large and cannot be split into smaller files" in (
            decision.warnings[0].because
        )
        assert ["more files would not be smaller: 250B of each are not rows"] == [
            text.partition("but ")[2] for text in decision.because.to_pylist()
        ]

    @pytest.mark.parametrize("clustering", [None, Clustering(columns=("x",), curve="linear")])
    def test_files_that_stay_too_large_are_drift_that_says_what_to_declare(self, clustering):
        state = sized({"a": bases(520, 520)})
        plan = plan_of(state, footers=MOSTLY_FOOTER, clustering=clustering)

        assert () == plan.steps
        assert [("files.large", 200, 520)] == [
            (found.field, found.desired, found.actual) for found in plan.drift
        ]
        assert (
            "2 base files in 1 partition are above it and cannot be split into smaller files: "
            "about 250 B of each are not rows (bloom filter, schema, statistics), and each new "
            "file would have them too; declare at least files.target: 512B and files.large: 1KiB"
        ) == plan.drift[0].because

    def test_large_rows_are_drift_once_files_were_split_often_enough(self):
        state, past = sized({"a": bases(520, hour=1)}), ()
        for _ in range(2):
            past = (self.next_pass(state, past),)
        plan = plan_of(state, past=past)

        assert () == plan.steps
        assert "an earlier split brought them no lower, so their rows are too large" in (
            plan.drift[0].because
        )

    @staticmethod
    def next_pass(state, past):
        """Return a clustering that has split the table once more and has changed nothing."""
        one = PastClustering(instant=stamp(1), layout=ClusteringLayout(), extra={})
        facts = ClusteringFacts(
            written=(), clusterings=past or (one,), footers=None, bounds=None, rows=np.zeros(1)
        )
        known = state.with_facts(clustering_facts=facts)
        groups = decide(state, past=past or (one,)).groups
        return replace(one, extra=build_pass_metadata(spec_of(), known, groups)) if past else one

    def test_with_a_layout_large_files_are_split_by_it_even_if_it_wrote_them(self):
        clustering = Clustering(
            columns=("x",), curve="linear", when=ClusteringTrigger(overlap_above=None)
        )
        layout = ClusteringLayout(columns=("x",), curve="linear", mapping="rank")
        past = PastClustering(instant=stamp(1), layout=layout, extra={})
        state = sized({"a": bases(520, 90, hour=1)}, [commit(0), commit(1), commit(2)])
        decision = decide(state, clustering=clustering, past=(past,))

        assert [("a", 6, 520, ["g0"])] == groups_of(decision)
        assert layout == decision.layout


class TestLogs:
    def state(self, **folder):
        files = {base("g0", 0): 90, **folder.pop("more", {})}
        return sized({"a": files}, table_type="MERGE_ON_READ", **folder)

    def test_slices_of_log_files_alone_are_folded(self):
        state = self.state(more={log("g1", 1): 100, log("g2", 1): 60})
        decision = decide(state)

        assert [("a", 1, 160, ["g1", "g2"])] == groups_of(decision)
        assert [None, None] == decision.groups.base.to_pylist()
        assert "2 of 3 file slices are below files.small 80B (2 without a base file; above" in (
            decision.groups.because[0].as_py()
        )

    @pytest.mark.parametrize("bases_too", [True, False])
    def test_log_bytes_count_once_in_what_is_written(self, bases_too):
        """100 and 60 bytes of log files become 56 of a base file, beside 90 others."""
        more = {base("g3", 1): 50, base("g4", 1): 40} if bases_too else {}
        plan = plan_of(
            sized({"b": {log("g1", 1): 100, log("g2", 1): 60, **more}}, table_type="MERGE_ON_READ")
        )
        size = 146 if bases_too else 56

        assert size == plan.layout.bytes_written == plan.layout.after.bytes
        assert size == estimate_bytes_added(plan)

    def test_slices_without_a_base_file_have_no_mean_size(self):
        state = sized({"b": {log("g1", 1): 100, log("g2", 1): 60}}, table_type="MERGE_ON_READ")
        (found,) = plan_of(state).drift

        assert ("files.target", None) == (found.field, found.actual)
        assert "log files only; spec targets 100 bytes" == describe_difference(found)

    def test_one_slice_of_log_files_gets_a_base_file(self):
        assert [("a", 1, 100, ["g1"])] == groups_of(
            decide(
                self.state(more={log("g1", 1): 100}), when=SizeTrigger(small_file_share_above=0.2)
            )
        )

    def test_many_log_bytes_are_left_to_a_compaction(self):
        decision = decide(self.state(more={log("g1", 1): 400}))

        assert [("logs", "when")] == [tuple(sorted(rules_of(decision)))]

    def test_a_small_file_with_a_few_log_bytes_stays_alone(self):
        state = sized({"a": {base("g0", 0): 40, log("g0", 0): 20}}, table_type="MERGE_ON_READ")

        assert ["noGain"] == rules_of(decide(state))

    def test_a_small_file_with_many_log_bytes_is_folded(self):
        state = sized({"a": {base("g0", 0): 40, log("g0", 0): 90}}, table_type="MERGE_ON_READ")

        assert [("a", 1, 130, ["g0"])] == groups_of(decide(state))


class TestQuiet:
    @staticmethod
    def plan(state, quiet, **more):
        return plan_of(state, quiet=quiet, **more)

    def test_partitions_that_were_just_written_are_left_alone(self):
        state = sized({"a": bases(10, 10), "b": bases(10, 10, hour=1)})
        plan = self.plan(state, quiet=int(23.5 * 3600))

        assert [["a"]] == [step.groups.partition.unique().to_pylist() for step in plan.steps]
        assert [
            (
                "quiet",
                2,
                f"its partition was written by {stamp(1)}, less than 1410m ago (files.quiet)",
            )
        ] == [(one.rule, one.slices, one.because) for one in plan.layout.untouched]

    def test_a_clustering_is_no_write(self):
        past = PastClustering(instant=stamp(1), layout=ClusteringLayout(), extra={})
        state = sized({"b": bases(10, 10, hour=1)})

        assert 1 == len(self.plan(state, 24 * 3600, past=(past,)).steps)

    def test_writes_that_no_file_name_tells_count(self):
        """In version 6 an appended log file is named for its base file."""
        write = write_of(1, partitions=("a",))
        state = sized({"a": bases(10, 10)})

        assert 1 == len(self.plan(state, int(23.5 * 3600)).steps)
        assert () == self.plan(state, int(23.5 * 3600), written=(write,)).steps

    def test_a_small_file_among_many_joins_the_smallest_of_the_others(self):
        """A share of 0.3 alone would let it stay for ever."""
        state = sized({"a": bases(*[100] * 9, 95, 5)})
        plan = self.plan(state, quiet=3600)

        assert () == self.plan(state, quiet=None).steps
        assert [["g09", "g10"]] == [sorted(step.groups.file_id.to_pylist()) for step in plan.steps]
        assert ["1 of 11 base files is below files.small 80B (a quiet partition keeps none)"] == [
            one.partition(": ")[2] for one in plan.steps[0].groups.because.to_pylist()
        ]
        assert ["1 of 11 base files in 1 partition is below files.small, 80B"] == [
            one.because for one in plan.drift
        ]

    def test_small_files_that_are_enough_for_a_file_need_no_other(self):
        decision = decide(sized({"a": bases(*[100] * 9, 50, 40)}), quiet=3600)

        assert [("a", 1, 90, ["g09", "g10"])] == [
            (*group[:3], sorted(group[3])) for group in groups_of(decision)
        ]

    def test_a_nearly_full_small_file_is_evened_out_with_another(self):
        """As many files as before, but none of them is small."""
        decision = decide(sized({"a": bases(*[100] * 9, 75)}), quiet=3600)

        assert [("a", 2, 175)] == [group[:3] for group in groups_of(decision)]

    @pytest.mark.parametrize(
        ("files", "more"),
        [
            ((5,), {}),
            ((100, 5), {"when": SizeTrigger(small_file_share_above=None)}),
            ((100, 5), {"partitions": PartitionFilter(exclude=("a",))}),
        ],
    )
    def test_it_stays_where_nothing_else_may_take_its_rows(self, files, more):
        assert [] == groups_of(decide(sized({"a": bases(*files)}), quiet=3600, **more))

    @pytest.mark.parametrize("seed", range(20))
    def test_after_a_run_no_file_is_small(self, seed):
        random = Random(seed)
        sizes = [random.randint(1, 200) for _ in range(random.randint(10, 30))] + [100]
        decision = decide(sized({"a": bases(*sizes)}), quiet=3600)
        rewritten = {name for group in groups_of(decision) for name in group[3]}
        stay = [size for nth, size in enumerate(sizes) if f"g{nth:02}" not in rewritten]
        made = [group[2] / group[1] for group in groups_of(decision)]

        assert all(size >= 80 for size in (*stay, *made))

    def test_without_the_zone_of_the_timeline_the_step_is_refused(self):
        state = replace(sized({"a": bases(10, 10)}), timezone="LOCAL")
        plan = self.plan(state, quiet=3600)

        assert () == plan.steps
        assert [("zone", "files.quiet needs the timeline's time zone")] == [
            (note.rule, note.because.partition(".")[0] + ".quiet needs the timeline's time zone")
            for note in plan.refusals
        ]


def test_the_step_and_the_drift_say_that_it_is_for_sizes():
    state = sized({"a": bases(10, 10, 520)})
    plan = plan_of(state)
    (step,) = plan.steps

    assert ("cluster", "sizes", (), None) == (step.kind, step.purpose, step.columns, step.curve)
    assert [
        (
            "files.target",
            100,
            180,
            (
                "2 of 3 base files in 1 partition are below files.small, 80B, and 1 is above "
                "files.large, 200B"
            ),
        )
    ] == [(one.field, one.desired, one.actual, one.because) for one in plan.drift]


@pytest.mark.parametrize("clustering", [None, Clustering(columns=(), after_commits=0)], ids=str)
def test_what_no_budget_allows_to_reach_is_drift(clustering):
    budget = ClusteringBudget(rewrite=400)
    block = clustering and replace(clustering, budget=budget)
    plan = plan_of(sized({"a": bases(520)}), clustering=block, budget=budget)
    within = plan_of(sized({"a": bases(180)}), clustering=block, budget=budget)

    assert () == plan.steps == within.steps
    assert ["1 of 1 base files in 1 partition is above files.large, 200B"] == [
        finding.because for finding in plan.drift
    ]
    assert "budget" in [note.rule for note in plan.warnings]
    assert () == within.drift


@pytest.mark.parametrize("columns", [(), ("x",)])
@pytest.mark.parametrize("field", ["rewrite", "per_group"])
def test_a_budget_too_small_for_two_files_is_named_and_drift(field, columns):
    budget, name = ClusteringBudget(**{field: 1}), {"rewrite": "rewrite", "per_group": "perGroup"}
    clustering = Clustering(
        columns=columns, curve="linear", after_commits=0, budget=budget, single_file=False
    )
    plan = plan_of(sized({"a": bases(30, 40), "b": bases(90)}), clustering=clustering)

    assert () == plan.steps
    assert "2 of 2 base files in 1 partition are below files.small, 80B" in [
        found.because for found in plan.drift
    ]
    assert [
        ("budget", f"clustering.budget.{name[field]}: 1B is too small for any group"),
        ("nothingToDo", "no clustering: clustering.budget is too small for 2 file slices"),
    ] == [
        (note.rule, note.because.partition(" of file" if note.rule == "budget" else "; ")[0])
        for note in plan.warnings
        if note.rule in ("budget", "nothingToDo")
    ]


def test_files_that_a_larger_budget_would_leave_alone_too_are_no_drift():
    plan = plan_of(sized({"a": bases(90, 95)}), budget=ClusteringBudget(rewrite=1))

    assert ((), ["nothingToDo", "lock"]) == (plan.drift, [note.rule for note in plan.warnings])


class TestWriters:
    """Settings of writers that undo the step are warnings with both values and the option."""

    @staticmethod
    def warnings(state, *written):
        plan = plan_of(state, written=written)
        return [note.because for note in plan.warnings if note.rule == "writersFiles"]

    @pytest.mark.parametrize(
        ("option", "theirs", "text"),
        [
            ("hoodie.parquet.max.file.size", "500", "files.target is 100B"),
            ("hoodie.parquet.small.file.limit", "0", "files.small is 80B"),
        ],
    )
    def test_recorded_options_that_differ_are_named(self, option, theirs, text):
        written = write_of(0, options={option: theirs})
        (because,) = self.warnings(sized({"a": bases(10, 10)}), written)

        assert f"the writers have {option} {theirs}B (write {stamp(0)}), and {text}" in because
        assert f"set {option} = {text.split()[-1][:-1]} for the writers" in because

    def test_options_in_the_properties_count_and_equal_ones_do_not(self):
        state = sized({"a": bases(10, 10)})
        recorded = {"hoodie.parquet.max.file.size": "100", "write.parquet.max.file.size": "1"}
        (because,) = self.warnings(replace(state, properties=recorded))

        assert "write.parquet.max.file.size 1MiB (hoodie.properties)" in because

    def test_large_files_of_a_recent_write_show_a_larger_setting(self):
        (because,) = self.warnings(sized({"a": bases(520)}), write_of(0, operation="UPSERT"))

        assert because == (
            "writers wrote 1 file of up to 520 B that this step splits, and files.target is 100B: "
            "their next writes undo it; set hoodie.parquet.max.file.size = 100 for the writers, or "
            "declare a larger files.target"
        )

    def test_own_writes_take_the_sizes_of_the_spec_the_next_time(self):
        written = write_of(0, operation="UPSERT", is_ours=True)

        assert [] == self.warnings(sized({"a": bases(520)}), written)

    def test_no_writer_is_to_write_files_of_0_mebibytes(self):
        written = write_of(0, options={"write.parquet.max.file.size": "9"})
        (because,) = self.warnings(sized({"a": bases(10, 10)}), written)

        assert "set write.parquet.max.file.size = 1 for the writers" in because

    def test_large_files_of_a_writers_clustering_are_named_so(self):
        (because,) = self.warnings(sized({"a": bases(520)}), write_of(0, operation="CLUSTER"))

        assert "switch it off (hoodie.clustering.inline = false)" in because

    def test_without_a_step_nothing_is_undone(self):
        written = write_of(0, options={"hoodie.parquet.max.file.size": "500"})

        assert [] == self.warnings(sized({"a": bases(90, 90)}), written)


def test_a_policy_over_rewritten_bytes_names_the_budget_of_the_files():
    state = sized({"a": bases(10, 10)})
    policy = GuardPolicy(name="small", max_rewrite=5)
    facts = ClusteringFacts(
        written=(), clusterings=(), footers=None, bounds=None, rows=np.zeros(2, np.int64)
    )
    spec = replace(spec_of(), guarded_by=(policy,))
    (refusal,) = plan_table(spec, state.with_facts(clustering_facts=facts), NOW).refusals

    assert "lower files.budget.rewrite" in refusal.because


def test_the_size_aimed_at_keeps_a_distance_from_large():
    """Else files that come out a little bigger than predicted would be split again in vain."""
    near = FileSizes(target=158, small=0, large=159, when=SizeTrigger())
    far = FileSizes(target=100, small=80, large=200, when=SizeTrigger())

    assert SizeLimits.from_spec(near).target * 1.05 <= 159
    assert 100 == SizeLimits.from_spec(far).target
