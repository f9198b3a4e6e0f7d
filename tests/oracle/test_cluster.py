"""Tables that real Hudi made, clustered by us, in the hands of real Hudi again."""

from __future__ import annotations

import pytest

from tests.oracle import clustered_checks
from tests.oracle.clustered_tables import Shape, SubjectCache
from tests.oracle.our_clustering import cluster_by_us
from tests.selection import EVERY_CASE, long, take_turn

pytestmark = [pytest.mark.oracle, pytest.mark.spark]

#: one for each table version that lives through everything
WHOLE = [
    Shape(version="0.15.0", merge_on_read=True, metadata="all"),
    Shape(version="1.0.2", partitions="levels", metadata="all", curve="z-order"),
    Shape(version="1.2.0", merge_on_read=True, metadata="all", curve="hilbert"),
]
#: its table version is that of 1.2.0, so that it lives through everything under --all only
OLDER = Shape(version="1.1.1", partitions="encoded", curve="linear", columns=("v",))
#: what else there is; tests/bench/cluster_lives.py has every shape
OTHERS = [
    Shape(version="0.15.0", all_types=True, partitions="encoded", columns=("dt", "d18")),
    Shape(version="1.0.2", merge_on_read=True, all_types=True, evolves=True, columns=("t", "s")),
    Shape(version="1.2.0", merge_on_read=True, keeps_meta=False, partitions="plain", columns=()),
]
ALL = sorted([*WHOLE, OLDER, *OTHERS], key=str)


def choose_indexes(shape):
    """Return the record index and one other; tests/oracle/test_base_files.py has each of them."""
    *others, last = shape.indexes
    return [*take_turn(others, of=2, turn=WHOLE.index(shape) if shape in WHOLE else 0), last]


@pytest.fixture(scope="module")
def clusterer(sessions):
    return cluster_by_us(lambda: sessions.with_conf(sql_session_timeZone="UTC"))


@pytest.fixture(scope="module")
def shelf(real_hudi, clusterer, tmp_path_factory):
    return SubjectCache(real_hudi, tmp_path_factory.mktemp("shelf"), clusterer)


@pytest.mark.parametrize(
    "shape", [long(shape) if shape == OLDER else shape for shape in ALL], ids=str, scope="module"
)
class TestOfATable:
    """One after the other, so that a table is made once."""

    def test_rows_are_read_as_before_in_every_way(self, shelf, shape):
        clustered_checks.check_same_rows(shelf, shape)

    def test_hudi_goes_on_to_write_and_to_serve(self, shelf, shape):
        if shape in WHOLE or (shape == OLDER and EVERY_CASE):
            clustered_checks.check_hudi_continues(shelf, shape, choose_indexes(shape))
        else:
            clustered_checks.check_one_write(shelf, shape)


@pytest.mark.parametrize("shape", [WHOLE[0], long(WHOLE[1]), WHOLE[2]], ids=str)
def test_hudi_takes_back_later_writes_and_the_clustering(shelf, clusterer, shape):
    clustered_checks.check_rollback_and_restore(shelf, shape, clusterer)


@pytest.mark.parametrize("shape", [*WHOLE, long(OLDER)], ids=str)
def test_our_clean_removes_the_groups_that_were_replaced(shelf, shape):
    clustered_checks.check_our_clean(shelf, shape)
