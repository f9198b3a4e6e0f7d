"""Markers: files that name a data file before it is written, so that a failed write can be undone.

Source: DirectWriteMarkers. They lie in ``.hoodie/.temp/<instant>/<partition>/`` and are named
``<data file>.marker.<CREATE|MERGE|APPEND>``.
"""

from __future__ import annotations

from typing import Final

MARKER_FOLDER: Final = ".hoodie/.temp"


def marker_folder(instant: str) -> str:
    """Where the markers of one instant lie.

    >>> marker_folder("20260101000000000")
    '.hoodie/.temp/20260101000000000'
    """
    return f"{MARKER_FOLDER}/{instant}"


def create_marker(instant: str, partition: str, file_name: str) -> str:
    """The marker of a data file about to be created.

    >>> create_marker("1", "p=1", "a.parquet"), create_marker("1", "", "a.parquet")
    ('.hoodie/.temp/1/p=1/a.parquet.marker.CREATE', '.hoodie/.temp/1/a.parquet.marker.CREATE')
    """
    folder = f"{marker_folder(instant)}/{partition}" if partition else marker_folder(instant)
    return f"{folder}/{file_name}.marker.CREATE"
