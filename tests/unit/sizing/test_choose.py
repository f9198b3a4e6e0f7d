"""The rule of a table, by declaration and history."""

from __future__ import annotations

import numpy as np

from reconciler.hudi.instant import Action
from reconciler.sizing.choose import rule_for
from reconciler.sizing.estimate import RecordSize
from reconciler.sizing.history import Footers, Written
from reconciler.sizing.rules import ByHudi, Cap, Sizes, Steady

SIZES = Sizes(target=1_200, small=1_000)


def commit(*files, action=Action.COMMIT):
    rows, sizes = np.array(files, np.int64).T
    return Written(
        instant="1", action=action, rows=rows, bytes=sizes, is_base=np.ones(len(rows), np.bool_)
    )


def test_hudi_s_rule_divides_bytes_by_records():
    history = [commit((100, 5_000))]

    assert ByHudi(sizes=SIZES, average=50) == rule_for("hudi", SIZES, history)


def test_hudi_s_rule_is_that_of_a_version():
    history = [commit((100, 5_000)), commit((100, 9_000), action=Action.REPLACECOMMIT)]

    assert 50 == rule_for("hudi", SIZES, history).average
    assert 90 == rule_for("hudi", SIZES, history, version="0.15").average


def test_the_steady_rule_tells_a_fixed_cost_from_rows_and_has_a_cap():
    history = [commit((100, 1_400), (200, 2_400), (400, 4_400))]
    found = rule_for("steady", SIZES, history)

    assert (400, 10.0) == (found.record.fixed, round(found.record.per_row, 6))
    assert Cap() == found.cap


def test_without_history_the_declared_size_holds():

    assert 77 == rule_for("hudi", SIZES, [], declared=77).average
    assert 77.0 == rule_for("steady", SIZES, [], declared=77).record.per_row


def test_where_fewer_than_a_thousand_rows_tell_a_steady_write_weighs_its_own():
    few = Footers(rows=np.array([999]), bytes=np.array([70_000]), data=np.array([20_000]))
    enough = Footers(rows=np.array([1000]), bytes=np.array([70_000]), data=np.array([20_000]))

    assert rule_for("steady", SIZES, []).weighs
    assert rule_for("steady", SIZES, [], footers=few).weighs
    assert not rule_for("steady", SIZES, [], footers=enough).weighs
    assert not rule_for("steady", SIZES, [commit((1000, 9_000))]).weighs


def test_what_is_declared_saves_the_weighing():
    assert not rule_for("steady", SIZES, [], declared=77).weighs


def test_footers_tell_before_the_declaration_does():
    footers = Footers(rows=np.array([10]), bytes=np.array([700]), data=np.array([200]))

    assert (500, 20.0) == (
        (record := rule_for("steady", SIZES, [], footers=footers).record).fixed,
        record.per_row,
    )


def test_footers_without_any_bytes_of_rows_tell_nothing():
    footers = Footers(rows=np.array([10]), bytes=np.array([500]), data=np.array([0]))
    found = rule_for("steady", SIZES, [], footers=footers, declared=77)

    assert isinstance(found, Steady)
    assert (
        RecordSize(fixed=500, per_row=77.0, because="declared: footers tell of no bytes", rows=0)
        == found.record
    )
