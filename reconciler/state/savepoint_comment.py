"""The comment by which a savepoint of this program is recognised, and what it was declared as.

Hudi's record of a savepoint has no extra metadata, so the comment carries what other instants of
this program have there.
"""

from __future__ import annotations

import json
import re
from typing import Final

from reconciler.spec.model import DeclaredSavepoint

_MOMENT: Final = r"[0-9-]+(?:[T ][0-9:.+Z-]+)?"
_COMMENT: Final = re.compile(
    rf'reconciler savepoint (?P<name>"(?:[^"\\]|\\.)*") at (?P<at>{_MOMENT})'
    rf"(?: until (?P<until>{_MOMENT}))?"
)


def format_savepoint_comment(declared: DeclaredSavepoint) -> str:
    """Return the comment of a savepoint that a spec declares.

    >>> format_savepoint_comment(DeclaredSavepoint(name="q3", at="2026-09-30", until="2027-01-31"))
    'reconciler savepoint "q3" at 2026-09-30 until 2027-01-31'
    """
    until = "" if declared.until is None else f" until {declared.until}"
    name = json.dumps(declared.name, ensure_ascii=False)
    return f"reconciler savepoint {name} at {declared.at}{until}"


def format_unreadable(instant: str) -> str:
    """Return a comment for a half-made savepoint of ours whose record cannot be read.

    >>> parse_savepoint_comment(format_unreadable("20260930235959123")).name
    'unknown'
    """
    return format_savepoint_comment(DeclaredSavepoint(name="unknown", at=instant))


def parse_savepoint_comment(comment: str) -> DeclaredSavepoint | None:
    """Return what a savepoint was declared as; None for a comment that this program did not write.

    >>> parse_savepoint_comment('reconciler savepoint "q3" at 2026-09-30')
    DeclaredSavepoint(name='q3', at='2026-09-30', until=None)
    >>> parse_savepoint_comment("before the migration") is None
    True
    """
    match = _COMMENT.fullmatch(comment)
    if match is None:
        return None
    try:
        name = json.loads(match["name"])
    except ValueError:
        return None
    return DeclaredSavepoint(name=name, at=match["at"], until=match["until"])
