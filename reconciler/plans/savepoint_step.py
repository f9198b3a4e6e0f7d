"""The step of a plan that makes or removes one savepoint."""

from __future__ import annotations

from typing import Literal

from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointStep:
    """Make or remove the savepoint of one instant.

    ``name``, ``until``: as declared; ``until`` None: it stays while it is declared. ``files``,
    ``bytes``: the files of the table that it lists.
    """

    kind: Literal["savepoint"] = "savepoint"
    change: Literal["create", "remove"]
    name: str
    instant: str
    until: str | None
    files: int
    bytes: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointReport:
    """A savepoint of another tool or person; ``is_completed``: False while it is half made.

    ``made_by``, ``comment``, ``made_ms`` (epoch milliseconds): as recorded; None if unknown.
    ``files``, ``bytes``: what a clean by the declared retention would remove if only this savepoint
    were gone.
    """

    instant: str
    is_completed: bool
    made_by: str | None
    comment: str | None
    made_ms: int | None
    files: int
    bytes: int
