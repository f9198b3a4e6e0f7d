"""Build the keys of the metadata table's indexes.

A key is base64 of hashes: XXH64 of the column's name and of the partition path, MD5 of the file's
name. Source: ColumnIndexID, PartitionIndexID, FileIndexID, HoodieMetadataPayload, HashID (Hudi);
HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex.

Source: ColumnIndexID, PartitionIndexID, FileIndexID, HoodieMetadataPayload, HashID (Hudi);
HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.codecs.java_hash import compute_java_hashes

_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
#: Hudi's seed 0xdabadaba, a negative int that Java widens to a long
_SEED: Final = 0xFFFFFFFFDABADABA
_STRIPE: Final = 32


def compute_xxh64(data: bytes, seed: int = 0) -> int:
    """The 64-bit xxHash of ``data``.

    >>> hex(compute_xxh64(b"")), hex(compute_xxh64(b"abc"))
    ('0xef46db3751d8e999', '0x44bc2cf5ad770999')
    """
    at = 0
    if len(data) >= _STRIPE:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + _STRIPE <= len(data):
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_mix_word(lane & _MASK, word) for lane, word in zip(lanes, words, strict=True)]
            at += _STRIPE
        turned = zip(lanes, (1, 7, 12, 18), strict=True)
        total = sum(_rotate(lane, by) for lane, by in turned) & _MASK
        for lane in lanes:
            total = ((total ^ _mix_word(0, lane)) * _P1 + _P4) & _MASK
    else:
        total = (seed + _P5) & _MASK
    return _avalanche(_mix_tail((total + len(data)) & _MASK, data[at:]))


def _mix_tail(total: int, rest: bytes) -> int:
    at = 0
    while at + 8 <= len(rest):
        (word,) = struct.unpack_from("<Q", rest, at)
        total = (_rotate(total ^ _mix_word(0, word), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(rest):
        (half,) = struct.unpack_from("<I", rest, at)
        total = (_rotate(total ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in rest[at:]:
        total = _rotate(total ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    return total


def _avalanche(total: int) -> int:
    total = (total ^ total >> 33) * _P2 & _MASK
    total = (total ^ total >> 29) * _P3 & _MASK
    return total ^ total >> 32


def _mix_word(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


@lru_cache(maxsize=4096)
def hash_name(name: str) -> str:
    """Return the part of a key that stands for a column or a partition path."""
    return base64.b64encode(compute_xxh64(name.encode(), _SEED).to_bytes(8, "big")).decode()


def hash_file_name(name: str) -> str:
    """Return the part of a key that stands for a file's name."""
    return base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()


def build_column_stats_keys(
    columns: Iterable[str], partition: str, names: Sequence[str]
) -> list[str]:
    """Return the keys of every column of every file of a partition."""
    middle = hash_name(partition)
    files = [hash_file_name(name) for name in names]
    heads = [hash_name(column) + middle for column in columns]
    return [head + file for head in heads for file in files]


def build_bloom_filter_keys(partition: str, names: Iterable[str]) -> list[str]:
    """Return the keys of the bloom filters of base files of a partition."""
    head = hash_name(partition)
    return [head + hash_file_name(name) for name in names]


def split_by_file_group(keys: Sequence[str], groups: int) -> list[list[str]]:
    """Return the keys of each file group; all keys must be ASCII and of one length.

    A key's group is the absolute value of its Java ``hashCode`` modulo the number of groups.

    >>> split_by_file_group(["aa", "ab", "ac"], 2)
    [['aa', 'ac'], ['ab']]
    """
    if not keys:
        return [[] for _ in range(groups)]
    letters = np.frombuffer("".join(keys).encode("ascii"), np.uint8).reshape(len(keys), -1)
    hashes = np.zeros(len(keys), np.uint32)
    for column in letters.T:
        hashes = hashes * np.uint32(31) + column
    chosen = np.abs(hashes.view(np.int32).astype(np.int64)) % groups
    found: list[list[str]] = [[] for _ in range(groups)]
    for key, group in zip(keys, chosen.tolist(), strict=True):
        found[group].append(key)
    return found


def find_record_groups(keys: Any, groups: int) -> NDArray[np.int64]:
    """Return the file group of each key of a string array without nulls.

    >>> import pyarrow as pa
    >>> find_record_groups(pa.array(["aa", "ab", "b", "é😀"]), 2).tolist()
    [0, 1, 0, 0]
    """
    return np.abs(compute_java_hashes(keys).astype(np.int64)) % groups
