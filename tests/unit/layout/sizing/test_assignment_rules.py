"""Choosing the assignment rule of a table from its spec and its past writes."""

from __future__ import annotations

import numpy as np

from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.assignment_rules import (
    FileSizeLimits,
    HudiRule,
    RewriteCap,
    SteadyRule,
    choose_rule,
)
from reconciler.layout.sizing.record_size import FooterSizes, PastWrite, RecordSize

SIZES = FileSizeLimits(target=1_200, small=1_000)


def commit(*files, action=Action.COMMIT):
    rows, sizes = np.array(files, np.int64).T
    return PastWrite(
        instant="1", action=action, rows=rows, bytes=sizes, is_base=np.ones(len(rows), np.bool_)
    )


def test_hudi_rule_divides_bytes_by_records():
    history = [commit((100, 5_000))]

    assert HudiRule(sizes=SIZES, average=50) == choose_rule("hudi", SIZES, history)


def test_hudi_rule_depends_on_the_version():
    history = [commit((100, 5_000)), commit((100, 9_000), action=Action.REPLACECOMMIT)]

    assert 50 == choose_rule("hudi", SIZES, history).average
    assert 90 == choose_rule("hudi", SIZES, history, version="0.15").average


def test_steady_rule_separates_fixed_bytes_and_has_a_cap():
    history = [commit((100, 1_400), (200, 2_400), (400, 4_400))]
    found = choose_rule("steady", SIZES, history)

    assert (400, 10.0) == (found.record_size.fixed, round(found.record_size.per_row, 6))
    assert RewriteCap() == found.rewrite_cap


def test_without_history_the_declared_size_is_used():

    assert 77 == choose_rule("hudi", SIZES, [], declared=77).average
    assert 77.0 == choose_rule("steady", SIZES, [], declared=77).record_size.per_row


def test_steady_rule_with_fewer_than_a_thousand_known_rows_measures_its_own():
    few = FooterSizes(rows=np.array([999]), bytes=np.array([70_000]), data=np.array([20_000]))
    enough = FooterSizes(rows=np.array([1000]), bytes=np.array([70_000]), data=np.array([20_000]))

    assert choose_rule("steady", SIZES, []).needs_row_sizes
    assert choose_rule("steady", SIZES, [], footers=few).needs_row_sizes
    assert not choose_rule("steady", SIZES, [], footers=enough).needs_row_sizes
    assert not choose_rule("steady", SIZES, [commit((1000, 9_000))]).needs_row_sizes


def test_declared_size_avoids_measuring():
    assert not choose_rule("steady", SIZES, [], declared=77).needs_row_sizes


def test_footers_take_precedence_over_the_declared_size():
    footers = FooterSizes(rows=np.array([10]), bytes=np.array([700]), data=np.array([200]))

    assert (500, 20.0) == (
        (record := choose_rule("steady", SIZES, [], footers=footers).record_size).fixed,
        record.per_row,
    )


def test_footers_without_row_bytes_are_ignored():
    footers = FooterSizes(rows=np.array([10]), bytes=np.array([500]), data=np.array([0]))
    found = choose_rule("steady", SIZES, [], footers=footers, declared=77)

    assert isinstance(found, SteadyRule)
    assert (
        RecordSize(fixed=500, per_row=77.0, because="declared: footers report no bytes", rows=0)
        == found.record_size
    )
