"""Laws of planning a clustering, on tables of every version and type and on sets of files."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.cluster.slice_verdicts import RULES
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.compose import plan_table
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.plans.document import compute_steps_digest
from reconciler.plans.groups import empty_rewrites
from reconciler.plans.model import ClusterStep, removal_steps, rewritten_groups
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    PartitionFilter,
    Policy,
    Retention,
    TableSpec,
)
from reconciler.state.clustering_layout import PastClustering
from tests.laws.clean_tables import group_slices, instant_at, tables
from tests.selection import examples
from tests.unit.planners.cow import table

LAW = settings(max_examples=examples(10, many=50), deadline=None)
TARGET = 100
endless = st.builds(ClusteringBudget, per_group=st.sampled_from([90, 130, 250]), groups=st.just(99))


def make_spec(clustering):
    files = FileSizes(target=TARGET, small=80)
    return TableSpec(name="t", path="/t", files=files, clustering=clustering)


budgets = st.builds(
    ClusteringBudget,
    rewrite=st.sampled_from([None, 60, 300]),
    per_group=st.sampled_from([90, 250, 10**6]),
    groups=st.sampled_from([1, 3, 30]),
)
triggers = st.sampled_from(
    [
        ClusteringTrigger(always=True),
        ClusteringTrigger(),
        ClusteringTrigger(small_file_share_above=0.9),
        ClusteringTrigger(small_file_share_above=None, overlap_above=2.0),
    ]
)
layouts = st.sampled_from(
    [{"columns": ()}, {"columns": ("x", "y"), "curve": "kd-tree", "mapping": "rank"}]
)


@st.composite
def clusterings(draw, budget=budgets):
    return Clustering(
        **draw(layouts),
        when=draw(triggers),
        single_file=draw(st.booleans()),
        partitions=draw(st.sampled_from([PartitionFilter(), PartitionFilter(exclude=("b",))])),
        budget=draw(budget),
    )


@st.composite
def sized_tables(draw):
    """Draw a table with history and files of any size."""
    state = draw(tables())
    sizes = draw(
        st.lists(st.integers(0, 130), min_size=len(state.files), max_size=len(state.files))
    )
    return replace(state, files=replace(state.files, size=np.array(sizes, np.int64)))


@st.composite
def draw_file_sizes(draw):
    """Draw partitions with the sizes of their base files, one file group each, of one commit."""
    sizes = st.lists(st.integers(1, 120), max_size=25)
    return {path: draw(sizes) for path in ("a", "b", "c")}


def make_table(sizes, past=(), shuffle=None):
    """Return a table of files; ``past``: outputs of clusterings (instant, partition, sizes)."""
    folders = {path: [] for path in (*sizes, "zz")}
    for path, found in sizes.items():
        folders[path] += [
            (f"g{n:03d}-0_0-0-0_{instant_at(1)}.parquet", s) for n, s in enumerate(found)
        ]
    for number, (time, path, found) in enumerate(past):
        folders[path] += [
            (f"c{number:03d}x{n:03d}-0_0-0-0_{time}.parquet", s) for n, s in enumerate(found)
        ]
    times = sorted({time for time, _, _ in past})
    last = max([instant_at(1), *times])
    folders["zz"].append((f"z-0_0-0-0_{last[:-1]}7.parquet", TARGET))
    listing = list(folders.items())
    if shuffle is not None:
        shuffle.shuffle(listing)
        for _, files in listing:
            shuffle.shuffle(files)
    files = build_files(
        ((path, [n for n, _ in found], [s for _, s in found]) for path, found in listing),
        ".parquet",
    )
    instants = [Instant(instant_at(1), Action.COMMIT, State.COMPLETED, instant_at(1))]
    instants += [Instant(time, Action.REPLACECOMMIT, State.COMPLETED, time) for time in times]
    instants.append(Instant(f"{last[:-1]}7", Action.COMMIT, State.COMPLETED, f"{last[:-1]}8"))
    line = Timeline.from_files(TimelineFile(i, i.file_name, 1, 0) for i in instants)
    state = table({"a": []}, [])
    return replace(state, files=files, partitions=files.partitions, timeline=line)


def ranges_of(state, seed):
    """Return statistics on two columns of every file, on three scales, derived from its name."""
    chance = random.Random(f"{seed}")
    pairs = [sorted(chance.choices(range(20), k=2)) for _ in range(2 * len(state.files))]
    bounds = np.array(pairs, np.float64).reshape(2, len(state.files), 2)
    rows = np.full(len(state.files), 10, np.int64)
    lower, upper = bounds[:, :, 0], bounds[:, :, 1]
    other = (np.exp(lower), np.exp(upper)), (np.sqrt(lower), np.sqrt(upper))
    return ColumnRanges(lower=lower, upper=upper, rows=rows, scales=other)


def describe_groups(decision):
    """Return partition, outputs, bytes and file ids of each group."""
    groups = decision.groups
    ids = groups.file_id.to_pylist()
    bounds = groups.starts.tolist()
    return [
        (path, outputs, size, ids[start:end])
        for path, outputs, size, start, end in zip(
            groups.partition.to_pylist(),
            groups.outputs.tolist(),
            groups.bytes.tolist(),
            bounds[:-1],
            bounds[1:],
            strict=True,
        )
    ]


def as_plain_values(decision):
    """Return a decision as plain values."""
    return (
        describe_groups(decision),
        decision.groups.base.to_pylist(),
        decision.groups.logs.to_pylist(),
        decision.groups.because.to_pylist(),
        [RULES[code] for code in decision.rule.tolist()],
        decision.because.to_pylist(),
        decision.warnings,
    )


@LAW
@given(sized_tables(), clusterings(), st.none() | st.integers(0, 5))
def test_every_slice_is_in_one_group_or_kept_with_a_reason(state, clustering, seed):
    ranges = None if seed is None else ranges_of(state, seed)
    decision = plan_clustering(make_spec(clustering), state, KnownStatistics(ranges=ranges))
    found = decision.candidates
    members = [(path, file_id) for path, _, _, ids in describe_groups(decision) for file_id in ids]
    ids = found.view.files.group_id.to_pylist()
    all_ids = [
        (found.view.files.partitions[partition], ids[group])
        for partition, group in zip(found.partition.tolist(), found.group.tolist(), strict=True)
    ]
    in_group = [pair for pair, rule in zip(all_ids, decision.rule, strict=True) if rule == 0]

    assert sorted(in_group) == sorted(members)
    assert len(set(members)) == len(members)
    assert all(decision.because.to_pylist())
    assert all(decision.groups.because.to_pylist())
    assert (decision.group_of >= 0).tolist() == (decision.rule == 0).tolist()


@LAW
@given(sized_tables(), clusterings())
def test_slices_are_the_newest_of_every_live_group(state, clustering):
    """The independent implementation of the laws of cleaning finds the same slices.

    What a pending compaction has begun to write is in none.
    """
    decision = plan_clustering(make_spec(clustering), state, KnownStatistics())
    completions = None if state.table_version < 8 else state.completions
    waiting = {
        (op.partition, op.file_id): op.instant
        for op in state.compactions
        if op.action is Action.COMPACTION
    }
    expected = {}
    for group, slices in group_slices(state, completions).items():
        begun = waiting.get(group)
        settled = slices[1:] if slices and slices[0].key == begun else slices
        newest = next((s for s in (*settled, *slices) if s.files), None)
        if group not in state.replaced and newest is not None:
            bases = sorted(n for n in newest.files if not n.startswith("."))
            expected[group] = [] if newest.key == begun else bases[-1:]
    found = decision.candidates
    files = found.view.files
    ids, names = files.group_id.to_pylist(), files.name.to_pylist()
    ours = {
        (files.partitions[partition], ids[group]): [names[row]] if row >= 0 else []
        for partition, group, row in zip(
            found.partition.tolist(), found.group.tolist(), found.base_row.tolist(), strict=True
        )
    }

    assert expected == ours


@LAW
@given(sized_tables(), clusterings(), st.none() | st.integers(0, 5))
def test_no_group_exceeds_the_limit_unless_it_is_one_slice(state, clustering, seed):
    ranges = None if seed is None else ranges_of(state, seed)
    decision = plan_clustering(make_spec(clustering), state, KnownStatistics(ranges=ranges))
    found, budget = decision.candidates, clustering.budget
    for number, (_, outputs, size, ids) in enumerate(describe_groups(decision)):
        rows = np.flatnonzero(decision.group_of == number)
        weight = size
        if clustering.when.always:  # Hudi does not weigh log files
            weight = int(np.where(found.has_base, found.base, TARGET)[rows].sum())
        assert outputs >= 1
        assert len(set(found.partition[rows].tolist())) == 1
        assert len(ids) == 1 or weight <= budget.per_group
    assert len(decision.groups) <= budget.groups
    assert int(decision.groups.bytes.sum()) <= (budget.rewrite or 10**9)


@LAW
@given(sized_tables(), clusterings())
def test_files_of_pending_instants_are_not_rewritten(state, clustering):
    """Neither groups of a pending service nor log files of a pending write."""
    decision = plan_clustering(make_spec(clustering), state, KnownStatistics())
    held = {(op.partition, op.file_id) for op in state.compactions}
    held |= {(given.partition, given.file_id) for given in state.clusterings}
    members = {(path, file_id) for path, _, _, ids in describe_groups(decision) for file_id in ids}

    done = {i.requested for i in state.timeline.commits}
    names = [name for logs in decision.groups.logs.to_pylist() for name in logs]
    instants = {name.split("_")[1].split(".")[0] for name in names}

    assert set() == held & members
    assert state.table_version < 8 or not {
        i for i in instants if i not in done and i >= state.timeline.start
    }


@LAW
@given(sized_tables(), clusterings(), st.sampled_from([Policy.COMMITS, Policy.FILE_VERSIONS]))
def test_clustering_does_not_change_the_clean_of_its_plan(state, clustering, policy):
    """Clustering rewrites what readers see now, and a clean planned now does not remove that."""
    bare = replace(
        make_spec(clustering), retention=Retention(policy=policy, keep=1), timezone="UTC"
    )
    now = datetime(2199, 1, 1, tzinfo=UTC)
    both = plan_table(bare, state, now)
    alone = plan_table(replace(bare, clustering=None), state, now)
    cleans = [step for step in both.steps if not isinstance(step, ClusterStep)]
    (groups,) = rewritten_groups(both.steps) or (empty_rewrites(),)
    read = {*groups.base.to_pylist(), *groups.logs.flatten().to_pylist()}
    gone = {name for step in removal_steps(both.steps) for name in step.files.name.to_pylist()}

    assert compute_steps_digest(replace(both, steps=tuple(cleans))) == compute_steps_digest(alone)
    assert set() == read & gone
    assert int(groups.bytes.sum()) == both.impact.bytes_rewritten
    order = ["resume", "cluster", "clean"]
    assert sorted(both.steps, key=lambda step: order.index(step.kind)) == list(both.steps)


@LAW
@given(draw_file_sizes(), clusterings(), st.randoms(use_true_random=False))
def test_order_of_the_listing_does_not_matter(sizes, clustering, shuffle):
    first = plan_clustering(make_spec(clustering), make_table(sizes), KnownStatistics())
    again = plan_clustering(
        make_spec(clustering), make_table(sizes, shuffle=shuffle), KnownStatistics()
    )

    assert as_plain_values(first) == as_plain_values(again)


def apply_groups(sizes, past, decision, record, time):
    """Return the files after the groups were rewritten to files of equal size at ``time``."""
    taken = {}
    outputs = []
    for path, count, _, ids in describe_groups(decision):
        taken.setdefault(path, set()).update(ids)
        data = 0
        for file_id in ids:
            data += max(find_size(sizes, past, path, file_id) - record.fixed, 0)
        outputs.append((time, path, [record.fixed + data // count] * count))
    # a file that goes leaves its place: numbers are names
    rest = {
        path: [s if f"g{n:03d}-0" not in taken.get(path, ()) else None for n, s in enumerate(found)]
        for path, found in sizes.items()
    }
    kept = [
        (
            t,
            path,
            [
                s if f"c{i:03d}x{n:03d}-0" not in taken.get(path, ()) else None
                for n, s in enumerate(found)
            ],
        )
        for i, (t, path, found) in enumerate(past)
    ]
    return rest, kept + outputs


def find_size(sizes, past, path, file_id):
    if file_id.startswith("g"):
        return sizes[path][int(file_id[1:4])]
    return past[int(file_id[1:4])][2][int(file_id[5:8])]


def without_gaps(state):
    """Return the table without the removed files (their size is -1)."""
    keep = state.files.size >= 0
    names = state.files.name.to_pylist()
    folders = {path: ([], []) for path in state.files.partitions}
    for name, partition, size, stays in zip(
        names, state.files.partition.tolist(), state.files.size.tolist(), keep, strict=True
    ):
        if stays:
            folders[state.files.partitions[partition]][0].append(name)
            folders[state.files.partitions[partition]][1].append(size)
    files = build_files(((p, n, s) for p, (n, s) in folders.items()), ".parquet")
    return replace(state, files=files)


def now(sizes, past):
    def known(found):
        return [-1 if size is None else size for size in found]

    return without_gaps(
        make_table(
            {path: known(found) for path, found in sizes.items()},
            [(time, path, known(found)) for time, path, found in past],
        )
    )


def memory(past, decision):
    return tuple(
        PastClustering(instant=time, layout=decision.layout)
        for time in sorted({time for time, _, _ in past})
    )


@LAW
@given(draw_file_sizes(), clusterings(budget=endless), st.sampled_from([0, 5, 30]))
def test_applied_clustering_is_not_planned_again(sizes, clustering, fixed):
    """A later commit satisfies afterCommits; only Hudi's own rule remembers nothing."""
    clustering = replace(clustering, when=ClusteringTrigger(small_file_share_above=0.0))
    record = RecordSize(fixed=fixed, per_row=1.0, because="")
    first = plan_clustering(make_spec(clustering), now(sizes, []), KnownStatistics(sizes=record))
    rest, past = apply_groups(sizes, [], first, record, instant_at(2))
    second = plan_clustering(
        make_spec(clustering),
        now(rest, past),
        KnownStatistics(sizes=record, past=memory(past, first)),
    )

    assert [] == describe_groups(second)


@LAW
@given(draw_file_sizes(), clusterings())
def test_runs_within_a_budget_end(sizes, clustering):
    if clustering.when.always:
        clustering = replace(clustering, when=ClusteringTrigger())
    record = RecordSize(fixed=5, per_row=1.0, because="")
    past, seen = [], ()
    for run in range(90):
        decision = plan_clustering(
            make_spec(clustering), now(sizes, past), KnownStatistics(sizes=record, past=seen)
        )
        if not len(decision.groups):
            break
        for number in range(len(decision.groups)):
            of = decision.candidates.partition[decision.group_of == number].tolist()
            assert len(set(of)) == 1
            assert int(decision.groups.bytes[number]) <= clustering.budget.per_group or len(of) == 1
        sizes, past = apply_groups(sizes, past, decision, record, f"{20260101010000000 + 10 * run}")
        seen = memory(past, decision)
    assert not len(decision.groups)


@LAW
@given(draw_file_sizes(), clusterings(budget=endless))
def test_without_a_new_commit_nothing_is_planned(sizes, clustering):
    state = now(sizes, [])
    last = state.timeline.newest_time
    decision = plan_clustering(
        make_spec(clustering),
        state,
        KnownStatistics(past=(PastClustering(instant=last, layout=None),)),
    )

    assert [] == describe_groups(decision)
    assert ["nothingToDo"] == [note.rule for note in decision.warnings]


@LAW
@given(draw_file_sizes(), endless)
def test_packing_makes_fewer_files_in_every_group(sizes, budget):
    clustering = Clustering(columns=(), budget=budget)
    for _, outputs, size, ids in describe_groups(
        plan_clustering(make_spec(clustering), make_table(sizes), KnownStatistics())
    ):
        assert outputs < len(ids)
        assert outputs == max(-(-size // TARGET), 1)


spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), min_size=1, max_size=30)


@LAW
@given(spans, st.sampled_from([3.0, 4.0, 8.0]))
def test_files_with_disjoint_ranges_are_not_rewritten_again(found, above):
    """With statistics of one column, the outputs of a group divide the range of its files."""
    clustering = Clustering(
        columns=("x",),
        curve="linear",
        when=ClusteringTrigger(small_file_share_above=None, overlap_above=above),
        budget=ClusteringBudget(per_group=10**6, groups=99),
    )
    sizes = {"a": [TARGET] * len(found)}
    bounds = {f"g{n:03d}-0": (low, low + width) for n, (low, width) in enumerate(found)}
    state = now(sizes, [])
    first = plan_clustering(
        make_spec(clustering), state, KnownStatistics(ranges=statistics_of_bounds(state, bounds))
    )
    record = RecordSize(fixed=0, per_row=1.0, because="")
    rest, past = apply_groups(sizes, [], first, record, instant_at(2))
    for _, outputs, _, ids in describe_groups(first):
        low = min(bounds[file_id][0] for file_id in ids)
        high = max(bounds[file_id][1] for file_id in ids)
        cuts = np.linspace(low, high, outputs + 1).tolist()
        for n in range(outputs):
            bounds[f"c000x{n:03d}-0"] = (cuts[n] + (0.01 if n else 0.0), cuts[n + 1])
    state = now(rest, past)
    second = plan_clustering(
        make_spec(clustering),
        state,
        KnownStatistics(ranges=statistics_of_bounds(state, bounds), past=memory(past, first)),
    )

    assert [] == describe_groups(second)


def statistics_of_bounds(state, bounds):
    """Return statistics of one column by file id; files of other partitions have arbitrary ones."""
    files = state.files
    ids = [files.group_id[group].as_py() for group in files.group.tolist()]
    pairs = [bounds.get(file_id, (0, 0)) for file_id in ids]
    lower, upper = (pa.array([float(pair[side]) for pair in pairs]) for side in (0, 1))
    return ColumnRanges.build([(lower, upper)], np.full(len(ids), 10, np.int64))
