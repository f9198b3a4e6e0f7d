"""Read which bucket index a table has, before a write: from the spec, and from its file ids.

Hudi's properties name no index, so the spec declares it, and the file ids of the table show whether
that may be true.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.arrays import Integers, to_arrow
from reconciler.errors import UnsupportedError
from reconciler.hudi.files.bucket_ids import are_bucket_ids, find_agreed_ids, read_bucket_numbers
from reconciler.hudi.files.key_buckets import BucketRule
from reconciler.hudi.table.properties import TableProperties
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.spec.model import BucketIndex, TableSpec
from reconciler.storage.api import Storage
from reconciler.storage.paths import list_if_exists
from reconciler.writer.index_bucket_witness import check_sample
from reconciler.writer.request import WriteMode

#: a folder for each kind of index whose buckets are not the hash alone (HoodieTableMetaClient)
_INDEX_FOLDER: Final = ".hoodie/.bucket_index"
_UNSUPPORTED: Final = {
    "consistent_hashing_metadata": (
        "a consistent-hashing bucket index, whose buckets are split and merged"
    ),
    "partition_bucket_index_meta": (
        "a bucket index with expressions for partitions, which have different numbers of buckets"
    ),
}


def read_bucket_rule(
    storage: Storage,
    properties: TableProperties,
    spec: TableSpec,
    groups: FileGroupSizes,
    mode: WriteMode,
) -> BucketRule | None:
    """Return the rule by which rows go to buckets; None for a table without a bucket index.

    Raises UnsupportedError for an index that this version cannot write, or that is not declared,
    and for file groups that contradict the declared one. A write that replaces all file groups may
    change it. Raises FormatError for damaged base files, StorageError.
    """
    name = properties.table_name
    for entry in list_if_exists(storage, _INDEX_FOLDER):
        if entry.name in _UNSUPPORTED:
            raise UnsupportedError(
                f"table {name} has {_UNSUPPORTED[entry.name]}; write it with Hudi"
            )
    declared = None if spec.table is None else spec.table.index
    if mode is WriteMode.DELETE_PARTITION:
        return None
    if declared is None:
        if mode is not WriteMode.INSERT_OVERWRITE_TABLE:
            _check_no_buckets(name, groups)
        return None
    rule = make_bucket_rule(declared, properties)
    if mode is not WriteMode.INSERT_OVERWRITE_TABLE:
        _check_groups(name, groups, rule)
        check_sample(groups, rule, storage)
    return rule


def make_bucket_rule(declared: BucketIndex, properties: TableProperties) -> BucketRule:
    """Return the rule of a declared index for a table."""
    return BucketRule(
        buckets=declared.buckets,
        fields=declared.keys or properties.record_keys,
        record_key=properties.record_keys,
        table_version=properties.table_version,
    )


def _check_no_buckets(name: str, groups: FileGroupSizes) -> None:
    """Raise UnsupportedError for file ids of a bucket index."""
    live = np.flatnonzero(groups.is_live)
    if are_bucket_ids(groups.file_id.take(to_arrow(live))):
        most = int(read_bucket_numbers(groups.file_id)[live].max()) + 1
        raise UnsupportedError(
            f"table {name} has a bucket index (file groups such as "
            f"{groups.get_file_id(int(live[0]))}), and the spec does not declare it; declare "
            "spec.table with index: {type: bucket, buckets: N, keys: [...]}, as the table's "
            f"writers do (hoodie.bucket.index.num.buckets, at least {most}, and "
            "hoodie.bucket.index.hash.field)"
        )


def _check_groups(name: str, groups: FileGroupSizes, rule: BucketRule) -> None:
    """Raise UnsupportedError unless each file group is one bucket of the declared index."""
    live = np.flatnonzero(groups.is_live)
    numbers = read_bucket_numbers(groups.file_id)[live]
    where = f"table {name} is declared with {rule.buckets} buckets (spec.table.index), and"
    if others := _describe(groups, live[numbers < 0]):
        raise UnsupportedError(
            f"{where} {others} has no number of a bucket: another index placed its rows; leave out "
            "index, or rewrite the table with Hudi's bucket index"
        )
    if others := _describe(groups, live[numbers >= rule.buckets]):
        raise UnsupportedError(
            f"{where} {others} is none of them; declare the number of the table's writers "
            "(hoodie.bucket.index.num.buckets)"
        )
    slots = groups.partition[live].astype(np.int64) * rule.buckets + numbers
    order = np.argsort(slots, kind="stable")
    twice = np.flatnonzero(slots[order][1:] == slots[order][:-1])
    if len(twice):
        first, second = live[order[twice[0] : twice[0] + 2]].tolist()
        raise UnsupportedError(
            f"table {name}: {_describe(groups, np.array([first]))} and "
            f"{groups.get_file_id(second)} are the same bucket, so Hudi's writers fail too; "
            "overwrite the partition with Hudi, or roll back the write that made the second one"
        )
    agreed = find_agreed_ids(groups.file_id.take(to_arrow(live)))
    if others := _describe(groups, live[agreed]):
        raise UnsupportedError(
            f"table {name}: {others} is of writers with non-blocking concurrency control, which "
            "take no lock; write it with Hudi"
        )


def _describe(groups: FileGroupSizes, found: Integers) -> str:
    """Return the first of some file groups for a message; empty without any."""
    if not len(found):
        return ""
    first = int(found[0])
    return f"file group {groups.get_file_id(first)} of partition {groups.get_partition(first)!r}"
