"""Read the record keys that partitions hold in log files, for the record index."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from reconciler.hudi.files.names import make_file_path
from reconciler.planners.newest_slices import find_candidates
from reconciler.rewrite.facts import read_table_facts
from reconciler.state.model import TableState
from reconciler.storage.api import Storage

_KEY: Final = "_hoodie_record_key"


def read_log_keys(storage: Storage, state: TableState, paths: Collection[str]) -> Iterator[Any]:
    """Yield the record keys of the file slices with log files in some partitions, in batches.

    Keys that log files have deleted are not among them: the index forgot them with their deletion.
    Raises UnsupportedError if log files of the table cannot be merged, FormatError, StorageError.
    """
    candidates = find_candidates(state)
    files = candidates.view.files
    is_due = np.array([path in paths for path in files.partitions], np.bool_)
    has_logs = np.bincount(candidates.log_slice, minlength=len(candidates)) > 0
    slices = np.flatnonzero(is_due[candidates.partition] & has_logs) if len(is_due) else ()
    if not len(slices):
        return
    facts = read_table_facts(storage, state)
    if _KEY not in facts.scan.table_schema.names:
        raise UnsupportedError(f"table {state.table_name} has no column {_KEY}")
    options = SliceReadOptions(
        rules=facts.scan.rules,
        schema=facts.scan.table_schema,
        committed=facts.scan.committed,
        columns=(_KEY,),
    )
    names = files.name
    for number in slices:
        partition = files.partitions[candidates.partition[number]]
        start, end = np.searchsorted(candidates.log_slice, [number, number + 1])
        logs = candidates.log_row[start:end].tolist()
        base = int(candidates.base_row[number])
        given = SliceFiles(
            base=make_file_path(partition, names[base].as_py()) if base >= 0 else None,
            base_size=int(files.size[base]) if base >= 0 else 0,
            logs=tuple(make_file_path(partition, names[row].as_py()) for row in logs),
        )
        for batch in read_slice(given, options, storage):
            yield batch.column(0).cast(pa.string())
