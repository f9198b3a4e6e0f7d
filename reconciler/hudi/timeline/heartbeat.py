"""The heartbeat file of a running instant; its modification time is the last beat.

Hudi reads only the time and beats once a minute. It treats a missing file as a beat in 1970.
Source: HoodieHeartbeatClient.
"""

from __future__ import annotations

from typing import Final

HEARTBEAT_FOLDER: Final = ".hoodie/.heartbeat"
#: seconds between two beats; Hudi's default
INTERVAL_S: Final = 60
#: seconds without a beat after which a run of reconciler on another host counts as dead
DEAD_AFTER_S: Final = 300
#: seconds without a beat after which Hudi rolls a writer's instant back: two intervals by default
#: (hoodie.client.heartbeat.interval_in_ms, hoodie.client.heartbeat.tolerable.misses)
HUDI_EXPIRES_AFTER_S: Final = 120


def heartbeat_path(instant: str) -> str:
    """Return the heartbeat file of an instant.

    >>> heartbeat_path("20260101000000000")
    '.hoodie/.heartbeat/20260101000000000'
    """
    return f"{HEARTBEAT_FOLDER}/{instant}"


def is_silent(last_beat_ms: int, now_ms: int, seconds: int = DEAD_AFTER_S) -> bool:
    """Return whether the last beat is more than ``seconds`` old; times in milliseconds since 1970.

    >>> is_silent(0, 300_001), is_silent(0, 300_000)
    (True, False)
    """
    return now_ms - last_beat_ms > seconds * 1000
