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


def claim(*ids, partition="p", is_open=False):
    return GroupClaim(partition=partition, ids=frozenset(ids), is_open=is_open)


def write(groups=None, *, done=False, inserts=(), is_known=True):
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
            write({"p": {"b"}}, done=True),
            "commit 7 has written to its file group b meanwhile",
        ),
        (write({"p": {"c", "b"}}), "commit 7 is pending and writes to its file group b"),
        (
            write(is_known=False),
            "commit 7 is pending, and which file groups it writes to is not known",
        ),
        (
            write(is_known=False, done=True),
            "commit 7 has changed the table meanwhile, nobody knows where",
        ),
        (write({"p": {"x"}}), None),
        (write({"q": {"b"}}, done=True), None),
        (write(inserts={"p"}), None),
    ],
)
def test_a_group_is_let_go_when_a_write_may_go_to_one_of_its_file_groups(footprint, says):

    assert says == explain_conflict(claim("a", "b"), footprint)


@pytest.mark.parametrize(
    ("footprint", "is_hit"),
    [
        (write(inserts={"p"}), True),
        (write(inserts={"q"}), False),
        (write({"p": {"new"}}, inserts={"p"}, done=True), False),
    ],
    ids=["into its partition", "into another", "completed: it said where"],
)
def test_new_records_may_go_into_small_file_groups_of_their_partition(footprint, is_hit):
    found = explain_conflict(claim("a", is_open=True), footprint)

    assert is_hit == (found is not None)
    assert found is None or "which may go into its small file groups" in found


def test_every_group_that_is_hit_is_named_once_with_the_first_reason():
    claims = [claim("a"), claim("b"), claim("c"), claim("a", partition="q")]
    writes = [write({"p": {"a"}}, done=True), write({"p": {"a", "c"}})]

    assert {
        0: "commit 7 has written to its file group a meanwhile",
        2: "commit 7 is pending and writes to its file group c",
    } == find_conflicts(claims, writes)


def test_a_group_waits_for_a_write_that_has_not_said_where_it_goes_and_for_no_other_reason():
    claims = [claim("a"), claim("b"), claim("c", partition="q", is_open=True)]
    says_nothing = write(is_known=False)

    assert {0, 1, 2} == find_undecided_claims(claims, [says_nothing])
    assert {1} == find_undecided_claims(claims, [write({"p": {"a"}}, inserts={"q"}), says_nothing])
    assert set() == find_undecided_claims(
        claims, [write({"p": {"a"}}), write({"q": {"c"}}, done=True)]
    )
    assert set() == find_undecided_claims(claims, [write(is_known=False, done=True), says_nothing])
