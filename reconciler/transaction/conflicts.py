"""Find the groups of a change that other writes touch too; pure.

A clustering replaces file slices, so whatever is written to one of them after it was chosen would
be lost. Hudi compares file groups only of completed writes (SimpleConcurrentFileWritesConflict-
ResolutionStrategy); here pending ones count as well, because they may complete at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """The file groups that a write touches.

    ``groups``: partition -> ids of file groups. ``inserts``: partitions into which a pending write
    puts new records without saying where. ``is_known`` False: it may go anywhere. ``has_new_keys``
    False: it brings no new keys, because it only moves or deletes rows.
    """

    instant: str
    action: str
    is_completed: bool
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    inserts: frozenset[str] = frozenset()
    is_known: bool = True
    has_new_keys: bool = True

    def __str__(self) -> str:
        return f"{self.action} {self.instant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupClaim:
    """File groups of one partition that a change replaces or follows.

    ``is_open``: a writer may put new records into one of them, since it is small or has log files.
    """

    partition: str
    ids: frozenset[str]
    is_open: bool


def find_conflicts(claims: Sequence[GroupClaim], footprints: Iterable[Footprint]) -> dict[int, str]:
    """Return the numbers of the claims that have to be given up, each with the reason."""
    reasons: dict[int, str] = {}
    for footprint in footprints:
        for number, claim in enumerate(claims):
            reason = None if number in reasons else explain_conflict(claim, footprint)
            if reason is not None:
                reasons[number] = reason
    return reasons


def find_undecided_claims(
    claims: Sequence[GroupClaim], footprints: Sequence[Footprint]
) -> frozenset[int]:
    """Return the numbers of the claims that only conflict with writes that may go anywhere.

    A write is announced before it has looked for its rows, and says where they are when it begins.
    """
    sure = [write for write in footprints if write.is_known or write.is_completed]
    return frozenset(find_conflicts(claims, footprints)) - frozenset(find_conflicts(claims, sure))


def explain_conflict(claim: GroupClaim, footprint: Footprint) -> str | None:
    """Return why a claim and a write exclude each other, None when they do not.

    >>> claim = GroupClaim(partition="p", ids=frozenset({"a", "b"}), is_open=False)
    >>> write = Footprint(instant="7", action="commit", is_completed=True,
    ...     groups={"p": frozenset({"b"})})
    >>> explain_conflict(claim, write)
    'commit 7 has written to its file group b meanwhile'
    """
    if not footprint.is_known and footprint.is_completed:
        return f"{footprint} has changed the table meanwhile, nobody knows where"
    if not footprint.is_known:
        return f"{footprint} is pending, and which file groups it writes to is not known"
    hit = claim.ids & footprint.groups.get(claim.partition, frozenset())
    if hit:
        does = "has written" if footprint.is_completed else "is pending and writes"
        when = " meanwhile" if footprint.is_completed else ""
        return f"{footprint} {does} to its file group {min(hit)}{when}"
    if claim.is_open and not footprint.is_completed and claim.partition in footprint.inserts:
        return (
            f"{footprint} is pending and brings new records to its partition, which may go into "
            "its small file groups"
        )
    return None
