"""Split the names of base files that all have one shape, in a third of a pattern's time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import get_value_offsets, to_numpy

_UNDERSCORE: Final = ord("_")
_BLOCK: Final = 256 * 1024


def split_uniform_names(names: Any, extension: str) -> tuple[Any, Any] | None:
    """Return the file ids and the instants of names ``id_token_instant`` with an extension.

    Returns None unless all ids have one length, and all instants, as those of one Hudi have. What
    it returns is what the pattern of ``table_files`` finds. ``names``: a string array without
    nulls; ``extension`` includes its dot.
    """
    if not len(names):
        return None
    file_id, _, rest = names[0].as_py().partition("_")
    instant = rest.rpartition("_")[2].removesuffix(extension)
    head, tail = len(file_id.encode()), len((instant + extension).encode())
    if not head or not instant or not _are_uniform(names, head, tail, extension):
        return None
    data = names.cast(pa.binary())
    instants = pc.binary_slice(data, -tail, -len(extension.encode())).cast(pa.string())
    if not pc.all(pc.ascii_is_decimal(instants)).as_py():
        return None
    return pc.binary_slice(data, 0, head).cast(pa.string()), instants


def _are_uniform(names: Any, head: int, tail: int, extension: str) -> bool:
    """Return whether all names have an id of ``head`` bytes, a token, and a tail of ``tail`` bytes.

    The tail is the instant with the extension. Nothing else has an underscore, dot or slash.
    """
    offsets = get_value_offsets(names).astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    if (ends - starts <= head + tail + 2).any():
        return False
    data = np.frombuffer(names.buffers()[2], np.uint8)
    of_extension = extension.encode().count
    underscores, dots, slashes = _count(data[starts[0] : ends[-1]], b"_./")
    return (
        underscores == len(names) * (2 + of_extension(b"_"))
        and dots == len(names) * of_extension(b".")
        and not slashes
        and bool((data[starts + head] == _UNDERSCORE).all())
        and bool((data[ends - tail - 1] == _UNDERSCORE).all())
        and bool(to_numpy(pc.ends_with(names, extension)).all())
    )


def _count(data: NDArray[np.uint8], signs: bytes) -> list[int]:
    """Return how often each of some bytes is in the data; block by block, as caches hold blocks."""
    blocks = [data[start : start + _BLOCK] for start in range(0, len(data), _BLOCK)]
    return [sum(int(np.count_nonzero(block == sign)) for block in blocks) for sign in signs]
