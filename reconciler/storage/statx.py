"""Ask Linux for the kinds and sizes of many entries of a folder, without a Python object for each.

``os.stat`` makes an object of twenty numbers for every entry. The system's ``statx`` (man page
statx(2)) writes what it finds to memory that is given to it, from where it is read as columns; that
is a sixth quicker.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from itertools import repeat
from typing import Any, Final

# from linux/stat.h and fcntl.h; they and the places in a record are the same on every processor
_WHAT_STAT_ASKS: Final = 0x7FF
_TYPE_AND_SIZE: Final = 0x201
_FOLLOW_NOTHING: Final = 0x100 | 0x800
_RECORD: Final = 256
#: records in the memory of a thread
_AT_ONCE: Final = 512


def _find_statx() -> Any:
    """Return the function of the C library; None if there is none, or it knows names otherwise."""
    if sys.getfilesystemencoding() != "utf-8":
        return None
    try:
        import ctypes  # noqa: PLC0415 - some builds of Python lack it

        return getattr(ctypes.CDLL(None), "statx", None)
    except (ImportError, OSError, TypeError):
        return None


class _Records(threading.local):
    """Memory that ``statx`` writes records to, for each thread its own."""

    def __init__(self) -> None:
        import ctypes  # noqa: PLC0415 - there is one if this is called

        memory = bytearray(_AT_ONCE * _RECORD)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        places = range(start, start + len(memory), _RECORD)
        self.pointers = list(map(ctypes.c_void_p, places))
        whole = memoryview(memory)
        self.known = whole.cast("I")[:: _RECORD // 4]
        self.modes = whole.cast("H")[28 // 2 :: _RECORD // 2]
        self.sizes = whole.cast("Q")[40 // 8 :: _RECORD // 8]
        self.is_in_use = False


_STATX: Final[Any] = _find_statx()
_RECORDS: Final = None if _STATX is None else _Records()


def read_modes_and_sizes(handle: int, names: Sequence[str]) -> tuple[list[int], list[int]] | None:
    """Return modes (as ``st_mode``) and sizes in bytes of entries of an open folder.

    Links are not followed. Returns None if they have to be asked for one by one: an entry is gone,
    its name is not UTF-8, or the system does not answer in this way.
    """
    if _RECORDS is None or _RECORDS.is_in_use:  # by what a signal has interrupted in this thread
        return None
    try:
        encoded = "\0".join(names).encode().split(b"\0")
    except UnicodeEncodeError:
        return None
    modes: list[int] = []
    sizes: list[int] = []
    _RECORDS.is_in_use = True
    try:
        for start in range(0, len(names), _AT_ONCE):
            found = _read_some(handle, encoded[start : start + _AT_ONCE], _RECORDS)
            if found is None:
                return None
            modes += found[0]
            sizes += found[1]
    finally:
        _RECORDS.is_in_use = False
    return modes, sizes


def _read_some(
    handle: int, names: Sequence[bytes], records: _Records
) -> tuple[list[int], list[int]] | None:
    count = len(names)
    asked = repeat(handle), names, repeat(_FOLLOW_NOTHING), repeat(_WHAT_STAT_ASKS)
    if any(map(_STATX, *asked, records.pointers)):  # a number other than 0 is an error
        return None
    if any(known & _TYPE_AND_SIZE != _TYPE_AND_SIZE for known in set(records.known[:count])):
        return None
    return records.modes[:count].tolist(), records.sizes[:count].tolist()
