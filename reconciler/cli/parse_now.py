"""The time that a command works with."""

from __future__ import annotations

from datetime import datetime

from reconciler import runtime
from reconciler.errors import UsageError


def parse_now(text: str | None) -> datetime:
    """Return the time of ``--now``, or the current time if there is none.

    >>> parse_now("2026-01-31T04:00:00Z").isoformat()
    '2026-01-31T04:00:00+00:00'
    """
    if text is None:
        return runtime.now()
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--now {text}: not a valid time; write it as 2026-01-31T04:00:00+00:00"
        ) from None
    if found.tzinfo is None:
        raise UsageError(f"--now {text}: no UTC offset; write it as 2026-01-31T04:00:00+00:00")
    return found
