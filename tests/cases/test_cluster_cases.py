"""Tables that real Hudi wrote, and the clustering that real Hudi planned; ours has the same groups.

With Hudi's options and ``when: always``. Where it has not, a table below says why.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.record_size import estimate_record_size
from reconciler.planners.cluster.grouping import pack_next_fit
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    PartitionFilter,
    TableSpec,
)
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.observe import observe
from reconciler.state.write_history import read_write_history
from reconciler.storage.open import open_storage
from tests.trees import unpack

CASES = Path(__file__).parent / "cluster"
SCENARIOS = sorted(path.name for path in CASES.iterdir() if path.is_dir())
OPTION = "hoodie.clustering.plan.strategy."

#: what no spec can ask for, whichever version planned it
UNSAYABLE = {
    "s24_mor_log_only": "Hudi was not told of the bucket index; ours merges no buckets",
    "s25_log_only_slices": "a log-only slice weighs files.target; Hudi has a second size for it",
    "s28_sortby_instant": "slices come by size: a spec has no other order",
    "s30_incremental_partitions__1.2.0": "always looks at all partitions, not at those written to",
}
#: what 1.2.0 plans otherwise than the version that planned the case
OLDER_VERSIONS = {
    "s03_max_groups_partitions__0.15.0": "partitions come in the order of a listing",
    "s06_single_disabled_split__0.15.0": "a last group of one slice goes, however many its outputs",
}


def reason(scenario, reasons):
    return next((reasons[name] for name in reasons if scenario.startswith(name)), None)


def scenario_of(scenario):
    return json.loads((CASES / scenario / "scenario.json").read_text())


def plan_of(scenario):
    """Hudi's first plan: its groups, with log files in merge order; None where there is none."""
    plans = json.loads((CASES / scenario / "plan.json").read_text())
    if not plans or plans[0] is None:
        return None
    return [
        (
            group["outputs"],
            [(s["partition"], s["fileId"], s["base"], s["logs"][::-1]) for s in group["slices"]],
        )
        for group in plans[0]
    ]


def by_us(decision):
    groups = decision.groups
    columns = (groups.file_id, groups.base, groups.logs)
    slices = list(zip(*(column.to_pylist() for column in columns), strict=True))
    return [
        (outputs, [(partition, *found) for found in slices[start:end]])
        for partition, outputs, start, end in zip(
            groups.partition.to_pylist(),
            groups.outputs.tolist(),
            groups.starts[:-1].tolist(),
            groups.starts[1:].tolist(),
            strict=True,
        )
    ]


def in_order_of_size(groups, folder):
    """Hudi has slices of equal size in the order of a hash map, we in that of their file groups."""

    def key(found):
        partition, file_id, base, _ = found
        return (-(folder / partition / base).stat().st_size, file_id)

    return [(outputs, sorted(slices, key=key)) for outputs, slices in groups]


def partitions_of(call, options):
    """Hudi's partition filter as the spec's."""
    if chosen := re.search(r"selected_partitions=>'([^']*)'", call):
        return PartitionFilter(include=tuple(chosen[1].split(",")))
    if pattern := options.get(f"{OPTION}partition.regex.pattern"):
        return PartitionFilter(include=(f"/{pattern}/",))
    if options.get("hoodie.clustering.plan.partition.filter.mode") == "RECENT_DAYS":
        return PartitionFilter(
            latest=options[f"{OPTION}daybased.lookback.partitions"],
            skip_latest=options[f"{OPTION}daybased.skipfromlatest.partitions"],
        )
    return PartitionFilter()


def spec_of(scenario, path):
    case = scenario_of(scenario)
    options = case["options"]
    order = re.search(r"order=>'([^']*)'", case["call"])
    curve = "z-order" if "order_strategy=>'z-order'" in case["call"] else "linear"
    return TableSpec(
        name="t",
        path=str(path),
        files=FileSizes(
            target=options.get(f"{OPTION}target.file.max.bytes", 1024**3),
            small=options.get(f"{OPTION}small.file.limit", 300 * 1024**2),
        ),
        clustering=Clustering(
            columns=tuple(order[1].split(",")) if order else (),
            curve=curve if order else None,
            mapping="direct",
            after_commits=int(options.get("hoodie.clustering.inline.max.commits", 1)),
            partitions=partitions_of(case["call"], options),
            when=ClusteringTrigger(always=True),
            single_file=options.get(f"{OPTION}single.group.clustering.enabled") != "false",
            budget=ClusteringBudget(
                per_group=options.get(f"{OPTION}max.bytes.per.group", 2 * 1024**3),
                groups=options.get(f"{OPTION}max.num.groups", 30),
            ),
        ),
    )


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    def of(scenario):
        folder = tmp_path_factory.mktemp(scenario, numbered=True)
        return unpack(CASES / scenario / "table.zip", folder, hollow=True)

    return of


def decided(scenario, folder):
    storage = open_storage(str(folder))
    spec = spec_of(scenario, folder)
    return plan_clustering(
        spec, observe(storage, spec, observed_ms=0), KnownStatistics(past=past(storage))
    )


def past(storage):
    properties = load_properties(storage)
    return read_write_history(storage, properties, load_timeline(storage, properties)).clusterings


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.endswith("__1.2.0")])
def test_the_groups_are_those_of_hudi_in_its_order(scenario, unpacked):
    if skip := reason(scenario, UNSAYABLE):
        pytest.skip(skip)
    folder = unpacked(scenario)
    found = by_us(decided(scenario, folder))

    assert in_order_of_size(found, folder) == found
    assert in_order_of_size(plan_of(scenario) or [], folder) == found


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.endswith("__0.15.0")])
def test_an_older_hudi_makes_the_same_groups_in_another_order(scenario, unpacked):
    if skip := reason(scenario, UNSAYABLE) or reason(scenario, OLDER_VERSIONS):
        pytest.skip(skip)
    folder = unpacked(scenario)
    theirs = in_order_of_size(plan_of(scenario) or [], folder)

    assert sorted(theirs, key=str) == sorted(by_us(decided(scenario, folder)), key=str)


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_log_only_slices_weigh_a_full_file_in_hudi(version):
    """The rule by itself: three slices, each counted as parquet.max.file.size."""
    plan = plan_of(f"s25_log_only_slices__{version}")
    weight = np.full(3, 125_829_120, np.int64)
    groups = pack_next_fit(np.arange(3), np.zeros(3, np.int32), weight, 250_000_000)

    assert [len(slices) for _, slices in plan] == groups.sizes.tolist()
    assert [outputs for outputs, _ in plan] == (
        -(-groups.sum_values(weight) // 100_000_000)
    ).tolist()


def test_of_the_partitions_written_to_hudi_makes_the_group_that_we_make(unpacked):
    """Hudi 1.x plans b alone, the one partition written to since the last clustering."""
    scenario = "s30_incremental_partitions__1.2.0"
    ours = by_us(decided(scenario, unpacked(scenario)))

    assert ["a", "b", "c"] == [slices[0][0] for _, slices in ours]
    assert plan_of(scenario) == ours[1:2]


def test_a_slice_of_hudis_other_order_is_in_the_same_group(unpacked):
    scenario = "s28_sortby_instant__1.2.0"
    [(outputs, slices)] = plan_of(scenario)
    [(our_outputs, our_slices)] = by_us(decided(scenario, unpacked(scenario)))

    assert (outputs, sorted(slices, key=str)) == (our_outputs, sorted(our_slices, key=str))


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_buckets_are_not_merged(version, unpacked):
    """Hudi's plan merges them, because it was not told of the index: rows would be lost."""
    scenario = f"s24_mor_log_only__{version}"
    [(outputs, merged)] = plan_of(scenario)
    decision = decided(scenario, unpacked(scenario))

    assert (1, 2) == (outputs, len(merged))
    assert () == decision.refusals
    assert [] == [slices for _, slices in by_us(decision) if len(slices) > 1]


def test_other_tables_are_not_refused(unpacked):
    for scenario in ("s01_default__1.2.0", "s12_mor_logs__0.15.0"):
        assert () == decided(scenario, unpacked(scenario)).refusals


def test_every_case_is_accounted_for():
    left_out = [s for s in SCENARIOS if reason(s, UNSAYABLE) or reason(s, OLDER_VERSIONS)]

    assert 38 == len(SCENARIOS)
    assert [
        "s03_max_groups_partitions__0.15.0",
        "s06_single_disabled_split__0.15.0",
        "s24_mor_log_only__0.15.0",
        "s24_mor_log_only__1.2.0",
        "s25_log_only_slices__0.15.0",
        "s25_log_only_slices__1.2.0",
        "s28_sortby_instant__1.2.0",
        "s30_incremental_partitions__1.2.0",
    ] == left_out


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.startswith("s30")])
def test_the_timeline_tells_of_hudis_clustering_and_of_what_was_written(scenario, unpacked):
    storage = open_storage(str(unpacked(scenario)))
    properties = load_properties(storage)
    history = read_write_history(storage, properties, load_timeline(storage, properties))
    first, second, third = history.written

    assert (
        PastClustering(instant=second.instant, layout=ClusteringLayout()),
    ) == history.clusterings
    assert [Action.COMMIT, Action.REPLACECOMMIT, Action.COMMIT] == [
        written.action for written in history.written
    ]
    assert [100, 100, 100] == first.rows.tolist() == second.rows.tolist()
    assert ([50], [True]) == (third.rows.tolist(), third.is_base.tolist())
    # clustering wrote bloom filters of another size: one line would not go through both
    size = estimate_record_size(history.written)
    assert size.fixed + 100 * size.per_row == pytest.approx(13_924, abs=10)


def test_only_the_newest_writes_are_read_and_every_clustering(unpacked):
    storage = open_storage(str(unpacked("s30_incremental_partitions__1.2.0")))
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    history = read_write_history(storage, properties, timeline, newest=1)

    assert ["20261121051201850"] == [written.instant for written in history.written]
    assert ["20261121051148760"] == [found.instant for found in history.clusterings]


def test_what_hudi_packed_once_is_not_packed_again(unpacked):
    """Under Hudi's own eligibility lone files of the last clustering are rewritten forever."""
    scenario = "s30_incremental_partitions__1.2.0"
    folder = unpacked(scenario)
    storage = open_storage(str(folder))
    spec = TableSpec(name="t", path=str(folder), clustering=Clustering(columns=()))
    decision = plan_clustering(
        spec, observe(storage, spec, observed_ms=0), KnownStatistics(past=past(storage))
    )

    assert [] == by_us(decision)
    assert [
        "clustering 20261121051148760 ordered it as declared",
        "clustering 20261121051148760 ordered it as declared",
        "packing it with others of its partition would not make fewer files",
        "clustering 20261121051148760 ordered it as declared",
    ] == decision.because.to_pylist()
