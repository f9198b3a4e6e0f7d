"""Taking a pending instant of ours back, as if it had never been announced."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.errors import ReconcilerError, UnsupportedError
from reconciler.hudi.instant import Action
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata_attempt import earlier_attempt
from reconciler.hudi.metadata_table import open_metadata
from reconciler.hudi.properties import TableProperties
from reconciler.transaction import metadata_rewrite
from reconciler.transaction.hold import Hold
from reconciler.transaction.marked import remove_marked, remove_markers


def withdraw(hold: Hold, instant: str, action: Action) -> None:
    """Take everything back: the metadata table's record, files, markers, at last the instant.

    In this order a stop in between leaves a pending instant, which the next run undoes. The table's
    lock is held. Raises StorageError, FormatError.
    """
    take_back(hold, instant)
    hold.publisher.withdraw(instant, action)


def take_back(hold: Hold, instant: str) -> None:
    """Remove what attempts at a pending write of ours have left beside the timeline."""
    storage = hold.storage
    properties = load_properties(storage)
    if properties.metadata_partitions:
        opened = open_metadata(
            storage,
            version=properties.table_version,
            data=hold.reread(),
            live=properties.metadata_partitions,
        )
        for path in earlier_attempt(opened, instant, indexes=True).paths:
            storage.delete(path)
        drop_partitions(hold, properties, ())
    remove_marked(storage, instant)
    remove_markers(storage, instant)


def clear(hold: Hold, instant: str) -> None:
    """As ``take_back``, of an instant that somebody has taken off the timeline.

    Its data files go whatever becomes of the rest: once the timeline begins after it they would be
    read. Log files of the metadata table that hold another instant's blocks too stay.
    """
    try:
        take_back(hold, instant)
    except ReconcilerError as error:
        remove_marked(hold.storage, instant)
        remove_markers(hold.storage, instant)
        if not isinstance(error, UnsupportedError):
            raise


def drop_partitions(hold: Hold, properties: TableProperties, names: Sequence[str]) -> None:
    """Drop metadata partitions, and what a stop in the middle of an earlier drop has left."""
    left = metadata_rewrite.leftovers(hold.storage, properties)
    if names or left:
        metadata_rewrite.drop_partitions(hold.storage, properties, {*names, *left})
