"""The heartbeat of a running instant: a file whose modification time is the last beat.

Source: HoodieHeartbeatClient. Hudi reads only the time and beats once a minute; a missing file
counts as a beat at the epoch.
"""

from __future__ import annotations

from typing import Final

HEARTBEAT_FOLDER: Final = ".hoodie/.heartbeat"
#: seconds between two beats, Hudi's default
INTERVAL_S: Final = 60
#: seconds without a beat after which one of ours on another host counts as dead
DEAD_AFTER_S: Final = 300


def heartbeat_path(instant: str) -> str:
    """The file of one instant.

    >>> heartbeat_path("20260101000000000")
    '.hoodie/.heartbeat/20260101000000000'
    """
    return f"{HEARTBEAT_FOLDER}/{instant}"


def is_silent(last_beat_ms: int, now_ms: int, seconds: int = DEAD_AFTER_S) -> bool:
    """No beat for longer than so many seconds; times in epoch milliseconds.

    >>> is_silent(0, 300_001), is_silent(0, 300_000)
    (True, False)
    """
    return now_ms - last_beat_ms > seconds * 1000
