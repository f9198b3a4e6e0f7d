"""Decide which statistics of a Parquet file to trust, by what its writer says.

A footer names its writer (``created_by``). Writers differ in how they treat NaN, how they compare
text, and whether they truncate long bounds. The statistics of a writer that is not listed here are
ignored, so its files are always read. pyarrow ignores NaN when it computes bounds, so bounds cannot
prove that there is none. Reconciler's writer checks its rows and records in the footer which
columns hold no NaN.
Source: parquet-mr (ParquetMetadataConverter, CorruptStatistics, PARQUET-251, PARQUET-1025,
PARQUET-1246, PARQUET-1685), parquet-cpp (CleanStatistic, ApplicationVersion).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, Self

from reconciler.lazy_dataclass import dataclass

_NAME: Final = re.compile(r"(parquet-mr|parquet-cpp-arrow) version (\d+)\.(\d+)")
_JAVA: Final = "parquet-mr"
#: from this release on, statistics follow the order of the column's type and include NaN
_ORDERED_SINCE: Final = (1, 10)
#: from this release on, a setting may truncate bounds
_CUTS_SINCE: Final = (1, 11)
#: from this release on, bounds may not include NaN
_NAN_UNKNOWN_SINCE: Final = (1, 17)
_FIRST_JAVA: Final = (1, 8)
_FIRST_ARROW: Final = (10, 0)
#: the key in the footer; the value names the file, because tools copy entries between files
NAN_FREE: Final = "reconciler.nan_free"
_NO_COLUMNS: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class FooterWriter:
    """The kinds of a writer's statistics that can be trusted.

    ``is_known``: null counts, and bounds of whole numbers, booleans, dates, times and floats other
    than NaN. ``orders_bytes``: bounds of text and of decimals stored as bytes. ``shows_nan``: a NaN
    in a chunk appears in its bounds, so bounds without NaN prove that there is none. ``cuts_text``:
    bounds of text may be truncated. ``drops_long``: one long bound may be missing and is then read
    as empty. ``hides_nulls``: null counts of dictionary columns in structs omit null structs.
    """

    is_known: bool = False
    orders_bytes: bool = False
    shows_nan: bool = False
    cuts_text: bool = True
    drops_long: bool = True
    hides_nulls: bool = True

    @classmethod
    def from_created_by(cls, created_by: str | None) -> Self:
        """Return the trust in the writer that a footer names.

        >>> FooterWriter.from_created_by("parquet-mr version 1.13.1 (build db4183109d5b)").shows_nan
        True
        >>> FooterWriter.from_created_by("parquet-cpp-arrow version 26.0.1").shows_nan
        False
        >>> FooterWriter.from_created_by("parquet-mr compatible Photon version 0.3").is_known
        False
        """
        match = _NAME.match(created_by or "")
        if not match:
            return cls()
        version = (int(match[2]), int(match[3]))
        if match[1] == _JAVA:
            return cls(
                is_known=version >= _FIRST_JAVA,
                orders_bytes=version >= _ORDERED_SINCE,
                shows_nan=_ORDERED_SINCE <= version < _NAN_UNKNOWN_SINCE,
                cuts_text=version >= _CUTS_SINCE,
                drops_long=False,
                hides_nulls=False,
            )
        is_known = version >= _FIRST_ARROW
        return cls(is_known=is_known, orders_bytes=is_known, cuts_text=not is_known)


def make_nan_free_pair(name: str, columns: Iterable[str]) -> dict[str, str]:
    """Return the footer entry for columns of a file that hold no NaN.

    >>> make_nan_free_pair("f.parquet", ["y", "st.x"])
    {'reconciler.nan_free': '{"columns":["st.x","y"],"file":"f.parquet"}'}
    """
    entry = {"columns": sorted(columns), "file": name}
    return {NAN_FREE: json.dumps(entry, sort_keys=True, separators=(",", ":"))}


def read_nan_free_columns(pairs: Mapping[bytes, bytes], name: str) -> frozenset[str]:
    """Return the columns of a file that its footer entries prove to hold no NaN.

    >>> pair = {b"reconciler.nan_free": b'{"columns":["y"],"file":"f.parquet"}'}
    >>> read_nan_free_columns(pair, "f.parquet"), read_nan_free_columns(pair, "copy.parquet")
    (frozenset({'y'}), frozenset())
    """
    text = pairs.get(NAN_FREE.encode())
    if text is None:
        return _NO_COLUMNS
    try:
        entry = json.loads(text)
        return frozenset(entry["columns"]) if entry["file"] == name else _NO_COLUMNS
    except (ValueError, TypeError, KeyError):
        return _NO_COLUMNS
