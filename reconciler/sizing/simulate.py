"""What the next rows will do to a table's files, on partitions as the last ones fell on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.sizing.assign import assign
from reconciler.sizing.buckets import Assignment, inserts_only
from reconciler.sizing.groups import Groups
from reconciler.sizing.rules import MergeOnRead, Rule, TableKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What so many new ``rows`` do to a partition.

    ``filled``: small files that take some of them, and ``filled_rows``; ``rewritten``: bytes of
    those files, 0 where rows are appended as log files; ``new``: files that the rest makes;
    ``small``: how many of all these files are small afterwards.
    """

    partition: str
    rows: int
    filled: int
    filled_rows: int
    rewritten: int
    new: int
    small: int


def shares_of(recent: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """New rows by partition of the last writes together, partitions without any left out.

    >>> shares_of([{"p=1": 10, "p=2": 0}, {"p=1": 5, "p=3": 5}])
    {'p=1': 15, 'p=3': 5}
    """
    total: Counter[str] = Counter()
    for rows in recent:
        total.update(rows)
    return {partition: total[partition] for partition in sorted(total) if total[partition] > 0}


def apportioned(rows: int, shares: Mapping[str, int]) -> dict[str, int]:
    """So many rows by partition, as nearly in these proportions as whole rows can be.

    By the largest remainders, of equal ones the first partition's. Empty without shares.

    >>> apportioned(10, {"a": 1, "b": 1, "c": 1})
    {'a': 4, 'b': 3, 'c': 3}
    """
    weight = sum(shares.values())
    if weight <= 0:
        return {}
    whole = {partition: rows * share // weight for partition, share in shares.items()}
    rest = sorted(shares, key=lambda partition: (-(rows * shares[partition] % weight), partition))
    for partition in rest[: rows - sum(whole.values())]:
        whole[partition] += 1
    return whole


def simulate_inserts(
    groups: Groups, rows: Mapping[str, int], kind: TableKind, rule: Rule
) -> tuple[Outlook, ...]:
    """What the writer will do with new rows by partition, in their order."""
    workload = inserts_only(dict(rows))
    assigned = assign(groups, workload, kind, rule)
    appends = isinstance(kind, MergeOnRead) and kind.indexes_logs
    return tuple(
        _outlook(partition, assigned, assigned.taking(code), rule, appends=appends)
        for code, partition in enumerate(workload.partitions)
    )


def _outlook(
    partition: str, assigned: Assignment, place: slice, rule: Rule, *, appends: bool
) -> Outlook:
    is_new, inserts = assigned.is_new[place], assigned.inserts[place]
    is_small = assigned.expected[place] < rule.sizes.small
    return Outlook(
        partition=partition,
        rows=int(inserts.sum()),
        filled=int(np.count_nonzero(~is_new)),
        filled_rows=int(inserts[~is_new].sum()),
        rewritten=0 if appends else int(assigned.size[place].sum()),
        new=int(np.count_nonzero(is_new)),
        small=int(np.count_nonzero(is_small)),
    )
