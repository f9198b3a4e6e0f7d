"""Hudi's own columns: new ones for new rows, kept ones for rows that are only rewritten.

Source: HoodieCreateHandle, HoodieRecord.generateSequenceId, SparkSortAndSizeExecutionStrategy with
preserved metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import to_integer_array
from reconciler.errors import FormatError
from reconciler.file_slices.merge.avro_schema import META_COLUMNS

COMMIT_TIME, SEQUENCE, RECORD_KEY, PARTITION, FILE_NAME = META_COLUMNS
#: one value for all rows costs nothing as a dictionary, in memory and in the file
REPEATED_TYPE: Final = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStamp:
    """For rows that this commit brings: its instant, and the number of the task that writes them.

    Files of one commit need different tasks, so that sequence numbers are unique.
    """

    instant: str
    task: int

    def build_sequence_numbers(self, first: int, count: int) -> Any:
        """Sequence numbers of so many rows, the file's ``first`` one on.

        >>> Stamp(instant="20240101", task=3).sequence(9, 2).to_pylist()
        ['20240101_3_9', '20240101_3_10']
        """
        rows = to_integer_array(np.arange(first, first + count)).cast(pa.string())
        return pc.binary_join_element_wise(f"{self.instant}_{self.task}", rows, "_")


def build_meta_column(
    name: str, batch: Any, file_name: str, stamp: CommitStamp | None, first: int
) -> Any:
    """One of the meta columns of rows; the file's ``first`` row is the batch's first.

    With a stamp, commit time and sequence number are its own; else they and all others are the
    rows'. Raises FormatError naming the file where the rows lack what must be kept.
    """
    if name == FILE_NAME:
        return repeat_value(file_name, len(batch))
    if stamp is not None and name == COMMIT_TIME:
        return repeat_value(stamp.instant, len(batch))
    if stamp is not None and name == SEQUENCE:
        return stamp.build_sequence_numbers(first, len(batch))
    at = batch.schema.get_field_index(name)
    column = None if at < 0 else batch.column(at)
    if column is None or column.null_count:
        what = "there is none" if column is None else f"{column.null_count} are null"
        raise FormatError(file_name, f"rows to be written need a value in {name}: {what}")
    return column


def repeat_value(value: str, count: int) -> Any:
    """One string for so many rows."""
    codes = to_integer_array(np.zeros(count, np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([value]))
