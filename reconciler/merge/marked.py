"""Which records are deletions by what is in them (DeleteContext, RecordContext.isDeleteRecord)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.hudi.arrow import flags, strings
from reconciler.merge.ordering import column_at
from reconciler.merge.rules import IS_DELETED, OPERATION


def is_deletion(batch: Any, marker: tuple[str, str] | None) -> NDArray[np.bool_]:
    """Of every row; ``marker``: a column and the text in it that marks a deletion, or None."""
    found = np.zeros(len(batch), np.bool_)
    marked = column_at(batch, IS_DELETED)
    if marked is not None and pa.types.is_boolean(marked.type):
        found |= flags(marked.fill_null(False))
    operation = column_at(batch, OPERATION)
    if operation is not None and len(batch):
        found |= flags(pc.is_in(operation.cast(pa.string()), value_set=strings(["D", "-U"])))
    if marker:
        name, text = marker
        column = column_at(batch, name)
        if column is not None:
            said = pc.equal(column.cast(pa.string()), text)
            found |= flags(said.fill_null(False))
    return found
