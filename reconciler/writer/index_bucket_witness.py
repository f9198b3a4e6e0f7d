"""Check the declared bucket index by the key range of base files.

Hudi stores neither the number of buckets nor the hashed columns. A base file names its least and
greatest key in its footer: if one of them belongs to another bucket than the file group, the index
is not declared as it is, and rows would be in the table twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.errors import UnsupportedError
from reconciler.file_slices.base_file.settings import MAX_KEY, MIN_KEY
from reconciler.file_slices.merge.range_file import RangeSource, open_range_file, reading_parquet
from reconciler.hudi.files.bucket_ids import read_bucket_numbers
from reconciler.hudi.files.key_buckets import NO_BUCKET, BucketRule
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.storage.parallel import run_parallel
from reconciler.writer.index_buckets import IndexBuckets

#: base files that are read before a write begins
_SAMPLE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWitness:
    """A base file whose keys show the bucket index. ``bucket``: that of its file group."""

    path: str
    size: int
    bucket: int


@dataclass(slots=True)
class BucketWitnesses:
    """Hands out one base file of each partition, so that one task of the partition checks it."""

    groups: FileGroupSizes
    buckets: IndexBuckets | None
    _taken: set[str] = field(default_factory=set)

    def take(self, path: str, group: int) -> BucketWitness | None:
        """Return a base file of a partition, at first that of a file group that takes rows.

        None at the next call, and if the partition has none. ``group``: -1 for a new one. A write
        that replaces file groups follows none.
        """
        if self.buckets is None or not len(self.buckets.groups) or path in self._taken:
            return None
        self._taken.add(path)
        if group >= 0 and self.groups.base[group] > 0:
            return _make_witness(self.groups, group)
        within = self.groups.partition_range(path)
        is_whole = self.groups.is_live[within] & (self.groups.base[within] > 0)
        others = np.flatnonzero(is_whole) + within.start
        return _make_witness(self.groups, int(others[0])) if len(others) else None


def _make_witness(groups: FileGroupSizes, group: int) -> BucketWitness:
    (bucket,) = read_bucket_numbers(groups.file_id.slice(group, 1)).tolist()
    size = int(groups.base[group])
    return BucketWitness(path=groups.get_base_path(group), size=size, bucket=bucket)


def check_sample(groups: FileGroupSizes, rule: BucketRule, source: RangeSource) -> None:
    """Check some base files of the table; raises as ``check_witness``."""
    bases = np.flatnonzero(groups.is_live & (groups.base > 0))
    chosen = bases[:: max(len(bases) // _SAMPLE, 1)][:_SAMPLE]
    witnesses = [_make_witness(groups, group) for group in chosen.tolist()]
    run_parallel(partial(check_witness, rule=rule, source=source), witnesses, parallelism=_SAMPLE)


def check_witness(witness: BucketWitness, rule: BucketRule, source: RangeSource) -> None:
    """Raise UnsupportedError if a key of the file belongs to another bucket.

    Raises FormatError naming a damaged file.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    with reading_parquet(witness.path):
        file = pq.ParquetFile(open_range_file(source, witness.path, witness.size))
        footer = file.metadata.metadata or {}
    found = [footer[name.encode()] for name in (MIN_KEY, MAX_KEY) if name.encode() in footer]
    keys = [key.decode(errors="replace") for key in found]
    buckets = rule.find_buckets(pa.array(keys, pa.string())).tolist()
    for key, bucket in zip(keys, buckets, strict=True):
        if bucket not in (witness.bucket, NO_BUCKET):
            raise UnsupportedError(
                f"{witness.path}: bucket {witness.bucket} has the key {key!r}, which belongs to "
                f"bucket {bucket} with {rule.buckets} buckets of {', '.join(rule.fields)} "
                "(spec.table.index); declare the index as the table's writers do"
            )
