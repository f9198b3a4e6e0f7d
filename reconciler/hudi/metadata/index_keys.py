"""Build the keys of the metadata table's indexes.

A key is base64 of hashes: XXH64 of the column's name and of the partition path, MD5 of the file's
name. Source: ColumnIndexID, PartitionIndexID, FileIndexID, HoodieMetadataPayload, HashID (Hudi);
HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from reconciler.arrays import Integers, to_arrow
from reconciler.hudi.codecs.hash_id import hash_text
from reconciler.hudi.codecs.java_hash import compute_java_hashes


@lru_cache(maxsize=4096)
def hash_name(name: str) -> str:
    """Return the part of a key that stands for a column or a partition path."""
    return base64.b64encode(hash_text(name)).decode()


def hash_file_name(name: str) -> str:
    """Return the part of a key that stands for a file's name."""
    return base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()


def build_stats_keys(columns: Iterable[str], partition: str, names: Sequence[str]) -> list[str]:
    """Return the keys of every column of every file of a partition."""
    middle = hash_name(partition)
    files = [hash_file_name(name) for name in names]
    heads = [hash_name(column) + middle for column in columns]
    return [head + file for head in heads for file in files]


def build_bloom_keys(partition: str, names: Iterable[str]) -> list[str]:
    """Return the keys of the bloom filters of base files of a partition."""
    head = hash_name(partition)
    return [head + hash_file_name(name) for name in names]


def split_by_file_group(keys: Sequence[str], groups: int) -> list[list[str]]:
    """Return the keys of each file group.

    A key's group is the absolute value of its Java ``hashCode`` modulo the number of groups.

    >>> split_by_file_group(["aa", "ab", "ac"], 2)
    [['aa', 'ac'], ['ab']]
    """
    by_group: list[list[str]] = [[] for _ in range(groups)]
    numbers = find_record_groups(to_arrow(keys), groups).tolist()
    for key, group in zip(keys, numbers, strict=True):
        by_group[group].append(key)
    return by_group


def find_record_groups(keys: Any, groups: int) -> Integers:
    """Return the file group of each key of a string array without nulls.

    >>> import pyarrow as pa
    >>> find_record_groups(pa.array(["aa", "ab", "b", "é😀"]), 2).tolist()
    [0, 1, 0, 0]
    """
    return np.abs(compute_java_hashes(keys).astype(np.int64)) % groups
