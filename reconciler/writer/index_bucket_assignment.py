"""Assign the rows of a write to the file groups of a bucket index: one for each of its buckets.

No file is too full to take rows, and none is too small: the hash of a key alone decides. On a
merge-on-read table, rows of a bucket that has files go to a log file, and the first rows of a
bucket to a base file. Source: SparkBucketIndexPartitioner, BaseSparkDeltaCommitActionExecutor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from reconciler.arrays import Integers
from reconciler.hudi.files.bucket_ids import read_bucket_numbers
from reconciler.layout.sizing.assign import BucketAssignment, Workload
from reconciler.layout.sizing.assignment_rules import CopyOnWrite, TableKind
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.writer.index_buckets import NO_GROUP, IndexBuckets


def assign_to_buckets(
    groups: FileGroupSizes,
    workload: Workload,
    kind: TableKind,
    buckets: IndexBuckets,
    inserts: Mapping[tuple[str, int], int],
) -> BucketAssignment:
    """Return an assignment in which each bucket of the index has one file group.

    ``inserts``: new rows by partition and bucket; in a partition, they are in the order of their
    buckets.
    """
    by_path: dict[str, dict[int, int]] = defaultdict(dict)
    for (path, number), rows in inserts.items():
        by_path[path][number] = rows
    updated = dict(zip(workload.group.tolist(), workload.updates.tolist(), strict=True))
    changed: dict[str, list[int]] = defaultdict(list)
    for group in updated:
        changed[groups.get_partition(group)].append(group)
    listed: list[tuple[int, int, int, int]] = []
    own = read_bucket_numbers(groups.file_id)
    for code, path in enumerate(workload.partitions):
        rows_of = by_path[path]
        taken = buckets.find_groups_of(path, sorted(rows_of))
        listed += [(code, at, number, rows_of[number]) for number, at in taken.items()]
        alone = sorted(set(changed[path]).difference(taken.values()))
        listed += [(code, at, int(own[at]), 0) for at in alone]
    columns: Integers = np.array(listed, np.int64).reshape(-1, 4).T
    partition, group, bucket, rows = columns
    size = np.append(groups.size, 0)[group]
    return BucketAssignment(
        partitions=workload.partitions,
        partition=partition.astype(np.int32),
        group=group,
        inserts=rows,
        updates=np.array([updated.get(one, 0) for one in group.tolist()], np.int64),
        appends=(group != NO_GROUP) & (not isinstance(kind, CopyOnWrite)),
        size=size,
        expected_size=size,
        index_bucket=bucket,
    )


def make_tagged_workload(assignment: BucketAssignment) -> Workload:
    """Return the workload as Hudi announces it: all rows of a bucket with files are updates.

    Whoever rewrites such a file group then knows of the rows that it is going to get.
    """
    is_new = assignment.is_new
    count = len(assignment.partitions)
    inserts = np.bincount(
        assignment.partition[is_new], weights=assignment.inserts[is_new], minlength=count
    )
    rows = assignment.inserts + assignment.updates
    return Workload(
        partitions=assignment.partitions,
        inserts=inserts.astype(np.int64),
        group=assignment.group[~is_new],
        updates=rows[~is_new],
        growth=np.zeros(int((~is_new).sum()), np.int64),
    )
