"""Clustering ends even in the worst case: it always predicts a gain and never achieves it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.cluster.clustering_input import MaxScanDemand
from reconciler.planners.cluster.passes import build_pass_metadata
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    TableSpec,
)
from reconciler.state.clustering_facts import ClusteringFacts
from reconciler.state.clustering_layout import PastClustering
from tests.selection import examples
from tests.unit.planners.cow import table

TARGET = 100
#: what all runs together rewrite, in tables; without an end it would be any
OFTEN = 50
FIRST = 20260101000000000


def instant_of_run(run):
    return str(FIRST + 10 * run)


class WorstCaseTable:
    """Files by partition, each with all values of the column, so that all always overlap."""

    def __init__(self, counts):
        self.files = {path: {} for path in "abc"[: len(counts)]}
        self.past = ()
        self.runs = 0
        for path, count in zip(self.files, counts, strict=True):
            self.write(path, count, TARGET * count)

    def write(self, path, count, size):
        for _ in range(count):
            name = f"f{sum(map(len, self.files.values())):03d}r{self.runs}-0"
            self.files[path][name] = (instant_of_run(self.runs), size // count)

    def state(self):
        folders = (
            (
                path,
                [f"{file_id}_1-0-1_{time}.parquet" for file_id, (time, _) in found.items()],
                [size for _, size in found.values()],
            )
            for path, found in self.files.items()
        )
        files = build_files(folders, ".parquet")
        done = {one.instant for one in self.past}
        instants = [
            Instant(
                instant_of_run(run),
                Action.REPLACECOMMIT if instant_of_run(run) in done else Action.COMMIT,
                State.COMPLETED,
                str(FIRST + 10 * run + 5),
            )
            for run in range(self.runs + 1)
        ]
        rows = np.zeros(len(files), np.int64)
        known = ClusteringFacts(
            written=(), clusterings=self.past, footers=None, bounds=None, rows=rows
        )
        state = table({path: [] for path in self.files}, instants)
        return replace(state, files=files, partitions=files.partitions, clustering_facts=known)

    def run(self, spec, *, is_read):
        """One plan and its apply; the share of the table that it rewrites.

        ``is_read``: a query reads all of it, and would always gain.
        """
        state = self.state()
        count = len(state.files)
        ends = pa.array([0] * count), pa.array([9] * count)
        ranges = ColumnRanges.build([ends], np.full(count, 100, np.int64))
        scans = (
            MaxScanDemand(is_read=np.ones(count, np.bool_), reason="it is read")
            if is_read
            else None
        )
        decision = plan_clustering(
            spec, state, KnownStatistics(past=self.past, ranges=ranges), max_scan=scans
        )
        groups = decision.groups
        if not len(groups):
            return 0.0
        extra = build_pass_metadata(spec, state, groups)
        self.runs += 1
        one = PastClustering(instant=instant_of_run(self.runs), layout=decision.layout, extra=extra)
        self.past = (*self.past, one)
        total = sum(size for found in self.files.values() for _, size in found.values())
        ids = groups.file_id.to_pylist()
        for path, outputs, size, (start, end) in zip(
            groups.partition.to_pylist(),
            groups.outputs.tolist(),
            groups.bytes.tolist(),
            pairwise(groups.starts.tolist()),
            strict=True,
        ):
            for file_id in ids[start:end]:
                del self.files[path][file_id]
            self.write(path, outputs, size)
        return int(groups.bytes.sum()) / total


@settings(max_examples=examples(3, many=20), deadline=None)
@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=2),
    a_group=st.integers(2, 8),
    groups=st.sampled_from([1, 2, 30]),
    later=st.integers(1, 6),
    overlap=st.sampled_from([1.0, None]),
    gain=st.sampled_from([0.2, 0.0, None]),
    is_read=st.booleans(),
)
@example(counts=[5], a_group=3, groups=1, later=2, overlap=1.0, gain=None, is_read=False)
@example(counts=[5], a_group=3, groups=1, later=2, overlap=None, gain=0.2, is_read=False)
@example(counts=[5], a_group=3, groups=1, later=2, overlap=None, gain=None, is_read=True)
@example(counts=[4], a_group=3, groups=1, later=3, overlap=1.0, gain=0.2, is_read=True)
def test_clustering_that_never_helps_ends(  # noqa: PLR0917
    counts, a_group, groups, later, overlap, gain, is_read
):
    clustering = Clustering(
        columns=("x",),
        curve="linear",
        after_commits=0,
        when=ClusteringTrigger(small_file_share_above=None, overlap_above=overlap, gain_above=gain),
        budget=ClusteringBudget(per_group=a_group * TARGET, groups=groups),
    )
    files = FileSizes(target=TARGET, small=1)
    spec = TableSpec(name="t", path="/t", files=files, clustering=clustering)
    world = WorstCaseTable(counts)
    for _ in range(2):
        often = 0.0
        while share := world.run(spec, is_read=is_read):
            often += share
            assert often <= OFTEN
        world.runs += 1
        world.write("a", later, TARGET * later)
