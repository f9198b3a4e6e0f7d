"""Batches of a stream, each of them written once, whatever is tried again.

A query that is started anew may bring its last batch once more. The timeline knows which one that
is: every write of a stream says its batch in the instant's extra metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.errors import FormatError, UsageError
from reconciler.hudi.load import (
    PROPERTIES,
    instant_file_path,
    load_properties,
    load_timeline,
    read_archived_commits,
    read_instant_file,
)
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.storage.api import Storage

#: before the name of a stream: the key of its newest batch
_STREAM: Final = "reconciler.stream."


def make_batch_extra(stream: str, batch: int) -> dict[str, str]:
    """What a write says of the batch that it brings.

    >>> make_batch_extra("orders", 7)
    {'reconciler.stream.orders': '7'}
    """
    return {_STREAM + stream: str(batch)}


def parse_batches(extra: Mapping[str, str]) -> dict[str, int]:
    """The batches that an instant of ours says, by stream; the inverse of ``make_batch_extra``."""
    return {
        key.removeprefix(_STREAM): int(value)
        for key, value in extra.items()
        if key.startswith(_STREAM) and value.isdigit()
    }


def has_batch(storage: Storage, stream: str, batch: int) -> bool:
    """Whether a batch is in the table already, as the newest of its stream.

    Raises UsageError where a later one is: then it counts anew, and nobody can tell which of its
    batches are there; as ``find_last_batch``.
    """
    last = find_last_batch(storage, stream)
    if last is not None and last > batch:
        raise UsageError(
            f"stream {stream}: batch {batch} comes after batch {last}; a query with another "
            "checkpoint counts anew: give its stream another name"
        )
    return last == batch


def find_last_batch(storage: Storage, stream: str) -> int | None:
    """The newest batch of a stream in a table; None where there is none, or no table yet.

    Reads commits from the newest on until one tells, archived ones too. Raises FormatError,
    StorageError.
    """
    if all(storage.stat(path) is None for path in (PROPERTIES, f"{PROPERTIES}.backup")):
        return None
    properties = load_properties(storage)
    for extra, path in _read_extras(storage, properties):
        said = extra.get(_STREAM + stream)
        if said is None:
            continue
        try:
            return int(said)
        except ValueError:
            raise FormatError(
                path, f"its {_STREAM}{stream} is {said!r}, and no number of a batch"
            ) from None
    return None


def _read_extras(
    storage: Storage, properties: TableProperties
) -> Iterator[tuple[Mapping[str, str], str]]:
    for entry in reversed(load_timeline(storage, properties).entries):
        if entry.instant.is_completed and entry.instant.action in COMMITS:
            path = instant_file_path(properties, entry)
            data = read_instant_file(storage, properties, entry)
            yield CommitMetadata.parse(data, path).extra, path
    for _operation, extra, path in read_archived_commits(storage, properties):
        yield extra, path
