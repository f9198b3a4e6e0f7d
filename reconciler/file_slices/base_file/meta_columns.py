"""Fill Hudi's meta columns: new values for new rows, kept values for rewritten rows.

Source: HoodieCreateHandle, HoodieRecord.generateSequenceId, SparkSortAndSizeExecutionStrategy with
preserved metadata.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import to_arrow
from reconciler.errors import FormatError
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.lazy_dataclass import dataclass

COMMIT_TIME, SEQUENCE, RECORD_KEY, PARTITION, FILE_NAME = META_COLUMNS
#: as a dictionary, one value for all rows takes no space in memory or in the file
REPEATED_TYPE: Final = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStamp:
    """The instant of a commit and the number of the task that writes a file.

    Files of one commit need different tasks, so that sequence numbers are unique.
    """

    instant: str
    task: int

    def build_sequence_numbers(self, first: int, count: int) -> Any:
        """Return ``count`` sequence numbers, starting with the file's row ``first``.

        >>> CommitStamp(instant="20240101", task=3).build_sequence_numbers(9, 2).to_pylist()
        ['20240101_3_9', '20240101_3_10']
        """
        rows = to_arrow(np.arange(first, first + count)).cast(pa.string())
        return pc.binary_join_element_wise(f"{self.instant}_{self.task}", rows, "_")


def build_meta_column(
    name: str, batch: Any, file_name: str, stamp: CommitStamp | None, first: int
) -> Any:
    """Return one meta column of a batch, whose first row is the file's row ``first``.

    With a stamp, commit time and sequence number come from the stamp. All other values come from
    the rows. Raises FormatError naming the file if a required value is missing.
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
        what = "the column is missing" if column is None else f"{column.null_count} are null"
        raise FormatError(file_name, f"the rows to write need a value in {name}: {what}")
    return column


def repeat_value(value: str, count: int) -> Any:
    """Return an array that repeats one string."""
    codes = to_arrow(np.zeros(count, np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([value]))
