"""The option ``--stats``: how many requests a command made to stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler.cli.terminal import log_message
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.storage.requests import RequestKind

Stats = Annotated[
    bool,
    typer.Option(
        "--stats", help="Write the number of requests to stores to standard error, at the end."
    ),
]
_NOUNS: Final[Mapping[RequestKind, str]] = {
    "list": "listing",
    "read": "read",
    "look": "lookup",
    "write": "write",
    "delete": "deletion",
    "repeat": "repeated request",
}


@contextmanager
def report_requests(*, is_wanted: bool) -> Iterator[None]:
    """Report the requests that are made inside the block, also when it fails."""
    if not is_wanted:
        yield
        return
    from reconciler.storage.requests import OF_THIS_PROCESS  # noqa: PLC0415 (few commands need it)

    before = OF_THIS_PROCESS.copy()
    try:
        yield
    finally:
        made = OF_THIS_PROCESS.copy()
        made.subtract(before)
        log_message(describe_requests(made), event="requests")


def describe_requests(counts: Mapping[RequestKind, int]) -> str:
    """Return the number of requests, of all kinds and of each.

    >>> describe_requests({"list": 12, "read": 3, "write": 1})
    'requests to stores: 16 (12 listings, 3 reads, 1 write)'
    >>> describe_requests({})
    'requests to stores: none'
    >>> describe_requests({"read": 3, "repeat": 2})
    'requests to stores: 5 (3 reads, 2 repeated requests)'
    """
    total = sum(counts.values())
    kinds = ", ".join(
        words.format_count(counts[kind], noun) for kind, noun in _NOUNS.items() if counts.get(kind)
    )
    return (
        f"requests to stores: {words.format_number(total)} ({kinds})"
        if total
        else ("requests to stores: none")
    )
