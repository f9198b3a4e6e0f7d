"""Write and read the footer entry that lists columns without NaN.

pyarrow ignores NaN when it computes bounds, so bounds cannot prove that there is none. The writer
of a file checks its rows and records the result in the footer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

#: the key in the footer; the value names the file, because tools copy entries between files
NAN_FREE: Final = "reconciler.nan_free"
_NO_COLUMNS: Final[frozenset[str]] = frozenset()


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
