"""Build, read and query the bloom filters over record keys in the footers of base files.

SIMPLE is one array of bits. DYNAMIC_V0 is several such arrays, called rows here; each takes a fixed
number of keys. Both match the filters of real Hudi bit for bit.

Source: org.apache.hudi.common.bloom (SimpleBloomFilter, HoodieDynamicBoundedBloomFilter,
InternalDynamicBloomFilter, BloomFilterUtils) and its MurmurHash, which is Hadoop's.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Sequence
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask, get_value_offsets
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.lazy_dataclass import dataclass

BloomCode = Literal["SIMPLE", "DYNAMIC_V0"]
Words = NDArray[np.uint32]

_VERSION: Final = -1
_MURMUR: Final = 1
#: hash functions for the smallest error rate that a double holds; damage can ask for any number
_MOST_HASHES: Final = 1075
_HEAD: Final = struct.Struct(">iibi")  # version, number of hashes, hash function, bits
_ROWS: Final = struct.Struct(">iii")  # keys per row, keys in the last row, rows
_FACTOR: Final = np.uint32(0x5BD1E995)
#: keys hashed per batch: their arrays fit the processor's cache
_BATCH_KEYS: Final = 16_000
#: filters with more bits are packed while built, which is slower than one byte per bit
_MAX_FLAGS: Final = 1 << 26
_INT_MAX: Final = 2**31 - 1
#: numbers below this are sorted by radix
_MAX_RADIX: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomShape:
    """The parameters of a filter.

    ``entries``: keys per row. ``max_entries``: keys after which rows are reused. Both are 0 for
    SIMPLE, whose one row takes all keys.
    """

    code: BloomCode
    bits: int
    hashes: int
    entries: int = 0
    max_entries: int = 0

    @classmethod
    def from_options(
        cls,
        code: BloomCode = "DYNAMIC_V0",
        *,
        entries: int = 60_000,
        error: float = 1e-9,
        max_entries: int = 100_000,
    ) -> Self:
        """Compute the shape from Hudi's writer options; the defaults are Hudi's.

        ``entries`` is hoodie.index.bloom.num_entries, ``error`` is hoodie.index.bloom.fpp,
        ``max_entries`` is hoodie.bloom.index.filter.dynamic.max.entries. Raises ValueError for
        values Hudi cannot use.

        >>> BloomShape.from_options("SIMPLE")
        BloomShape(code='SIMPLE', bits=2587966, hashes=30, entries=0, max_entries=0)
        """
        if entries < 1 or not 0 < error < 1:
            raise ValueError(
                f"a bloom filter cannot have {entries} entries and an error rate of {error}"
            )
        bits = math.ceil(entries * (-math.log(error) / (math.log(2) * math.log(2))))
        if bits > _INT_MAX:
            raise ValueError(f"a bloom filter of {bits} bits exceeds Hudi's limit")
        hashes = math.ceil(math.log(2) * bits / entries)
        if code == "SIMPLE":
            return cls(code=code, bits=bits, hashes=hashes)
        return cls(code=code, bits=bits, hashes=hashes, entries=entries, max_entries=max_entries)

    @property
    def rows(self) -> int:
        """The largest number of rows."""
        return max(1, -(-self.max_entries // self.entries)) if self.entries else 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BloomFilter:
    """A stored filter. ``rows``: 8 bits per byte, the lowest bit first.

    ``last_row_count``: number of keys in the last row of a DYNAMIC_V0 filter.
    """

    shape: BloomShape
    rows: tuple[NDArray[np.uint8], ...]
    last_row_count: int = 0

    @classmethod
    def parse(cls, text: str | bytes, code: str, path: str, *, max_entries: int = 100_000) -> Self:
        """Decode a footer's base64 text and type code; raises FormatError naming ``path``.

        ``max_entries`` is not stored in the file. It matters only for building another filter of
        the same shape.
        """
        with decoding(path, "the bloom filter"):
            require(code in ("SIMPLE", "DYNAMIC_V0"), f"unknown filter type {code!r}")
            data = base64.b64decode(text, validate=True)
            bits, hashes, at = _read_head(data, 0)
            if code == "SIMPLE":
                shape = BloomShape(code="SIMPLE", bits=bits, hashes=hashes)
                last, count, at = 0, 1, 0
            else:
                entries, last, count = _ROWS.unpack_from(data, at)
                require(entries > 0 and last >= 0 and count > 0, "a key count is negative or zero")
                shape = BloomShape(
                    code="DYNAMIC_V0",
                    bits=bits,
                    hashes=hashes,
                    entries=entries,
                    max_entries=max_entries,
                )
                at += _ROWS.size
            rows = []
            for _ in range(count):
                row, at = _read_row(data, at, bits)
                rows.append(row)
            require(at == len(data), f"{len(data) - at} extra bytes at the end")
            return cls(shape=shape, rows=tuple(rows), last_row_count=last)

    @property
    def text(self) -> str:
        """The base64 text for a footer."""
        shape = self.shape
        head = _HEAD.pack(_VERSION, shape.hashes, _MURMUR, shape.bits)
        parts = [head + row.tobytes() for row in self.rows]
        if shape.code == "DYNAMIC_V0":
            parts.insert(0, head + _ROWS.pack(shape.entries, self.last_row_count, len(self.rows)))
        return base64.b64encode(b"".join(parts)).decode()

    def has_form_of(self, count: int) -> bool:
        """Return whether a filter of so many keys has as many rows and as many keys in the last."""
        if not self.shape.entries:
            return len(self.rows) == 1
        rows = min(max(-(-count // self.shape.entries), 1), self.shape.rows)
        last = count - (rows - 1) * self.shape.entries
        return (len(self.rows), self.last_row_count) == (rows, last)

    def contains(self, keys: Any) -> Mask:
        """Return for each key of a string array without nulls whether the filter may hold it."""
        result = np.zeros(len(keys), np.bool_)
        for start in range(0, len(keys), _BATCH_KEYS):
            batch = _HashedKeys.from_array(keys.slice(start, _BATCH_KEYS))
            may_hold = [np.ones(len(batch.order), np.bool_) for _ in self.rows]
            for positions in batch.positions(self.shape):
                for has, row in zip(may_hold, self.rows, strict=True):
                    bit = row[positions >> 3] >> (positions & 7).astype(np.uint8) & 1
                    np.logical_and(has, bit, out=has)
            result[start + batch.order] = np.logical_or.reduce(may_hold)
        return result


def infer_type_code(text: str, path: str) -> BloomCode:
    """Return the type code of a footer's text that names no type; raises FormatError."""
    with decoding(path, "the bloom filter"):
        data = base64.b64decode(text, validate=True)
        bits, _hashes, at = _read_head(data, 0)
        return "SIMPLE" if len(data) == at + -(-bits // 8) else "DYNAMIC_V0"


def _read_head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the number of bits, the number of hashes and the offset after the head."""
    version, hashes, kind, bits = _HEAD.unpack_from(data, at)
    require(version == _VERSION, f"unknown version {version}")
    require(kind == _MURMUR, f"unknown hash function {kind}")
    require(bits > 0 and 0 < hashes <= _MOST_HASHES, f"{hashes} hashes over {bits} bits")
    return bits, hashes, at + _HEAD.size


def _read_row(data: bytes, at: int, expected_bits: int) -> tuple[NDArray[np.uint8], int]:
    bits, _, at = _read_head(data, at)
    require(bits == expected_bits, f"a row has {bits} bits, expected {expected_bits}")
    end = at + -(-bits // 8)
    require(end <= len(data), "the filter is truncated")
    return np.frombuffer(data, np.uint8, end - at, at), end


class BloomBuilder:
    """Builds the filter that Hudi makes of the same keys, added in the order of the file's rows.

    Memory: one byte per bit of every row in use, or one bit if that would exceed 64 MiB.
    """

    def __init__(self, shape: BloomShape) -> None:
        self._shape = shape
        self._is_wide = shape.bits * shape.rows <= _MAX_FLAGS
        self._width = shape.bits if self._is_wide else -(-shape.bits // 8)
        self._flags = np.zeros(self._width, np.uint8)  # all rows, one after the other
        self._rows = 1
        self._count = 0

    @classmethod
    def from_filter(cls, known: BloomFilter, count: int) -> Self:
        """Return the builder of a filter, which has ``count`` keys already."""
        builder = cls(known.shape)
        builder._rows, builder._count = len(known.rows), count
        rows = known.rows
        if builder._is_wide:
            bits = known.shape.bits
            rows = tuple(np.unpackbits(row, count=bits, bitorder="little") for row in rows)
        builder._flags = np.concatenate(rows)
        return builder

    def add(self, keys: Any) -> None:
        """Add the keys of a string array without nulls."""
        for start in range(0, len(keys), _BATCH_KEYS):
            self._add(keys.slice(start, _BATCH_KEYS))

    @property
    def text_bytes(self) -> int:
        """The length of the current filter's text."""
        size = self._rows * (_HEAD.size + -(-self._shape.bits // 8))
        if self._shape.entries:
            size += _HEAD.size + _ROWS.size
        return -(-size // 3) * 4

    def build(self) -> BloomFilter:
        """Return the filter of all keys added so far; more keys can still be added."""
        rows = self._flags[: self._rows * self._width].reshape(self._rows, self._width)
        packed = np.packbits(rows, axis=1, bitorder="little") if self._is_wide else rows.copy()
        earlier_keys = (self._rows - 1) * self._shape.entries
        last = self._count - earlier_keys if self._shape.entries else 0
        return BloomFilter(shape=self._shape, rows=tuple(packed), last_row_count=last)

    def _add(self, keys: Any) -> None:
        batch = _HashedKeys.from_array(keys)
        row_numbers = self._assign_rows(len(keys))[batch.order]
        self._grow(int(row_numbers.max(initial=0)) + 1)
        self._count += len(keys)
        starts = row_numbers * self._width
        at = np.empty(len(keys), np.int64)  # the index array, allocated once
        for positions in batch.positions(self._shape):
            if self._is_wide:
                np.add(starts, positions, out=at)
                self._flags[at] = 1
            else:
                bit = np.uint8(1) << (positions & 7).astype(np.uint8)
                np.bitwise_or.at(self._flags, starts + (positions >> 3), bit)

    def _grow(self, rows: int) -> None:
        """Make room for this many rows, at least doubling the current room."""
        self._rows = max(self._rows, rows)
        room = len(self._flags) // self._width
        if rows > room:
            flags = np.zeros(min(self._shape.rows, max(rows, 2 * room)) * self._width, np.uint8)
            flags[: len(self._flags)] = self._flags
            self._flags = flags

    def _assign_rows(self, count: int) -> Integers:
        """Return the row of each of the next ``count`` keys.

        Rows are filled in order, then reused in turn. The first two keys that find all rows full
        both go to the first row.
        """
        at = np.arange(self._count, self._count + count)
        if not self._shape.entries:
            return np.zeros(count, np.int64)
        full = self._shape.rows * self._shape.entries
        reused = np.maximum(at - full - 1, 0) % self._shape.rows
        return np.where(at < full, at // self._shape.entries, reused)


@dataclass(frozen=True, slots=True)
class _HashedKeys:
    """Keys as columns of 4-byte words, longest first, hashed as far as the seed is not needed.

    ``order``: index of each key in the input. ``words[j]``: word j of the keys that have one; these
    keys come first. ``tails``: the bytes after the last word, folded into a number. ``factors``:
    the multiplier applied after the tail, 1 without a tail.
    """

    order: Integers
    lengths: Words
    words: Sequence[Words]
    tails: Words
    factors: Words

    @classmethod
    def from_array(cls, keys: Any) -> Self:
        ends = get_value_offsets(keys).astype(np.int64)
        lengths = np.diff(ends)
        order = _order_by_words(lengths >> 2)
        starts, lengths = ends[:-1][order], lengths[order]
        data = np.frombuffer((keys.buffers()[2] if len(keys) else None) or b"", np.uint8)
        counts = lengths >> 2
        words = []
        for at in range(int(counts.max(initial=0))):
            has = int(np.searchsorted(-counts, -at, "left"))
            words.append(_mix(_read_words(data, starts[:has] + 4 * at)))
        tail_lengths = lengths & 3
        return cls(
            order=order,
            lengths=lengths.astype(np.uint32),
            words=words,
            tails=_fold_tails(data, starts + lengths, tail_lengths),
            factors=np.where(tail_lengths > 0, _FACTOR, np.uint32(1)).astype(np.uint32),
        )

    def positions(self, shape: BloomShape) -> Any:
        """Yield the bit of every key for each hash function; the yielded array is reused."""
        bits = np.uint32(shape.bits)
        hashed = np.zeros(len(self.order), np.uint32)
        places, whole = np.empty_like(hashed), np.empty_like(hashed)
        for _ in range(shape.hashes):
            self._hash(hashed, whole)
            np.abs(
                hashed.view(np.int32), out=places.view(np.int32)
            )  # abs(-2**31) is 2**31 as unsigned
            np.floor_divide(places, bits, out=whole)
            whole *= bits
            places -= whole
            yield places

    def _hash(self, seed: Words, spare: Words) -> None:
        """Compute MurmurHash.hash in place, with one seed per key."""
        seed ^= self.lengths
        for word in self.words:
            has = seed[: len(word)]
            has *= _FACTOR
            has ^= word
        seed ^= self.tails
        seed *= self.factors
        for shift, factor in ((13, _FACTOR), (15, np.uint32(1))):
            np.right_shift(seed, np.uint32(shift), out=spare)
            seed ^= spare
            if factor != 1:
                seed *= factor


def _order_by_words(counts: Integers) -> Integers:
    """Return the rows sorted by their number of words, most first; equal rows keep their order."""
    missing = int(counts.max(initial=0)) - counts
    if missing.max(initial=0) < _MAX_RADIX:
        missing = missing.astype(np.uint16)  # numpy sorts these by radix, three times as fast
    order: Integers = np.argsort(missing, kind="stable")
    return order


def _read_words(data: NDArray[np.uint8], at: Integers) -> Words:
    """Return four bytes from each offset as a little-endian number."""
    whole = np.ndarray((max(len(data) - 3, 0),), "<u4", data, strides=(1,))
    return whole[at].astype(np.uint32, copy=False)


def _mix(words: Words) -> Words:
    words *= _FACTOR
    words ^= words >> np.uint32(24)
    words *= _FACTOR
    return words


def _fold_tails(data: NDArray[np.uint8], ends: Integers, tail_lengths: Integers) -> Words:
    """Fold the last one to three bytes of each key, signed as Java's bytes are."""
    signed = data.view(np.int8)
    out = np.zeros(len(ends), np.int32)
    for distance, shift in ((1, 0), (2, 8), (3, 16)):
        has = np.flatnonzero(tail_lengths >= distance)
        out[has] ^= signed[ends[has] - distance].astype(np.int32) << shift
    return out.view(np.uint32)
