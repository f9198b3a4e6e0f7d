"""Choose how the keys of a write are looked up, by what each way costs; pure.

A file's footer is opened in any case of a search of files: its key range rules out most files of
sorted keys. For the keys that are left, its bloom filter or its column of keys answers. A record
index names the files of all keys, and these are then opened, to check it. Seconds of a core were
measured on files of real Hudi; only their ratios decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Final

from reconciler.lazy_dataclass import dataclass

#: seconds for a file's footer, for a byte of a filter's text, and for a key looked up in a filter
_FOOTER: Final = 2e-3
_FILTER_BYTE: Final = 5e-9
_FILTER_KEY: Final = 0.55e-6
#: seconds for a row of a column of keys, and for a key looked up among them
_ROW: Final = 0.07e-6
_KEY: Final = 0.3e-6
#: seconds for a block of a record index, the rows of the table that it has, and seconds for a key
_BLOCK: Final = 1.7e-3
_BLOCK_ROWS: Final = 750
_INDEX_KEY: Final = 2e-6
#: bytes of a base file for each of its rows, where only its size is known
_ROW_BYTES: Final = 100
#: bytes of a usual filter's text
_USUAL_FILTER: Final = 866_000
#: bits of a filter for each byte of its text (Base64), and its false positives for a bit per key
_TEXT_BITS: Final = 6
_PER_BIT: Final = 0.6185


class FileAnswer(Enum):
    """What a file was asked: its footer alone, also its bloom filter, or its column of keys."""

    RANGE = "range"
    FILTER = "filter"
    KEYS = "keys"


class LookupWay(Enum):
    """Where the keys of a write are looked up."""

    FILES = "files"
    RECORD_INDEX = "recordIndex"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupChoice:
    """Where keys are looked up. ``because``: why, as the end of a sentence."""

    way: LookupWay
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLookup:
    """How the keys of a write were looked up: files by what they were asked.

    ``out_of_range``: files whose key range was enough; ``filtered``: their bloom filter;
    ``searched``: files whose keys were read, for a record index those that it names.
    """

    way: LookupWay
    because: str
    out_of_range: int = 0
    filtered: int = 0
    searched: int = 0


def asks_filter(keys: int, rows: int, filter_bytes: int) -> bool:
    """Return whether a file's bloom filter is asked before its column of keys is read.

    ``keys``: those in its range; ``rows``: of the file; ``filter_bytes``: of the filter's text. A
    filter with more keys than it was made for is wrong about some of many keys, and rules out no
    file then.

    >>> asks_filter(1_000, 250_000, 866_000), asks_filter(100_000, 250_000, 866_000)
    (True, False)
    """
    wrong = _PER_BIT ** (_TEXT_BITS * filter_bytes / max(rows, 1))
    is_right = math.exp(-keys * wrong)
    by_filter = _FILTER_BYTE * filter_bytes + _FILTER_KEY * keys
    return by_filter < is_right * _read_seconds(keys, rows)


def choose_lookup(keys: int, sizes: Sequence[int], index_groups: int) -> LookupChoice:
    """Return where the keys of a table with a record index of all keys are looked up.

    ``sizes``: bytes of the base files; ``index_groups``: file groups of the index. Keys are taken
    to be anywhere: the more files they touch, the less an index can save.
    """
    files = len(sizes)
    rows = sum(sizes) / _ROW_BYTES / max(files, 1)
    touched = files * -math.expm1(-keys / max(files, 1))
    in_range = keys if files else 0
    other = min(
        _FILTER_BYTE * _USUAL_FILTER + _FILTER_KEY * in_range, _read_seconds(in_range, rows)
    )
    saved = (files - touched) * (_FOOTER + other)
    blocks = max(files * rows / _BLOCK_ROWS, index_groups)
    spent = min(keys, blocks) * _BLOCK + keys * _INDEX_KEY
    way = LookupWay.RECORD_INDEX if spent < saved else LookupWay.FILES
    because = (
        f"{keys} keys may be in {math.ceil(touched)} of {files} files: the record index costs "
        f"about {spent:.2g} s and saves {saved:.2g} s"
    )
    return LookupChoice(way=way, because=because)


def _read_seconds(keys: float, rows: float) -> float:
    return _ROW * rows + _KEY * keys
