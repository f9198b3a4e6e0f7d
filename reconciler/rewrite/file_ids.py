"""Ids of new files, which differ between attempts at a clustering."""

from __future__ import annotations

import hashlib
import uuid


def make_seed(instant: str, attempt: str) -> str:
    """Return the 32 hex digits from which the file ids of an attempt are derived.

    >>> len(make_seed("20260101000000000", "a"))
    32
    """
    return hashlib.md5(f"{instant} {attempt}".encode(), usedforsecurity=False).hexdigest()


def make_output_id(seed: str, group: int, output: int) -> str:
    """Return the prefix of the file ids of a group's output, the same in every task.

    >>> make_output_id("0" * 32, 1, 2)
    '6cee07e1-2fa1-53e2-a5d7-62684920eb4c'
    """
    return str(uuid.uuid5(uuid.UUID(hex=seed), f"{group}/{output}"))
