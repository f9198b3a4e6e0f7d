"""Executors of Spark's own die in the middle of a clean's deletes, once or for good."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass

import pytest

from reconciler.plans.plan import Plan
from tests.crash.drill import (
    CASES,
    Drill,
    list_data_files,
    list_newest_files,
    list_savepointed_files,
    list_traces,
    list_unlisted,
    make_drill,
)
from tests.crash.spark_cluster import Cluster, Done, Orders
from tests.crash.test_stop_anywhere import expected_to_go
from tests.oracle import our_clean
from tests.oracle.hudi import keep_commits
from tests.oracle.prepared_tables import TableKind, assert_reads, assert_rows_and_listing
from tests.selection import long, take_turns

TABLES = {
    "version 6, a partition goes": "cow_delete_partition__0.15.0",
    "version 9, metadata table and log files": "mor_mdt__1.2.0",
}
ONCE = [
    Orders(at=1),
    Orders(at=3, when="after", how="exit"),
    Orders(at=4, when="after", how="executor"),
]
#: what combines them otherwise
OTHERS = [Orders(at=5, when="after"), Orders(at=2, how="executor")]
ALWAYS = [
    Orders(at=1, always=True),
    Orders(at=3, when="after", how="exit", always=True),
]
#: under ./ci/test Hudi comes first after killed applies, which leave tables alike
KINDS = [
    long(TableKind(version="0.15.0", indexes=True), "kill"),
    long(TableKind(version="1.2.0", indexes=True), "executor"),
    long(TableKind(version="1.2.0", merge_on_read=True), "exit"),
]
#: addresses of this machine, so that its executors are not all at one
HOSTS = ("127.0.0.2", "127.0.0.3")


@pytest.fixture(scope="module")
def cluster(needs_java, tmp_path_factory):  # noqa: ARG001
    with Cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def it(request, tmp_path) -> Drill:
    return make_drill(
        CASES / TABLES[request.param] / "table.zip", tmp_path / "t", retention="commits: 1"
    )


@pytest.fixture
def listed(tmp_path) -> Drill:
    """The one with a metadata table."""
    return make_drill(
        CASES / "mor_mdt__1.2.0" / "table.zip", tmp_path / "t", retention="commits: 1"
    )


@dataclass(frozen=True, kw_only=True)
class Due:
    """A plan, and what must be true when it is done."""

    plan: Plan
    goes: set[str]
    stays: set[str]
    newest: set[str]
    differences: set[str]
    #: files, bytes, files that were gone before
    counts: tuple[int, int, int]


def due(it: Drill) -> Due:
    plan, state = it.plan(), it.state()
    (step,) = plan.tables[0].steps
    found = Due(
        plan=plan,
        goes=set(map("/".join, our_clean.list_names(step))),
        stays=list_data_files(it.table) - expected_to_go(it, (step,)),
        newest=list_newest_files(state),
        differences=list_unlisted(it),
        counts=(len(step.files), int(step.files.bytes.sum()), 0),
    )
    assert list_newest_files(state) | list_savepointed_files(state) <= found.stays
    return found


def assert_finished(it: Drill, expected: Due) -> None:
    assert list_traces(it.table) == []
    assert list_data_files(it.table) == expected.stays
    assert list_newest_files(it.state()) == expected.newest
    assert list_unlisted(it) == expected.differences
    assert [(table.steps, table.error) for table in it.plan().tables] == [((), None)]


def assert_half_way(
    it: Drill, expected: Due, done: Done, why: str = "Task 0 in stage|Task 1 in stage"
) -> None:
    """Nobody is told that it is done, and who reads sees what they saw before."""
    assert (done.code, done.table["outcomes"]) == (5, [])
    said = (
        rf"deleting the files of clean \d+ stopped half way \(({why}).*\); "
        r"run apply again to finish it"
    )
    assert re.fullmatch(said, done.table["error"])
    assert [".clean.inflight"] == [name[17:] for name in list_traces(it.table)[:1]]
    assert expected.stays <= list_data_files(it.table)
    assert list_newest_files(it.state()) == expected.newest


@pytest.mark.spark
@pytest.mark.parametrize(
    ("orders", "it"),
    [*take_turns(ONCE, TABLES), *(long(orders, it) for orders in OTHERS for it in TABLES)],
    indirect=["it"],
    ids=str,
)
def test_a_task_that_dies_once_is_tried_again_and_all_is_counted(cluster, it, orders):
    expected = due(it)
    cluster.order(it.table, orders)
    done = cluster.apply(expected.plan)
    (outcome,) = done.table["outcomes"]

    assert (cluster.deaths(), done.code, done.table["error"]) == (1, 0, None)
    assert (outcome["how"], outcome["failed"], outcome["leftOut"]) == ("completed", [], [])
    assert expected.counts == done.counts
    assert_finished(it, expected)


@pytest.mark.spark
@pytest.mark.parametrize(("orders", "it"), take_turns(ALWAYS, TABLES), indirect=["it"], ids=str)
def test_a_task_that_dies_every_time_leaves_work_for_the_next_apply(cluster, it, orders):
    assert_goes_on(cluster, it, orders)


def assert_goes_on(cluster: Cluster, it: Drill, orders: Orders) -> None:
    expected = due(it)
    cluster.order(it.table, orders)
    done = cluster.apply(expected.plan)
    left = expected.goes & list_data_files(it.table)

    assert cluster.deaths() >= 4
    assert len(expected.goes) - len(left) == sum(what == "deleted" for _, what, _ in cluster.log())
    assert_half_way(it, expected, done)
    cluster.wait_for_workers()  # one whose task ended while it was starting dies when it begins
    cluster.order(it.table, None)
    again = cluster.apply(expected.plan)
    removed, _, gone = again.counts
    assert again.code == 0
    assert (removed, gone) == (len(left), len(expected.goes) - len(left))
    assert_finished(it, expected)


@pytest.mark.spark
def test_executors_that_die_one_after_the_other_leave_work_as_well(cluster, listed):
    assert_goes_on(cluster, listed, Orders(at=4, how="executor", always=True))


@pytest.mark.spark
def test_nothing_is_deleted_any_more_when_an_apply_has_given_up(cluster, listed):
    expected = due(listed)
    (step,) = expected.plan.tables[0].steps
    partition, name = our_clean.list_names(step)[0]  # somebody's first delete
    cluster.order(listed.table, Orders(at=1, always=True, slow=(name,), slow_s=60))
    done = cluster.apply(expected.plan)
    (sleeper,) = (int(pid) for pid, what, _ in cluster.log() if what == "sleeps")

    with pytest.raises(ProcessLookupError):
        os.kill(sleeper, 0)
    assert f"{partition}/{name}" in list_data_files(listed.table)
    assert_half_way(listed, expected, done)
    cluster.order(listed.table, None)
    assert cluster.apply(listed.plan()).code == 0
    assert_finished(listed, expected)


@pytest.mark.spark
@pytest.mark.usefixtures("needs_java")
def test_two_attempts_at_the_same_files_are_no_error_and_count_once(listed, tmp_path):
    try:
        for host in HOSTS:
            with socket.socket() as one:
                one.bind((host, 0))
    except OSError:
        pytest.skip("this machine has one loopback address, and Spark wants a host an attempt")
    expected = due(listed)
    (step,) = expected.plan.tables[0].steps
    (_, first), (_, second), *_ = our_clean.list_names(step)
    with Cluster(tmp_path / "cluster", {"spark.speculation": "true"}, hosts=HOSTS) as cluster:
        cluster.order(listed.table, Orders(slow=(second,), slow_s=60))
        done = cluster.apply(expected.plan)
        log = cluster.log()

    attempts = {pid for pid, _, name in log if name == second}
    assert 2 == len(attempts)
    assert ["deleted", "missed"] == [what for _, what, name in log if name == first]
    assert (done.code, expected.counts) == (0, done.counts)
    assert_finished(listed, expected)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("kill", r"Task \d .* failed 1 times, .*Python worker exited unexpectedly"),
        ("executor", "the Java process of Spark's driver has ended"),
    ],
)
def test_without_a_cluster_nothing_is_tried_again(cluster, listed, tmp_path, how, why):
    expected = due(listed)
    with Cluster(tmp_path / "here", master="local[2]") as here:
        here.order(listed.table, Orders(at=3, how=how))
        done = here.apply(expected.plan)
        assert 1 == here.deaths()
    assert_half_way(listed, expected, done, why)
    cluster.order(listed.table, None)
    assert 0 == cluster.apply(expected.plan).code
    assert_finished(listed, expected)


@pytest.mark.oracle
@pytest.mark.parametrize(("kind", "how"), KINDS, ids=str)
def test_hudi_writes_and_cleans_first_after_executors_died(library, cluster, tmp_path, kind, how):
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    plan = our_clean.make_plan(table, {"commits": 1})
    planned = set(map("/".join, our_clean.list_names(our_clean.get_step(plan))))
    cluster.order(table.path, Orders(at=3, how=how, always=True))
    done = cluster.apply(plan)
    cluster.order(table.path, None)

    assert 5 == done.code
    assert 2 == len(planned - list_data_files(table.path))
    assert_reads(hudi, table, rows)
    hudi.write(table, [("a1", "a", 50)], options={"hoodie.clean.automatic": "true"})
    rows = [["a1", "a", 50, "v50", 50.0] if row[0] == "a1" else row for row in rows]
    assert_rows_and_listing(hudi, table, rows)
    assert [] == [name for name in list_traces(table.path) if "/.heartbeat/" not in name]
    assert not planned & list_data_files(table.path)
    hudi.clean(table, keep_commits(1))
    assert_rows_and_listing(hudi, table, rows)
    assert 0 == cluster.apply(our_clean.make_plan(table, {"commits": 1})).code
    assert_rows_and_listing(hudi, table, rows)
    assert [] == list_traces(table.path)
    assert () == our_clean.make_plan(table, {"commits": 1}).tables[0].steps
