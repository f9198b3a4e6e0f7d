"""Write the batches of a stream once each, however often they are tried.

A restarted query may bring its last batch again. The timeline knows the last one: every write of a
stream records its batch in the instant's extra metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.errors import FormatError, NotFoundError, UsageError
from reconciler.hudi.load import (
    find_properties,
    load_timeline,
    read_archived_commits,
    read_instant_file,
)
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.storage.api import Storage
from reconciler.transaction.retry import raise_changing, retry_while_changing

#: prefix of a stream's key in the extra metadata
_STREAM: Final = "reconciler.stream."


def make_batch_extra(stream: str, batch: int) -> dict[str, str]:
    """Return the extra metadata of a write that brings a batch.

    >>> make_batch_extra("orders", 7)
    {'reconciler.stream.orders': '7'}
    """
    return {_STREAM + stream: str(batch)}


def parse_batches(extra: Mapping[str, str]) -> dict[str, int]:
    """Return the batches in an instant's extra metadata, by stream; undoes ``make_batch_extra``."""
    return {
        key.removeprefix(_STREAM): int(value)
        for key, value in extra.items()
        if key.startswith(_STREAM) and value.isdigit()
    }


def has_batch(storage: Storage, stream: str, batch: int) -> bool:
    """True if a batch is in the table already, as the newest of its stream.

    Raises UsageError if a later one is: then the query counts anew, and it is unknown which of
    its batches are in the table. Raises as ``find_last_batch``.
    """
    last = find_last_batch(storage, stream)
    if last is not None and last > batch:
        raise UsageError(
            f"stream {stream}: batch {batch} came, but the table already has batch {last}; a query "
            "with a new checkpoint counts anew, so give its stream another name"
        )
    return last == batch


def find_last_batch(storage: Storage, stream: str) -> int | None:
    """Return the newest batch of a stream in a table; None for none, or without a table.

    Reads commits from the newest on until one has it, archived ones too. Raises FormatError,
    StorageError, and BusyError if commits are archived whenever they are read.
    """

    def attempt() -> tuple[int | None] | None:
        try:
            return (_find_last_batch(storage, stream),)
        except NotFoundError:  # archived since the timeline was listed
            return None

    def give_up() -> tuple[int | None]:
        raise_changing(storage.location, f"the last batch of stream {stream} was looked for")

    return retry_while_changing(attempt, give_up)[0]


def _find_last_batch(storage: Storage, stream: str) -> int | None:
    properties = find_properties(storage)
    if properties is None:
        return None
    for extra, path in _read_extras(storage, properties):
        number = extra.get(_STREAM + stream)
        if number is None:
            continue
        try:
            return int(number)
        except ValueError:
            raise FormatError(
                path, f"its {_STREAM}{stream} is {number!r}, which is not a batch number"
            ) from None
    return None


def _read_extras(
    storage: Storage, properties: TableProperties
) -> Iterator[tuple[Mapping[str, str], str]]:
    for entry in reversed(load_timeline(storage, properties).completed_files(COMMITS)):
        data, path = read_instant_file(storage, properties, entry)
        yield CommitMetadata.parse(data, path).extra, path
    for _operation, extra, path in read_archived_commits(storage, properties):
        yield extra, path
