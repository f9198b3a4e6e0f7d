"""Real Hudi upserts from a process of its own while we cluster: no row is lost or doubled."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.oracle.clustered_tables import Shape, list_replaced, make_small_subject
from tests.oracle.concurrent_writer import CONCURRENT, WRITERS_FIRST, check_no_update_is_lost
from tests.oracle.our_clustering import apply_here, assert_done, make_plan
from tests.selection import long
from tests.storage_wrappers import _StorageWrapper

pytestmark = pytest.mark.oracle

FIRST = CONCURRENT | WRITERS_FIRST
#: the writer comes right after a file of this name was made
MEANWHILE = [
    (Shape(version="1.2.0", merge_on_read=True, partitions="plain"), "inflight"),
    (Shape(version="0.15.0", merge_on_read=True, metadata="all", partitions="plain"), ".parquet"),
    (Shape(version="1.0.2", partitions="plain"), "inflight"),
    long(Shape(version="1.2.0", metadata="all", partitions="plain"), ".parquet"),
]


class Meanwhile(_StorageWrapper):
    """Does something once, right after a file was made whose path has a text."""

    def __init__(self, inner, text, act):
        super().__init__(inner)
        self.text, self.act = text, act

    def _intercept(self, call, act, torn=None):  # noqa: ARG002
        done = act()
        if call.mutates and self.text in call.paths[0] and "/metadata/" not in call.paths[0]:
            todo, self.act = self.act, lambda: None
            todo()
        return done


def left(result):
    """Partitions whose groups stay as they were, and why."""
    (table,) = result.tables
    return {one.partition: one.because for o in table.outcomes for one in o.rewritten.left}


@pytest.mark.parametrize(("shape", "moment"), MEANWHILE, ids=str)
def test_a_group_that_is_written_to_meanwhile_stays_and_the_others_are_rewritten(
    real_hudi, tmp_path, shape, moment
):
    subject = make_small_subject(real_hudi(shape.version), tmp_path / "t", shape)
    plan = make_plan(subject)
    before = set(list_replaced(subject.table))

    def write():
        subject.write({"a01": 50, "a90": 50}, options=FIRST)

    result = apply_here(plan, around=lambda store: Meanwhile(store, moment, write))

    assert 4 == result.exit_code
    assert ["a"] == list(left(result))
    (instant,) = set(list_replaced(subject.table)) - before
    assert 1 == len(list_replaced(subject.table)[instant])
    subject.assert_right(tmp_path / "read", "while a group was left")
    assert_done(apply_here(make_plan(subject)))
    subject.assert_right(tmp_path / "again", "when it was clustered too")


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2"])
def test_a_write_that_is_announced_after_the_clustering_that_it_has_an_older_time_than_is_read(
    real_hudi, tmp_path, version
):
    subject = make_small_subject(
        real_hudi(version), tmp_path / "t", Shape(version=version, partitions="plain")
    )
    gate, before = tmp_path / "gate", subject.table.instants()
    gate.mkdir()
    with ThreadPoolExecutor(1) as pool:
        write = pool.submit(subject.write, {"a01": 50, "b90": 50}, options=CONCURRENT, gate=gate)
        try:
            while not (gate / "reached").exists() and not write.done():
                time.sleep(0.05)
            assert before == subject.table.instants(), "it is not announced yet"
            assert_done(apply_here(make_plan(subject)))
        finally:
            (gate / "open").touch()
        write.result()

    subject.assert_right(tmp_path / "read", "when both were done")


@pytest.mark.parametrize(
    ("version", "options"),
    [long("0.15.0", {}), ("1.2.0", WRITERS_FIRST)],
    ids=["0.15.0", "1.2.0"],
)
def test_no_update_is_lost_beside_a_writer_that_never_rests(real_hudi, tmp_path, version, options):
    shape = Shape(version=version, metadata="all", partitions="plain")
    subject = make_small_subject(real_hudi(version), tmp_path / "t", shape)

    check_no_update_is_lost(subject, options, tmp_path)
