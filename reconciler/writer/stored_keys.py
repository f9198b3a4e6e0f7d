"""Find which keys of a write a base file already holds.

Most files are ruled out by their footer: key range, then bloom filter where that costs less than
reading the keys. Of the others the key column is read. Writers order keys by bytes or as Java does,
so the range says nothing about keys beyond U+FFFF; Hudi's range lookup misses those. Source:
HoodieBloomIndex, HoodieKeyLookupHandle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, get_value_offsets, to_arrow, to_numpy
from reconciler.errors import FormatError
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.base_file.settings import BLOOM, BLOOM_CODE, MAX_KEY, MIN_KEY
from reconciler.file_slices.merge.range_file import RangeSource, open_range_file, reading_parquet
from reconciler.hudi.codecs.bloom import BloomFilter
from reconciler.hudi.table.properties import TableProperties
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass
from reconciler.writer.lookup_costs import FileAnswer, asks_filter
from reconciler.writer.record_keys import KeyGenerator, find_key_generator

#: the first byte of a character beyond U+FFFF
_FIRST_SUPPLEMENTARY: Final = 0xF0
#: rows per batch; for each batch the keys are hashed again
_BATCH_ROWS: Final = 512 * 1024
#: of many keys, about so many are looked up in the filter first
_ASKED_FIRST: Final = 256
#: how many stored record keys are read to see how a table spells them
_SAMPLED_KEYS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredKeys:
    """Keys that a base file holds: their ascending ``index``, and the ``position`` of their rows.

    If several rows have a key, the first one counts. ``answer``: what of the file told it.
    """

    index: Integers
    position: Integers
    answer: FileAnswer

    def __len__(self) -> int:
        return len(self.index)


def find_stored_keys(
    source: RangeSource, path: str, size: int, keys: Any, *, expects_all: bool = False
) -> StoredKeys:
    """Return which of the keys the base file holds.

    ``keys``: a string array of distinct keys without nulls; ``size``: the file's bytes;
    ``expects_all``: the file should have them, so that its filter is not asked. Reads the footer,
    and the key column unless the footer rules out all keys; memory: a batch of it. Raises
    FormatError naming the file for damage, and if it stores no keys.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    none = np.zeros(0, np.int64)
    if not len(keys):
        return StoredKeys(index=none, position=none, answer=FileAnswer.RANGE)
    with reading_parquet(path):
        file = pq.ParquetFile(open_range_file(source, path, size))
        possible, answer = _find_possible_keys(keys, file.metadata, path, expects_all=expects_all)
        if not len(possible):
            return StoredKeys(index=none, position=none, answer=answer)
        if RECORD_KEY not in file.schema_arrow.names:
            raise FormatError(path, f"has no column {RECORD_KEY}", "rewrite the file with Hudi")
        possible_keys = keys.take(to_arrow(possible))
        position = np.full(len(possible), -1, np.int64)
        start = 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=[RECORD_KEY]):
            found = pc.index_in(batch.column(0).cast(pa.string()), value_set=possible_keys)
            rows = np.flatnonzero(to_numpy(found.is_valid()))
            which = to_numpy(found.drop_null())
            first, at = np.unique(which, return_index=True)
            is_first = position[first] < 0
            position[first[is_first]] = start + rows[at[is_first]]
            start += len(batch)
    is_stored = position >= 0
    found, at = possible[is_stored], position[is_stored]
    return StoredKeys(index=found, position=at, answer=FileAnswer.KEYS)


def _find_possible_keys(
    keys: Any, metadata: Any, path: str, *, expects_all: bool
) -> tuple[Integers, FileAnswer]:
    """Return the indices of the keys that the footer does not rule out, and what of it does."""
    footer = metadata.metadata or {}
    possible = np.flatnonzero(_is_in_range(keys, footer))
    text = footer.get(BLOOM.encode())
    if not len(possible):
        return possible, FileAnswer.RANGE
    if text is None or expects_all:
        return possible, FileAnswer.KEYS
    if not asks_filter(len(possible), metadata.num_rows, len(text)):
        return possible, FileAnswer.KEYS
    code = footer.get(BLOOM_CODE.encode(), b"SIMPLE").decode(errors="replace")
    bloom = BloomFilter.parse(text, code, path)
    some = possible[:: -(-len(possible) // _ASKED_FIRST)]
    if len(some) < len(possible) and bloom.contains(keys.take(to_arrow(some))).any():
        return possible, FileAnswer.KEYS  # the file has some of the keys: the filter saves nothing
    return possible[bloom.contains(keys.take(to_arrow(possible)))], FileAnswer.FILTER


def _is_in_range(keys: Any, footer: dict[bytes, bytes]) -> Mask:
    """Return whether each key is in the footer's key range, as far as that is known."""
    least, greatest = footer.get(MIN_KEY.encode()), footer.get(MAX_KEY.encode())
    if (
        least is None
        or greatest is None
        or max(least + greatest, default=0) >= _FIRST_SUPPLEMENTARY
    ):
        return np.ones(len(keys), np.bool_)
    data = keys.cast(pa.binary())
    is_inside = pc.and_(pc.greater_equal(data, least), pc.less_equal(data, greatest))
    return to_numpy(is_inside) | _has_supplementary(keys)


def _has_supplementary(keys: Any) -> Mask:
    """Return whether each key has a character beyond U+FFFF."""
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    characters = np.flatnonzero(data >= _FIRST_SUPPLEMENTARY)
    if not len(characters):
        return np.zeros(len(keys), np.bool_)
    mask: Mask = np.diff(np.searchsorted(characters, get_value_offsets(keys))) > 0
    return mask


def sample_stored_keys(
    source: RangeSource, properties: TableProperties, groups: FileGroupSizes
) -> Sequence[str]:
    """Return some record keys, if the table does not declare how they are spelled."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    is_complex = find_key_generator(properties) is KeyGenerator.COMPLEX
    if not is_complex or len(properties.record_keys) > 1:
        return ()
    for group in np.flatnonzero(groups.base >= 0).tolist():
        path = groups.get_base_path(group)
        with reading_parquet(path):
            file = pq.ParquetFile(open_range_file(source, path, int(groups.base[group])))
            for batch in file.iter_batches(_SAMPLED_KEYS, columns=[RECORD_KEY]):
                keys: list[str] = batch.column(0).cast(pa.string()).drop_null().to_pylist()
                return keys
    return ()
