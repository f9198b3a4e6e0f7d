"""How big files are in a plan, and what the next rows do to them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.record_size import PastWrite
from reconciler.layout.sizing.simulate_inserts import NextInsert, SizeRange
from reconciler.layout.sizing.size_report import OperationFiles, PartitionSmallFiles
from reconciler.planners.compose import plan_table
from reconciler.plans.model import Note
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.clustering_facts import ClusteringFacts, ReadWarning, RecentWrites
from reconciler.state.clustering_layout import PastClustering
from reconciler.state.model import PendingClusteringSlice
from tests.unit.planners.cow import base, commit, log, stamp, table

NOW = datetime(2024, 1, 2, tzinfo=UTC)
#: every file of the table has 10 bytes; a row of it has 1
FILES = FileSizes(target=40, small=20, record_size=1)


def write(hour, operation="INSERT", action=Action.COMMIT, **inserts):
    nothing = np.zeros(0, np.int64)
    return PastWrite(
        instant=stamp(hour),
        action=action,
        rows=nothing,
        bytes=nothing,
        is_base=np.zeros(0, np.bool_),
        operation=operation,
        inserts=inserts,
    )


def state_of(*written, names=None, **more):
    names = names or {"a": [base("f1", 1), base("f2", 2)], "b": [base("g1", 1)]}
    found = table(names, [commit(1), commit(2)], **more)
    return replace(found, recent_writes=RecentWrites(newest=written))


def planned(state, *, insert=None, files=FILES):
    return plan_table(TableSpec(name="t", path="/t", files=files), state, NOW, next_insert=insert)


def simulated(state, insert, files=FILES):
    return planned(state, insert=insert, files=files).file_sizes.next_insert


def test_a_plan_says_how_big_files_are_where_small_ones_lie_and_what_wrote_them():
    found = planned(state_of(write(2, "UPSERT"))).file_sizes

    assert (40, 20, 3, 30, 3) == (
        found.target,
        found.small_below,
        found.state.files,
        found.state.bytes,
        found.state.small,
    )
    assert 2 == found.small_partitions
    assert (
        PartitionSmallFiles(partition="a", files=2, small=2, pinned=0, bytes=20),
        PartitionSmallFiles(partition="b", files=1, small=1, pinned=0, bytes=10),
    ) == found.state.partitions
    assert (
        OperationFiles(operation="unknown", files=2, small=2, bytes=20),
        OperationFiles(operation="UPSERT", files=1, small=1, bytes=10),
    ) == found.state.operations


def test_file_sizes_come_of_no_step_and_need_none():
    plan = planned(state_of())

    assert () == plan.steps
    assert 3 == plan.file_sizes.state.small


def test_where_nobody_looked_at_the_writes_nothing_is_said_of_sizes():
    assert planned(replace(state_of(), recent_writes=None)).file_sizes is None


def test_only_the_worst_partitions_are_named_and_the_rest_is_counted():
    names = {f"p{nth:02d}": [base("f1", 1)] for nth in range(30)}
    found = planned(state_of(names=names)).file_sizes

    assert 30 == found.small_partitions
    assert 20 == len(found.state.partitions)


def test_what_clusterings_wrote_is_known_however_long_ago_they_were():
    clusterings = (PastClustering(instant=stamp(1), layout=None, extra={}),)
    evidence = ClusteringFacts(
        written=(), clusterings=clusterings, footers=None, bounds=None, rows=np.zeros(0, np.int64)
    )
    found = planned(replace(state_of(), clustering_facts=evidence)).file_sizes

    assert ["CLUSTER", "unknown"] == [each.operation for each in found.state.operations]


def test_writes_that_cannot_be_read_are_a_warning():
    doubt = ReadWarning(rule="fileSizes", because="nobody knows")
    plan = planned(replace(state_of(), recent_writes=RecentWrites(warning=doubt)))

    assert Note("fileSizes", "nobody knows") in plan.warnings
    assert 3 == plan.file_sizes.state.files


def test_the_next_rows_fall_on_partitions_as_the_new_rows_of_the_last_writes():
    found = simulated(state_of(write(1, a=1), write(2, a=2, b=3)), NextInsert(rows=100))

    assert [("a", 50), ("b", 50)] == [(one.partition, one.rows) for one in found.partitions]
    assert (100, 2, 100) == (found.rows, found.partition_count, found.total.rows)
    assert found.because.startswith(
        "distributed over partitions like the new rows of the last 2 writes; 1 byte"
    )


def test_the_next_rows_fill_the_small_files_that_the_writer_would_fill():
    found = simulated(state_of(), NextInsert(rows=80, partition="a"))

    assert (2, 60, SizeRange(least=40, most=40)) == (
        found.total.filled,
        found.total.filled_rows,
        found.total.filled_sizes,
    )
    assert (1, SizeRange(least=20, most=20)) == (found.total.new, found.total.new_sizes)
    assert found.because.startswith("all rows into a; ")


def test_what_a_pending_clustering_holds_is_not_filled():
    held = PendingClusteringSlice(
        instant=stamp(3), partition="a", file_id="f1", base_file=base("f1", 1), log_files=()
    )
    state = state_of(clusterings=(held,))
    found = simulated(state, NextInsert(rows=60, partition="a"))

    assert (1, 30) == (found.total.filled, found.total.filled_rows)
    assert 1 == planned(state).file_sizes.state.partitions[0].pinned


def test_rows_of_compactions_and_clusterings_are_no_new_ones():
    state = state_of(
        write(1, "CLUSTER", a=9), write(1, "compact", a=9), write(2, b=1), write(2, "DELETE")
    )
    found = simulated(state, NextInsert(rows=10))

    assert ["b"] == [one.partition for one in found.partitions]
    assert "of the last write;" in found.because


def test_a_commit_of_a_table_that_merges_on_read_is_a_compaction():
    state = state_of(
        write(1, None, a=9), write(2, action=Action.DELTACOMMIT, b=1), table_type="MERGE_ON_READ"
    )
    found = simulated(state, NextInsert(rows=10))

    assert ["b"] == [one.partition for one in found.partitions]


@pytest.mark.parametrize(("assign", "filled"), [("steady", 2), ("hudi", 1)])
def test_new_rows_of_a_merge_on_read_table_fill_base_files_without_log_files(assign, filled):
    names = {"a": [base("f1", 1), base("f2", 1), base("f3", 1), log("f3", 2)]}
    state = state_of(names=names, table_type="MERGE_ON_READ")
    files = replace(FILES, assign=assign)
    found = simulated(state, NextInsert(rows=70, partition="a"), files)

    assert (filled, filled * 30) == (found.total.filled, found.total.filled_rows)
    assert found.because.endswith("; new rows fill base files without log files")


@pytest.mark.parametrize("indexes", [(), ("files", "record_index")])
def test_new_rows_join_log_files_where_the_writers_put_new_rows_too(indexes):
    written = replace(write(1, action=Action.DELTACOMMIT, a=1), logged_inserts=1)
    names = {"a": [base("f1", 1), log("f1", 2)]}
    state = state_of(written, names=names, table_type="MERGE_ON_READ", metadata_partitions=indexes)
    found = simulated(state, NextInsert(rows=5, partition="a"))
    joins = not indexes

    assert (int(joins), int(not joins), 0) == (
        found.total.filled,
        found.total.new,
        found.total.rewritten,
    )
    assert joins == ("join log files" in found.because)


def test_where_few_rows_tell_how_big_they_are_it_is_said_that_a_write_weighs_its_own():
    few = simulated(state_of(), NextInsert(rows=5, partition="a"), replace(FILES, record_size=1024))
    declared = simulated(state_of(), NextInsert(rows=5, partition="a"))

    assert few.because.endswith("too few rows for a sure estimate, so a write measures its own)")
    assert "weighs" not in declared.because


def test_a_declared_assignment_is_simulated():
    files = replace(FILES, assign="hudi")
    found = simulated(state_of(), NextInsert(rows=5, partition="a"), files)

    assert found.because == "all rows into a; 1 byte per row by Hudi's rule"


def test_a_table_without_partitions_needs_no_past_writes():
    state = state_of(names={"": [base("f1", 1)]}, partition_fields=())
    found = simulated(state, NextInsert(rows=10))

    assert [("", 10)] == [(one.partition, one.rows) for one in found.partitions]
    assert found.because.startswith("1 byte per row")


@pytest.mark.parametrize(
    ("state", "insert", "why"),
    [
        (state_of(write(2, "UPSERT")), NextInsert(rows=1), "the newest writes inserted no rows"),
        (
            state_of(names={"": [base("f1", 1)]}, partition_fields=()),
            NextInsert(rows=1, partition="a"),
            "the table has no partitions",
        ),
        (
            state_of(names={"a": [base("00000001-1111", 1)]}),
            NextInsert(rows=1, partition="a"),
            "the table has a bucket index",
        ),
        (
            state_of(),
            NextInsert(rows=10**18, partition="a"),
            "the rows would make more than a million",
        ),
    ],
)
def test_what_cannot_be_simulated_says_why(state, insert, why):
    found = simulated(state, insert)

    assert found.because.startswith(f"not simulated: {why}")
    assert (None, ()) == (found.total, found.partitions)


def test_a_table_that_declares_no_sizes_is_simulated_with_those_that_a_writer_takes():
    found = planned(state_of(), insert=NextInsert(rows=10, partition="a"), files=None).file_sizes

    assert 120 << 20 == found.target
    assert 1 == found.next_insert.total.filled
