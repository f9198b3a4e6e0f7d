"""Report how far an apply is: one phase after the other, per table."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Literal

from reconciler.storage.api import Advance

Phase = Literal[
    "observe",
    "resume",
    "rollback",
    "orphans",
    "savepoint",
    "metadata",
    "request",
    "rewrite",
    "index",
    "delete",
    "archive",
    "complete",
    "check",
]


class Progress:
    """Reports phases as they begin and end; here to nobody.

    A subclass that shows them overrides both methods.
    """

    def phase(
        self,
        table: str,  # noqa: ARG002 (for subclasses)
        phase: Phase,  # noqa: ARG002
        total: int | None,  # noqa: ARG002
    ) -> AbstractContextManager[Advance]:
        """Report a phase of a table; the function in the block gets units that are done.

        ``total`` counts files if a phase has a known length (bytes to be read in a rewrite),
        otherwise it is None.
        """
        return contextlib.nullcontext(lambda _count: None)

    def report_wait(self, table: str, what: str) -> None:
        """Report that a table waits for other writers: for its lock, or for a pending write."""
