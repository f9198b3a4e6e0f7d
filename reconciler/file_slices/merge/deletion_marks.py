"""Find deletions by a record's content (DeleteContext, RecordContext.isDeleteRecord)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_arrow, to_numpy
from reconciler.file_slices.merge.ordering import find_column
from reconciler.file_slices.merge.rules import IS_DELETED, OPERATION


def find_deletions(batch: Any, marker: tuple[str, str] | None) -> NDArray[np.bool_]:
    """Return for every row whether it is a deletion.

    ``marker``: a column and the text in it that marks a deletion, or None.
    """
    is_deletion = np.zeros(len(batch), np.bool_)
    flag = find_column(batch, IS_DELETED)
    if flag is not None and pa.types.is_boolean(flag.type):
        is_deletion |= to_numpy(flag.fill_null(False))
    operation = find_column(batch, OPERATION)
    if operation is not None and len(batch):
        is_deletion |= to_numpy(
            pc.is_in(operation.cast(pa.string()), value_set=to_arrow(["D", "-U"]))
        )
    if marker:
        name, text = marker
        column = find_column(batch, name)
        if column is not None:
            is_marked = pc.equal(column.cast(pa.string()), text)
            is_deletion |= to_numpy(is_marked.fill_null(False))
    return is_deletion
