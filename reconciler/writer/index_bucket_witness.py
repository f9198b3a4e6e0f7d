"""Check the declared bucket index by the key range of base files.

Hudi stores neither the number of buckets nor the hashed columns. If some key of a base file belongs
to another bucket than its file group, the index is not declared as it is, and rows would be in the
table twice.
"""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.errors import UnsupportedError
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.base_file.settings import MAX_KEY, MIN_KEY
from reconciler.file_slices.merge.range_file import RangeSource, open_range_file, reading_parquet
from reconciler.hudi.files.bucket_ids import read_bucket_numbers
from reconciler.hudi.files.key_buckets import NO_BUCKET, BucketRule
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.parallel import run_parallel
from reconciler.writer.index_buckets import IndexBuckets

#: base files that are read before a write begins
_SAMPLE: Final = 4
#: keys of a base file that are looked at, apart from the least and the greatest
_SAMPLED_KEYS: Final = 100
#: as much as a page of a column has
_READ_BYTES: Final = 1 << 20


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
    check_keys(witness.path, witness.bucket, _read_some_keys(witness, source), rule)


def check_keys(path: str, bucket: int, keys: Any, rule: BucketRule) -> None:
    """Raise UnsupportedError if a key of a file belongs to another bucket than its file group."""
    buckets = rule.find_buckets(keys)
    others = np.flatnonzero((buckets != bucket) & (buckets != NO_BUCKET))
    if len(others):
        first = int(others[0])
        raise UnsupportedError(
            f"{path}: bucket {bucket} has the key {keys[first].as_py()!r}, which "
            f"belongs to bucket {buckets[first]} with {rule.buckets} buckets of "
            f"{', '.join(rule.fields)} (spec.table.index); declare the index as the table's "
            "writers do"
        )


def _read_some_keys(witness: BucketWitness, source: RangeSource) -> Any:
    """Return the least and the greatest key of a file, and its first ones."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    with reading_parquet(witness.path):
        opened = open_range_file(source, witness.path, witness.size)
        file = pq.ParquetFile(opened, buffer_size=_READ_BYTES)  # not a whole column
        footer = file.metadata.metadata or {}
        ends = [footer[name.encode()] for name in (MIN_KEY, MAX_KEY) if name.encode() in footer]
        found = [pa.array([key.decode(errors="replace") for key in ends], pa.string())]
        if RECORD_KEY in file.schema_arrow.names:
            for batch in file.iter_batches(_SAMPLED_KEYS, columns=[RECORD_KEY]):
                found.append(batch.column(0).cast(pa.string()).drop_null())
                break
        for keys in found:
            keys.validate(full=True)  # flipped bits may be no text
    return pa.concat_arrays(found)
