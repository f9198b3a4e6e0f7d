"""Check the declared bucket index by keys of log files, where buckets have no base file.

Writers for Flink make such buckets. As with base files, a key that belongs to another bucket shows
that the index is not declared as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.committed_blocks import CommittedInstants, read_committed_blocks
from reconciler.file_slices.merge.log_records import read_data_batches
from reconciler.hudi.codecs.log_blocks import BlockType
from reconciler.hudi.files.bucket_ids import read_bucket_numbers
from reconciler.hudi.files.key_buckets import BucketRule
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.state.model import TableState
from reconciler.storage.api import Storage
from reconciler.writer.index_bucket_witness import check_keys
from reconciler.writer.slice_logs import list_slice_logs

#: file groups whose log files are read before a write begins, those with fewest bytes
_SAMPLE: Final = 4


def check_logged_sample(
    state: TableState, groups: FileGroupSizes, rule: BucketRule, storage: Storage
) -> None:
    """Check some file groups of log files alone; raises as ``check_keys``, FormatError."""
    alone = np.flatnonzero(groups.is_live & (groups.base < 0) & (groups.log_files > 0))
    if not len(alone):
        return
    chosen = alone[np.argsort(groups.logs[alone], kind="stable")][:_SAMPLE]
    logs = list_slice_logs(state, groups)
    committed = CommittedInstants.from_timeline(state.timeline, table_version=state.table_version)
    for group in (one for one in chosen.tolist() if one in logs):
        (bucket,) = read_bucket_numbers(groups.file_id.slice(group, 1)).tolist()
        paths = logs[group].paths
        for keys in _read_keys(paths, storage, committed):
            check_keys(paths[0], bucket, keys, rule)


def _read_keys(
    paths: Sequence[str], storage: Storage, committed: CommittedInstants
) -> Iterator[Any]:
    """Yield the record keys of the rows in log files."""
    for block in read_committed_blocks(paths, storage.read, committed):
        if block.type is not BlockType.DELETE:
            for batch in read_data_batches(block, {RECORD_KEY}):
                yield batch.column(0).cast(pa.string()).drop_null()
