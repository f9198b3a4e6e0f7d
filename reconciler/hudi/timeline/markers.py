"""Markers: files that name a data file before it is written, so a failed write can be undone.

A marker lies in ``.hoodie/.temp/<instant>/<partition>/`` and is named ``<data file>.marker.<CREATE|
MERGE|APPEND>``. Hudi's timeline server instead writes many markers into one file, one per line
(TimelineServerBasedWriteMarkers). Source: DirectWriteMarkers.
"""

from __future__ import annotations

import re
from typing import Final

MARKER_FOLDER: Final = ".hoodie/.temp"
#: the kind of a marker of a file that only its write has
CREATE: Final = "CREATE"
#: the kind of a marker of a log file that other writes may share (version 6)
APPEND: Final = "APPEND"
_MARKER: Final = re.compile(r"(.+)\.marker\.(CREATE|MERGE|APPEND)")
_LISTS: Final = re.compile(r"MARKERS\d+")


def marker_folder(instant: str) -> str:
    """Return the folder of an instant's markers.

    >>> marker_folder("20260101000000000")
    '.hoodie/.temp/20260101000000000'
    """
    return f"{MARKER_FOLDER}/{instant}"


def marker_path(instant: str, partition: str, file_name: str, kind: str = CREATE) -> str:
    """Return the path of the marker of a data file that is about to be created.

    >>> marker_path("1", "p=1", "a.parquet"), marker_path("1", "", "a.parquet")
    ('.hoodie/.temp/1/p=1/a.parquet.marker.CREATE', '.hoodie/.temp/1/a.parquet.marker.CREATE')
    """
    folder = f"{marker_folder(instant)}/{partition}" if partition else marker_folder(instant)
    return f"{folder}/{file_name}.marker.{kind}"


def parse_marker(text: str) -> str | None:
    """Return the data file of a marker's name or path, None for any other file.

    >>> parse_marker("p=1/a.parquet.marker.MERGE"), parse_marker("MARKERS.type")
    ('p=1/a.parquet', None)
    """
    match = _MARKER.fullmatch(text)
    return match and match[1]


def parse_marker_kind(text: str) -> tuple[str, str] | None:
    """Return the data file of a marker's name or path, and its kind; None for any other file.

    >>> parse_marker_kind("p=1/.f_1.log.2_0-1-3.marker.APPEND")
    ('p=1/.f_1.log.2_0-1-3', 'APPEND')
    """
    match = _MARKER.fullmatch(text)
    return match and (match[1], match[2])


def is_marker_list(name: str) -> bool:
    """Return whether a file of an instant's folder lists markers.

    Each line of such a file is a path below the table's root.

    >>> is_marker_list("MARKERS0"), is_marker_list("MARKERS.type")
    (True, False)
    """
    return _LISTS.fullmatch(name) is not None
