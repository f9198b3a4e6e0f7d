"""Measure the clustering planner on a million files, by the shape of the table.

python -m tests.bench.clustering_speed                   a million files
python -m tests.bench.clustering_speed --files 100000

CPU seconds of the planner alone: listing a table and reading footers are not in them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from reconciler.hudi.files.table_files import build_files
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.spec.model import Clustering, ClusteringBudget, ClusteringTrigger, TableSpec
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.model import TableState
from tests.unit.planners.cow import commit, stamp, table

MiB = 1024**2
BY = {"columns": ("x", "y"), "curve": "kd-tree"}
DONE = ClusteringLayout(columns=("x", "y"), curve="kd-tree", mapping="rank")
OVERLAP = ClusteringTrigger(overlap_above=8.0, gain_above=None)
ASKED = {
    "as Hudi": Clustering(columns=(), when=ClusteringTrigger(always=True)),
    "packing": Clustering(columns=()),
    "by overlap": Clustering(**BY, when=OVERLAP),
    "by overlap, all laid out before": Clustering(**BY, when=OVERLAP),
    "by gain": Clustering(**BY),
    "by gain, all laid out before": Clustering(**BY),
}


def table_of(partitions: int, files: int) -> TableState:
    """Return a table of base files of 1 to 200 MiB, written by one commit."""
    chance = np.random.default_rng(1)
    each = files // partitions
    folders = []
    for number in range(partitions):
        names = [f"a{n:07x}-{number:06x}-0_0-0-0_{stamp(1)}.parquet" for n in range(each)]
        folders.append((f"p{number:06d}", names, chance.integers(1, 200 * MiB, each).tolist()))
    found = build_files(folders, ".parquet")
    state = table({"a": []}, [commit(1), commit(2)])
    return replace(state, files=found, partitions=found.partitions)


def ranges_of(state: TableState) -> ColumnRanges:
    """Return ranges of two columns; each file covers a tenth of each."""
    chance = np.random.default_rng(2)
    lower = chance.uniform(0, 0.9, (2, len(state.files)))
    rows = np.full(len(state.files), 1000, np.int64)
    return ColumnRanges(lower=lower, upper=lower + 0.1, rows=rows)


def seconds(state: TableState, name: str, ranges: ColumnRanges) -> tuple[float, int]:
    """Return CPU seconds and groups of one plan without a limit on groups."""
    asked = replace(ASKED[name], budget=ClusteringBudget(groups=10**9))
    spec = TableSpec(name="t", path="/t", clustering=asked)
    past = (PastClustering(instant=stamp(1), layout=DONE),) if "laid out" in name else ()
    started = time.process_time()
    decision = plan_clustering(
        spec, state, KnownStatistics(past=past, ranges=ranges if " by " in f" {name}" else None)
    )
    return time.process_time() - started, len(decision.groups)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    files = parser.parse_args().files
    for partitions in (1, files // 1000, files // 10):
        state = table_of(partitions, files)
        ranges = ranges_of(state)
        for name in ASKED:
            spent, groups = seconds(state, name, ranges)
            print(f"{files} files, {partitions:6} partitions, {name:32}{spent:6.2f} s {groups:6}")


if __name__ == "__main__":
    main()
