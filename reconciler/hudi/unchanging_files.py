"""Tell the files of Hudi's own folder that are written once and never change."""

from __future__ import annotations

from typing import Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.metadata.own_timeline import ROOT, VERSION_8, find_timeline_folder
from reconciler.hudi.timeline.instant import Instant

_TIMELINES: Final = frozenset(
    find_timeline_folder(hoodie, version)
    for hoodie in (".hoodie", f"{ROOT}/.hoodie")
    for version in (VERSION_8 - 1, VERSION_8)
)


def is_unchanging(path: str) -> bool:
    """Return True for a completed instant, and for a data file of the metadata table.

    Some stores let a writer append to a log file: it is another file then, by its size.

    >>> is_unchanging(".hoodie/timeline/20240101120000000_20240101120005123.commit")
    True
    >>> is_unchanging(".hoodie/timeline/20240101120000000.inflight")
    False
    >>> is_unchanging(".hoodie/hoodie.properties")
    False
    >>> is_unchanging(".hoodie/metadata/files/files-0000-0_0-0-0_202401011200000.hfile")
    True
    """
    folder, _, name = path.rpartition("/")
    if folder in _TIMELINES:
        try:
            instant = Instant.parse(name)
        except UnsupportedError:
            return False
        return instant is not None and instant.is_completed
    return folder.startswith(f"{ROOT}/") and (name.endswith(".hfile") or ".log." in name)
