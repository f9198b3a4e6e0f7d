"""Which of the keys of a write a base file holds already.

A footer tells most files apart: its key range, then its bloom filter; only of the others the column
of keys is read. Source: HoodieBloomIndex, HoodieKeyLookupHandle. What Hudi's range lookup misses is
kept here: writers order keys by their bytes or as Java does, so the range says nothing of keys
beyond U+FFFF.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.basefile.form import BLOOM, BLOOM_CODE, GREATEST_KEY, LEAST_KEY
from reconciler.errors import FormatError
from reconciler.hudi.arrow import bounds, flags, integers, numbers
from reconciler.hudi.bloom import BloomFilter
from reconciler.merge.ranges import Ranges, open_range, reading_parquet

_KEY: Final = "_hoodie_record_key"
#: the first byte of a character beyond U+FFFF
_BEYOND: Final = 0xF0
_TOGETHER: Final = 64 * 1024


def held_keys(source: Ranges, path: str, size: int, keys: Any) -> NDArray[np.int64]:
    """Which of the keys the base file holds, as ascending indices.

    ``keys``: a string array of distinct keys without nulls; ``size``: of the file in bytes. Reads
    the footer, and the column of keys where that does not rule all of them out; memory: a batch of
    it. Raises FormatError naming the file for damage, and where it stores no keys.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    if not len(keys):
        return np.zeros(0, np.int64)
    with reading_parquet(path):
        file = pq.ParquetFile(open_range(source, path, size))
        maybe = _not_ruled_out(keys, file.metadata.metadata or {}, path)
        if not len(maybe):
            return maybe
        if _KEY not in file.schema_arrow.names:
            raise FormatError(path, f"has no column {_KEY}", "rewrite the file with Hudi")
        wanted = keys.take(integers(maybe))
        found = np.zeros(len(maybe), np.bool_)
        for batch in file.iter_batches(_TOGETHER, columns=[_KEY]):
            here = pc.index_in(batch.column(0).cast(pa.string()), value_set=wanted).drop_null()
            found[numbers(here)] = True
    return maybe[found]


def _not_ruled_out(keys: Any, footer: dict[bytes, bytes], path: str) -> NDArray[np.int64]:
    """The indices of the keys that the footer leaves possible."""
    maybe = np.flatnonzero(_in_range(keys, footer))
    text = footer.get(BLOOM.encode())
    if text is None or not len(maybe):
        return maybe
    code = footer.get(BLOOM_CODE.encode(), b"SIMPLE").decode(errors="replace")
    bloom = BloomFilter.parse(text, code, path)
    return maybe[bloom.contains(keys.take(integers(maybe)))]


def _in_range(keys: Any, footer: dict[bytes, bytes]) -> NDArray[np.bool_]:
    """Whether each key lies between the least and the greatest one, as far as these say."""
    least, greatest = footer.get(LEAST_KEY.encode()), footer.get(GREATEST_KEY.encode())
    if least is None or greatest is None or max(least + greatest, default=0) >= _BEYOND:
        return np.ones(len(keys), np.bool_)
    data = keys.cast(pa.binary())
    inside = pc.and_(pc.greater_equal(data, least), pc.less_equal(data, greatest))
    return flags(inside) | _beyond(keys)


def _beyond(keys: Any) -> NDArray[np.bool_]:
    """Whether each key has a character beyond U+FFFF."""
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    places = np.flatnonzero(data >= _BEYOND)
    if not len(places):
        return np.zeros(len(keys), np.bool_)
    found: NDArray[np.bool_] = np.diff(np.searchsorted(places, bounds(keys))) > 0
    return found
