"""Convert values between Python and Arrow without importing pandas, which takes half a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray


def make_array(values: Any, kind: Any) -> Any:
    """Return values, some of them None, as an array of booleans, numbers or bytes.

    An Arrow array is cast. Raises OverflowError for a number that does not fit the type.

    >>> make_array([3, None], pa.int32()).to_pylist()
    [3, None]
    """
    if isinstance(values, pa.Array):
        return values.cast(kind)
    is_known = np.fromiter((value is not None for value in values), np.bool_, len(values))
    bits = None if is_known.all() else to_arrow(is_known).buffers()[1]
    if pa.types.is_binary(kind):
        return _make_bytes_array(values, bits)
    if pa.types.is_boolean(kind):
        truths = np.fromiter((value is True for value in values), np.bool_, len(values))
        return pa.Array.from_buffers(kind, len(values), [bits, to_arrow(truths).buffers()[1]])
    filled = [0 if value is None else value for value in values]
    data = pa.py_buffer(np.array(filled, kind.to_pandas_dtype()))
    return pa.Array.from_buffers(kind, len(values), [bits, data])


def _make_bytes_array(values: Sequence[bytes | None], bits: Any) -> Any:
    whole = [value or b"" for value in values]
    ends = np.zeros(len(whole) + 1, np.int32)
    np.cumsum(list(map(len, whole)), out=ends[1:])
    data = [bits, pa.py_buffer(ends), pa.py_buffer(b"".join(whole))]
    return pa.Array.from_buffers(pa.binary(), len(whole), data)


def is_true(column: Any) -> NDArray[np.bool_]:
    """Return a mask of the elements of a boolean array that are true and not null."""
    mask: NDArray[np.bool_] = to_numpy(column) & to_numpy(column.is_valid())
    return mask
