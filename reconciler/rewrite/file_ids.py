"""The ids of new files, which tell one attempt at a clustering from every other."""

from __future__ import annotations

import hashlib
import uuid


def make_seed(instant: str, attempt: str) -> str:
    """What the ids of an attempt at an instant are made of: 32 hex digits.

    >>> len(make_seed("20260101000000000", "a"))
    32
    """
    return hashlib.md5(f"{instant} {attempt}".encode(), usedforsecurity=False).hexdigest()


def make_output_id(seed: str, group: int, output: int) -> str:
    """What the file ids of one of a group's outputs begin with, whichever task writes them.

    >>> make_output_id("0" * 32, 1, 2)
    '6cee07e1-2fa1-53e2-a5d7-62684920eb4c'
    """
    return str(uuid.uuid5(uuid.UUID(hex=seed), f"{group}/{output}"))
