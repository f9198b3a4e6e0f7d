"""Find the file group of each row by a simple bucket index: the hash of its key tells.

A bucket of this index is not a bucket of an assignment (``layout.sizing.assign``), which is what
one task writes. It is a number of a partition that belongs to at most one file group, whose file id
begins with it. Source: HoodieSimpleBucketIndex, SparkBucketIndexPartitioner.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np

from reconciler.arrays import Integers
from reconciler.errors import RowsError
from reconciler.hudi.files.bucket_ids import read_bucket_numbers
from reconciler.hudi.files.key_buckets import NO_BUCKET, BucketRule
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass

NO_GROUP: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexBuckets:
    """The buckets of a table, and the file groups that they have; picklable.

    ``partitions``: sorted paths. ``slots``: ascending, partition number * buckets + bucket of each
    file group; ``groups``: their numbers in FileGroupSizes.
    """

    rule: BucketRule
    partitions: tuple[str, ...] = ()
    slots: Integers
    groups: Integers

    @classmethod
    def from_groups(cls, rule: BucketRule, groups: FileGroupSizes | None) -> Self:
        """Return the buckets of live groups; without groups, rows go to new ones.

        All live groups have the number of a bucket of the rule, each partition has it once.
        """
        if groups is None:
            nothing = np.zeros(0, np.int64)
            return cls(rule=rule, slots=nothing, groups=nothing)
        live = np.flatnonzero(groups.is_live)
        numbers = read_bucket_numbers(groups.file_id)[live]
        slots = groups.partition[live].astype(np.int64) * rule.buckets + numbers
        order = np.argsort(slots)
        return cls(rule=rule, partitions=groups.partitions, slots=slots[order], groups=live[order])

    def find_buckets(self, keys: Any) -> Integers:
        """Return the bucket of each record key; RowsError for one without a certain bucket."""
        buckets = self.rule.find_buckets(keys)
        unknown = np.flatnonzero(buckets == NO_BUCKET)
        if len(unknown):
            raise RowsError(
                f"record key {keys[int(unknown[0])].as_py()!r}: releases of Hudi that write the "
                "table put it into different buckets, or fail, because of its commas and colons; "
                "use other keys, or a table without a bucket index"
            )
        return buckets

    def find_groups(self, codes: Integers, paths: Sequence[str], buckets: Integers) -> Integers:
        """Return the file group of each row, ``NO_GROUP`` if its bucket has none.

        ``codes``: the row's partition, as an index into ``paths``.
        """
        numbers = np.array([self._number_partition(path) for path in paths], np.int64)[codes]
        slots = numbers * self.rule.buckets + buckets
        at = np.searchsorted(self.slots, slots)
        found = np.full(len(slots), NO_GROUP, np.int64)
        is_known = (numbers >= 0) & (at < len(self.slots))
        is_known[is_known] = self.slots[at[is_known]] == slots[is_known]
        found[is_known] = self.groups[at[is_known]]
        return found

    def find_groups_of(self, path: str, buckets: Sequence[int]) -> dict[int, int]:
        """Return the file group of each of some buckets of a partition, as ``find_groups``."""
        codes = np.zeros(len(buckets), np.int64)
        groups = self.find_groups(codes, [path], np.array(buckets, np.int64))
        return dict(zip(buckets, groups.tolist(), strict=True))

    def _number_partition(self, path: str) -> int:
        at = bisect_left(self.partitions, path)
        return at if self.partitions[at : at + 1] == (path,) else -1
