"""The proof that a file's floats hold no NaN, which its writer leaves in its footer.

pyarrow leaves NaN out of bounds, so they prove nothing; who writes the rows can look.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

#: the key of the footer's pair; its value names the file, because tools copy pairs between files
NAN_FREE: Final = "reconciler.nan_free"
_NO_COLUMNS: Final[frozenset[str]] = frozenset()


def make_nan_free_pair(name: str, columns: Iterable[str]) -> dict[str, str]:
    """The key-value pair of a file's footer for columns that hold no NaN.

    >>> nan_free_pair("f.parquet", ["y", "st.x"])
    {'reconciler.nan_free': '{"columns":["st.x","y"],"file":"f.parquet"}'}
    """
    said = {"columns": sorted(columns), "file": name}
    return {NAN_FREE: json.dumps(said, sort_keys=True, separators=(",", ":"))}


def read_nan_free_columns(pairs: Mapping[bytes, bytes], name: str) -> frozenset[str]:
    """The columns of a file that its footer's pairs prove to hold no NaN.

    >>> pair = {b"reconciler.nan_free": b'{"columns":["y"],"file":"f.parquet"}'}
    >>> nan_free_columns(pair, "f.parquet"), nan_free_columns(pair, "copy.parquet")
    (frozenset({'y'}), frozenset())
    """
    text = pairs.get(NAN_FREE.encode())
    if text is None:
        return _NO_COLUMNS
    try:
        said = json.loads(text)
        return frozenset(said["columns"]) if said["file"] == name else _NO_COLUMNS
    except (ValueError, TypeError, KeyError):
        return _NO_COLUMNS
