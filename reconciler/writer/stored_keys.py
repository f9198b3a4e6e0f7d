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

from reconciler.arrays import get_value_offsets, to_integer_array, to_numpy_bools, to_numpy_numbers
from reconciler.errors import FormatError
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.base_file.settings import BLOOM, BLOOM_CODE, MAX_KEY, MIN_KEY
from reconciler.file_slices.merge.range_file import RangeSource, open_range_file, reading_parquet
from reconciler.hudi.codecs.bloom import BloomFilter

#: the first byte of a character beyond U+FFFF
_FIRST_SUPPLEMENTARY: Final = 0xF0
_BATCH_ROWS: Final = 64 * 1024


def find_stored_keys(source: RangeSource, path: str, size: int, keys: Any) -> NDArray[np.int64]:
    """Which of the keys the base file holds, as ascending indices.

    ``keys``: a string array of distinct keys without nulls; ``size``: of the file in bytes. Reads
    the footer, and the column of keys where that does not rule all of them out; memory: a batch of
    it. Raises FormatError naming the file for damage, and where it stores no keys.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    if not len(keys):
        return np.zeros(0, np.int64)
    with reading_parquet(path):
        file = pq.ParquetFile(open_range_file(source, path, size))
        maybe = _find_possible_keys(keys, file.metadata.metadata or {}, path)
        if not len(maybe):
            return maybe
        if RECORD_KEY not in file.schema_arrow.names:
            raise FormatError(path, f"has no column {RECORD_KEY}", "rewrite the file with Hudi")
        wanted = keys.take(to_integer_array(maybe))
        found = np.zeros(len(maybe), np.bool_)
        for batch in file.iter_batches(_BATCH_ROWS, columns=[RECORD_KEY]):
            here = pc.index_in(batch.column(0).cast(pa.string()), value_set=wanted).drop_null()
            found[to_numpy_numbers(here)] = True
    return maybe[found]


def _find_possible_keys(keys: Any, footer: dict[bytes, bytes], path: str) -> NDArray[np.int64]:
    """The indices of the keys that the footer leaves possible."""
    maybe = np.flatnonzero(_is_in_range(keys, footer))
    text = footer.get(BLOOM.encode())
    if text is None or not len(maybe):
        return maybe
    code = footer.get(BLOOM_CODE.encode(), b"SIMPLE").decode(errors="replace")
    bloom = BloomFilter.parse(text, code, path)
    return maybe[bloom.contains(keys.take(to_integer_array(maybe)))]


def _is_in_range(keys: Any, footer: dict[bytes, bytes]) -> NDArray[np.bool_]:
    """Whether each key lies between the least and the greatest one, as far as these say."""
    least, greatest = footer.get(MIN_KEY.encode()), footer.get(MAX_KEY.encode())
    if (
        least is None
        or greatest is None
        or max(least + greatest, default=0) >= _FIRST_SUPPLEMENTARY
    ):
        return np.ones(len(keys), np.bool_)
    data = keys.cast(pa.binary())
    inside = pc.and_(pc.greater_equal(data, least), pc.less_equal(data, greatest))
    return to_numpy_bools(inside) | _has_supplementary(keys)


def _has_supplementary(keys: Any) -> NDArray[np.bool_]:
    """Whether each key has a character beyond U+FFFF."""
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    places = np.flatnonzero(data >= _FIRST_SUPPLEMENTARY)
    if not len(places):
        return np.zeros(len(keys), np.bool_)
    found: NDArray[np.bool_] = np.diff(np.searchsorted(places, get_value_offsets(keys))) > 0
    return found
