"""Markers: files that name a data file before it is written, so that a failed write can be undone.

Source: DirectWriteMarkers. They lie in ``.hoodie/.temp/<instant>/<partition>/`` and are named
``<data file>.marker.<CREATE|MERGE|APPEND>``. Hudi's timeline server keeps many in one file
instead, a line each (TimelineServerBasedWriteMarkers).
"""

from __future__ import annotations

import re
from typing import Final

MARKER_FOLDER: Final = ".hoodie/.temp"
_MARKER: Final = re.compile(r"(.+)\.marker\.(?:CREATE|MERGE|APPEND)")
_LISTS: Final = re.compile(r"MARKERS\d+")


def marker_folder(instant: str) -> str:
    """Where the markers of one instant lie.

    >>> marker_folder("20260101000000000")
    '.hoodie/.temp/20260101000000000'
    """
    return f"{MARKER_FOLDER}/{instant}"


def marker_path(instant: str, partition: str, file_name: str) -> str:
    """The marker of a data file about to be created.

    >>> create_marker("1", "p=1", "a.parquet"), create_marker("1", "", "a.parquet")
    ('.hoodie/.temp/1/p=1/a.parquet.marker.CREATE', '.hoodie/.temp/1/a.parquet.marker.CREATE')
    """
    folder = f"{marker_folder(instant)}/{partition}" if partition else marker_folder(instant)
    return f"{folder}/{file_name}.marker.CREATE"


def parse_marker(text: str) -> str | None:
    """The data file that a marker names, by the marker's own name or path; None for other files.

    >>> marked_file("p=1/a.parquet.marker.MERGE"), marked_file("MARKERS.type")
    ('p=1/a.parquet', None)
    """
    found = _MARKER.fullmatch(text)
    return found and found[1]


def is_marker_list(name: str) -> bool:
    """Whether a file of an instant's folder holds markers, a path below the table's root a line.

    >>> is_marker_list("MARKERS0"), is_marker_list("MARKERS.type")
    (True, False)
    """
    return _LISTS.fullmatch(name) is not None
