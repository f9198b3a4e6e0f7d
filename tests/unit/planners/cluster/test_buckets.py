"""Buckets of a simple bucket index: each is rewritten alone, into one file of its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from reconciler.hudi.files.table_files import build_files
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.cluster.slice_verdicts import RULES
from reconciler.planners.compose import plan_table
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.render.drift import describe_difference
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    SizeTrigger,
    TableSpec,
)
from reconciler.state.clustering_facts import ClusteringFacts
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from tests.unit.planners.cow import base, commit, stamp, table

NOW = datetime(2024, 1, 2, tzinfo=UTC)
SHARE = ClusteringTrigger(small_file_share_above=0.3, overlap_above=None, gain_above=None)
ALWAYS = ClusteringTrigger(always=True)
BY_X = {"columns": ("x",), "curve": "linear"}
REST = "1111-2222-3333-444444444444-0"


def bucket(number, hour=0):
    return base(f"{number:08d}-{REST}", hour)


def log(number, hour=0):
    return f".{number:08d}-{REST}_{stamp(hour)}.log.1_1-0-1"


def sized(folders, *hours):
    """A table of files with sizes: ``{"a": {name: bytes}}``."""
    state = table({"a": []}, [commit(hour) for hour in hours or (0, 1)])
    files = build_files(((p, list(f), list(f.values())) for p, f in folders.items()), ".parquet")
    return replace(state, files=files, partitions=files.partitions, table_version=6)


def decide(state, *, when=SHARE, past=(), **more):
    clustering = Clustering(**{"columns": (), "when": when, **more})
    spec = TableSpec(
        name="t", path="/t", files=FileSizes(target=100, small=80), clustering=clustering
    )
    return plan_clustering(spec, state, KnownStatistics(past=past))


def groups_of(decision):
    """Partition, outputs and file ids of each group, by the first eight characters."""
    groups, ids = decision.groups, [i[:8] for i in decision.groups.file_id.to_pylist()]
    starts = groups.starts.tolist()
    return [
        (partition, outputs, ids[start:end])
        for partition, outputs, start, end in zip(
            groups.partition.to_pylist(),
            groups.outputs.tolist(),
            starts[:-1],
            starts[1:],
            strict=True,
        )
    ]


def find_order(decision):
    """Return the slices by partition and file id."""
    candidates = decision.candidates
    ids = candidates.view.files.group_id.to_pylist()
    keys = zip(candidates.partition.tolist(), candidates.group.tolist(), strict=True)
    keys = [(partition, ids[group]) for partition, group in keys]
    return sorted(range(len(keys)), key=keys.__getitem__)


def rules_of(decision):
    return [RULES[decision.rule[at]] for at in find_order(decision)]


def reasons_of(decision):
    return [decision.because[at].as_py() for at in find_order(decision)]


@pytest.mark.parametrize("when", [SHARE, ALWAYS], ids=["share", "always"])
def test_each_bucket_becomes_one_file_of_its_own(when):
    state = sized({"a": {bucket(0): 10, bucket(1): 10}, "b": {bucket(0): 10}})

    assert [
        ("a", 1, ["00000000"]),
        ("a", 1, ["00000001"]),
        ("b", 1, ["00000000"]),
    ] == groups_of(decide(state, when=when, **BY_X))


@pytest.mark.parametrize("when", [SHARE, ALWAYS], ids=["share", "always"])
def test_without_columns_small_buckets_stay_and_logs_are_folded(when):
    state = sized({"a": {bucket(0): 10, bucket(1): 10, bucket(2): 10, log(1): 90, log(2): 90}})
    decision = decide(state, when=when)

    assert [("a", 1, ["00000001"]), ("a", 1, ["00000002"])] == groups_of(decision)
    assert ["bucket", "group", "group"] == rules_of(decision)
    assert "neither merged nor split" in reasons_of(decision)[0]
    assert "2 of 3 buckets are not as declared" in reasons_of(decision)[1]


def test_a_bucket_of_log_files_alone_gets_a_base_file():
    assert [("a", 1, ["00000001"])] == groups_of(decide(sized({"a": {log(1): 90}})))


def test_a_share_within_the_limit_leaves_all_buckets():
    folders = {"a": {**{bucket(number): 10 for number in range(4)}, log(1): 90}}
    decision = decide(sized(folders))

    assert [] == groups_of(decision)
    assert ["bucket", "when", "bucket", "bucket"] == rules_of(decision)
    assert (
        "1 of 4 buckets is not as declared (within smallFileShareAbove 0.3)"
        == reasons_of(decision)[1]
    )


@pytest.mark.parametrize("when", [SHARE, ALWAYS], ids=["share", "always"])
def test_a_bucket_that_is_clustered_as_declared_stays(when):
    layout = ClusteringLayout(columns=("x",), curve="linear", mapping="rank")
    past = PastClustering(instant=stamp(1), layout=layout, extra={})
    folders = {"a": {bucket(0, 1): 10, bucket(1, 0): 10, bucket(2, 0): 10}}
    decision = decide(sized(folders), when=when, past=(past,), after_commits=0, **BY_X)

    assert [("a", 1, ["00000001"]), ("a", 1, ["00000002"])] == groups_of(decision)
    assert ["bucket", "group", "group"] == rules_of(decision)


def test_a_large_file_of_a_bucket_is_not_split_and_says_so():
    decision = decide(sized({"a": {bucket(0): 201, bucket(1): 10, log(1): 90}}))

    assert [("a", 1, ["00000001"])] == groups_of(decision)
    assert (
        "its file is above 200B, and the file of a bucket is not split: let Hudi have more buckets"
        == reasons_of(decision)[0]
    )


def test_a_large_bucket_is_put_in_order_as_one_file():
    assert [("a", 1, ["00000000"])] == groups_of(decide(sized({"a": {bucket(0): 900}}), **BY_X))


def test_a_partition_with_another_file_group_has_no_buckets():
    """Its writers look for no bucket there: they would fail on the other name."""
    folders = {"a": {bucket(0): 10, base("g", 0): 10}, "b": {bucket(0): 10, bucket(1): 10}}
    decision = decide(sized(folders), **BY_X)

    assert [
        ("a", 1, ["00000000", "g"]),
        ("b", 1, ["00000000"]),
        ("b", 1, ["00000001"]),
    ] == groups_of(decision)


def test_buckets_and_other_groups_share_the_budget():
    folders = {"a": {base("g0", 0): 10, base("g1", 0): 10}, "b": {bucket(0): 10, bucket(1): 10}}
    few = ClusteringBudget(groups=2)
    decision = decide(sized(folders), budget=few, **BY_X)

    assert [("b", 1, ["00000000"]), ("b", 1, ["00000001"])] == groups_of(decision)
    assert ["budget", "budget", "group", "group"] == rules_of(decision)

    one = decide(sized(folders), budget=replace(few, groups=1), **BY_X)

    assert [("b", 1, ["00000000"])] == groups_of(one)
    assert ["budget", "budget", "group", "budget"] == rules_of(one)


def test_ids_that_non_blocking_writers_agree_on_are_refused():
    name = base("00000001-0000-0000-0000-000000000000-0", 0)
    decision = decide(sized({"a": {name: 10, bucket(0): 10}}))

    assert [("bucketIndex", "cluster")] == [(note.rule, note.step) for note in decision.refusals]
    assert () == decide(sized({"a": {bucket(0): 10}})).refusals


def test_such_ids_are_a_warning_where_their_buckets_are_as_declared():
    name = base("00000001-0000-0000-0000-000000000000-0", 0)
    facts = ClusteringFacts(
        written=(), clusterings=(), footers=None, bounds=None, rows=np.zeros(1, np.int64)
    )
    files = FileSizes(target=100, small=80, large=200, when=SizeTrigger())
    state = sized({"a": {name: 10}}).with_facts(clustering_facts=facts)
    plan = plan_table(TableSpec(name="t", path="/t", files=files), state, NOW)

    assert () == plan.refusals
    assert ["bucketIndex", "nothingToDo"] == [note.rule for note in plan.warnings][:2]


def test_declared_sizes_alone_neither_merge_nor_split_buckets():
    state = sized({"a": {bucket(0): 10, bucket(1): 10, bucket(2): 1000}})
    files = FileSizes(target=100, small=80, large=200, when=SizeTrigger())
    facts = ClusteringFacts(
        written=(), clusterings=(), footers=None, bounds=None, rows=np.zeros(3, np.int64)
    )
    spec = TableSpec(name="t", path="/t", files=files)
    plan = plan_table(spec, state.with_facts(clustering_facts=facts), NOW)

    assert ((), (), ()) == (plan.steps, plan.drift, plan.refusals)
    decision = plan_clustering(spec, state, KnownStatistics())
    assert ["bucket"] * 3 == rules_of(decision)
    assert "its file is above 200B" in reasons_of(decision)[2]

    folded = plan_table(
        spec,
        sized({"a": {bucket(0): 10, log(1): 90}}).with_facts(
            clustering_facts=replace(facts, rows=np.zeros(2, np.int64))
        ),
        NOW,
    )

    [step] = folded.steps
    assert ("cluster", "sizes", [1]) == (step.kind, step.purpose, step.groups.outputs.tolist())
    assert ["00000001"] == [i[:8] for i in step.groups.file_id.to_pylist()]
    [finding] = folded.drift
    assert ("files.when.smallFileShareAbove", 0.3, 0.5) == (
        finding.field,
        finding.desired,
        finding.actual,
    )
    assert "1 of 2 buckets in 1 partition has log files to fold into the base file" == (
        finding.because
    )
    assert "observed 50 %; spec allows 30 %" == describe_difference(finding)


def test_buckets_to_fold_are_drift_in_the_block_that_declares_the_rewrite():
    state = sized({"a": {bucket(0): 10, log(1): 90}, "b": {bucket(0): 10, bucket(1): 10}})
    facts = ClusteringFacts(
        written=(), clusterings=(), footers=None, bounds=None, rows=np.zeros(4, np.int64)
    )
    spec = TableSpec(name="t", path="/t", clustering=Clustering(columns=(), when=ALWAYS))
    [finding] = plan_table(spec, state.with_facts(clustering_facts=facts), NOW).drift

    assert ("clustering.when.smallFileShareAbove", 0.0) == (finding.field, finding.desired)
    assert finding.because.startswith("1 of 2 buckets in 1 partition has log files")
