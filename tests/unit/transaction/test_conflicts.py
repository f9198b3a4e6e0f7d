"""Which groups of a clustering must be let go for the sake of other writes."""

from __future__ import annotations

import pytest

from reconciler.transaction.conflicts import (
    Footprint,
    GroupClaim,
    explain_conflict,
    find_conflicts,
    find_undecided_claims,
)


def make_claim(*ids, partition="p", is_open=False):
    return GroupClaim(partition=partition, ids=frozenset(ids), is_open=is_open)


def make_footprint(groups=None, *, done=False, inserts=(), is_known=True):
    return Footprint(
        instant="7",
        action="commit",
        is_completed=done,
        groups={path: frozenset(ids) for path, ids in (groups or {}).items()},
        inserts=frozenset(inserts),
        is_known=is_known,
    )


@pytest.mark.parametrize(
    ("footprint", "says"),
    [
        (
            make_footprint({"p": {"b"}}, done=True),
            "commit 7 has written to its file group b meanwhile",
        ),
        (make_footprint({"p": {"c", "b"}}), "commit 7 is pending and writes to its file group b"),
        (
            make_footprint(is_known=False),
            "commit 7 is pending, and which file groups it writes to is not known",
        ),
        (
            make_footprint(is_known=False, done=True),
            "commit 7 has changed the table meanwhile, nobody knows where",
        ),
        (make_footprint({"p": {"x"}}), None),
        (make_footprint({"q": {"b"}}, done=True), None),
        (make_footprint(inserts={"p"}), None),
    ],
)
def test_a_group_conflicts_with_a_write_that_may_touch_its_file_groups(footprint, says):

    assert says == explain_conflict(make_claim("a", "b"), footprint)


@pytest.mark.parametrize(
    ("footprint", "is_hit"),
    [
        (make_footprint(inserts={"p"}), True),
        (make_footprint(inserts={"q"}), False),
        (make_footprint({"p": {"new"}}, inserts={"p"}, done=True), False),
    ],
    ids=["into its partition", "into another", "completed: it said where"],
)
def test_new_records_may_go_into_small_file_groups_of_their_partition(footprint, is_hit):
    found = explain_conflict(make_claim("a", is_open=True), footprint)

    assert is_hit == (found is not None)
    assert found is None or "which may go into its small file groups" in found


def test_every_group_with_conflicts_has_the_first_reason():
    claims = [make_claim("a"), make_claim("b"), make_claim("c"), make_claim("a", partition="q")]
    writes = [make_footprint({"p": {"a"}}, done=True), make_footprint({"p": {"a", "c"}})]

    assert {
        0: "commit 7 has written to its file group a meanwhile",
        2: "commit 7 is pending and writes to its file group c",
    } == find_conflicts(claims, writes)


def test_a_group_is_undecided_only_because_of_writes_without_known_groups():
    claims = [make_claim("a"), make_claim("b"), make_claim("c", partition="q", is_open=True)]
    says_nothing = make_footprint(is_known=False)

    assert {0, 1, 2} == find_undecided_claims(claims, [says_nothing])
    assert {1} == find_undecided_claims(
        claims, [make_footprint({"p": {"a"}}, inserts={"q"}), says_nothing]
    )
    assert set() == find_undecided_claims(
        claims, [make_footprint({"p": {"a"}}), make_footprint({"q": {"c"}}, done=True)]
    )
    assert set() == find_undecided_claims(
        claims, [make_footprint(is_known=False, done=True), says_nothing]
    )
