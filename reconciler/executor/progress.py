"""Telling whoever watches how far the work is: one phase after the other, per table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol

Phase = Literal[
    "observe", "resume", "rollback", "request", "rewrite", "index", "delete", "complete", "check"
]


class Progress(Protocol):
    """Hears of phases as they begin and end."""

    def phase(
        self, table: str, phase: Phase, total: int | None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """A phase of a table; inside the block the function hears of so many units done.

        ``total`` counts files where a phase has a known length (bytes to be read in a rewrite),
        else it is None.
        """

    def report_wait(self, table: str, what: str) -> None:
        """The work on a table waits for something of others: its lock, a write that is pending."""


class NoProgress:
    """Tells nobody."""

    def phase(
        self,
        table: str,  # noqa: ARG002 (the protocol's)
        phase: Phase,  # noqa: ARG002
        total: int | None,  # noqa: ARG002
    ) -> AbstractContextManager[Callable[[int], None]]:
        return contextlib.nullcontext(lambda _count: None)

    def report_wait(self, table: str, what: str) -> None:  # noqa: ARG002 (the protocol's)
        return
