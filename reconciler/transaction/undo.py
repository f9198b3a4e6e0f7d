"""Taking a pending instant of ours back, as if it had never been announced."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from reconciler.errors import ReconcilerError, UnsupportedError
from reconciler.hudi.instant import Action
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata_attempt import earlier_attempt
from reconciler.hudi.metadata_table import open_metadata
from reconciler.hudi.properties import TableProperties
from reconciler.storage.api import Storage
from reconciler.transaction import metadata_rewrite
from reconciler.transaction.hold import Hold
from reconciler.transaction.marked import (
    is_of,
    marked_there,
    remove_files,
    remove_marked,
    remove_markers,
)


def withdraw(hold: Hold, instant: str, action: Action) -> None:
    """Take everything back: the metadata table's record, files, markers, at last the instant.

    In this order a stop in between leaves a pending instant, which the next run undoes. The table's
    lock is held. Raises StorageError, FormatError.
    """
    take_back(hold.storage, instant)
    hold.publisher.withdraw(instant, action)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """``removed``: files that went. ``unnamed``: files that nobody has named, in whose way it is.

    With such the instant is pending still.
    """

    removed: Sequence[tuple[str, str]] = ()
    unnamed: Sequence[tuple[str, str]] = ()


def withdraw_named(
    hold: Hold, instant: str, action: Action, named: Collection[tuple[str, str]]
) -> Withdrawn:
    """As ``withdraw``, and no file goes but the named ones of the instant.

    A file that came meanwhile would be read once nothing on the timeline speaks against it: it is
    looked for before the first delete, and before the instant goes. Raises StorageError,
    FormatError.
    """
    removed: list[tuple[str, str]] = []
    unnamed = marked_there(hold.storage, instant, besides=named)
    if not unnamed:
        _take_back_told(hold.storage, instant)
        doomed = sorted(file for file in named if is_of(file[1], instant))
        removed = remove_files(hold.storage, doomed)
        unnamed = marked_there(hold.storage, instant, besides=named)
    if not unnamed:
        remove_markers(hold.storage, instant)
        hold.publisher.withdraw(instant, action)
    return Withdrawn(removed=removed, unnamed=unnamed)


def take_back(storage: Storage, instant: str) -> None:
    """Remove what attempts at a pending write of ours have left beside the timeline."""
    _take_back_told(storage, instant)
    remove_marked(storage, instant)
    remove_markers(storage, instant)


def _take_back_told(storage: Storage, instant: str) -> None:
    """Remove what the metadata table was told, and what is left of partitions that it lost."""
    properties = load_properties(storage)
    if properties.metadata_partitions:
        opened = open_metadata(
            storage,
            version=properties.table_version,
            data=load_timeline(storage, properties),
            live=properties.metadata_partitions,
        )
        for path in earlier_attempt(opened, instant, indexes=True).paths:
            storage.delete(path)
        drop_partitions(storage, properties, ())


def clear(storage: Storage, instant: str) -> None:
    """As ``take_back``, of an instant that somebody has taken off the timeline.

    Its data files go whatever becomes of the rest: once the timeline begins after it they would be
    read. Log files of the metadata table that hold another instant's blocks too stay.
    """
    try:
        take_back(storage, instant)
    except ReconcilerError as error:
        remove_marked(storage, instant)
        remove_markers(storage, instant)
        if not isinstance(error, UnsupportedError):
            raise


def drop_partitions(storage: Storage, properties: TableProperties, names: Sequence[str]) -> None:
    """Drop metadata partitions, and what a stop in the middle of an earlier drop has left."""
    left = metadata_rewrite.leftovers(storage, properties)
    if names or left:
        metadata_rewrite.drop_partitions(storage, properties, {*names, *left})
