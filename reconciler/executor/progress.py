"""Report how far an apply is: one phase after the other, per table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol

Phase = Literal[
    "observe", "resume", "rollback", "request", "rewrite", "index", "delete", "complete", "check"
]


class Progress(Protocol):
    """Is told of phases as they begin and end."""

    def phase(
        self, table: str, phase: Phase, total: int | None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Report a phase of a table; the function in the block is told of units that are done.

        ``total`` counts files where a phase has a known length (bytes to be read in a rewrite),
        otherwise it is None.
        """

    def report_wait(self, table: str, what: str) -> None:
        """Report that a table waits for others: for its lock, or for a pending write."""


class NoProgress:
    """Reports to nobody."""

    def phase(
        self,
        table: str,  # noqa: ARG002 (the protocol's)
        phase: Phase,  # noqa: ARG002
        total: int | None,  # noqa: ARG002
    ) -> AbstractContextManager[Callable[[int], None]]:
        return contextlib.nullcontext(lambda _count: None)

    def report_wait(self, table: str, what: str) -> None:  # noqa: ARG002 (the protocol's)
        return
