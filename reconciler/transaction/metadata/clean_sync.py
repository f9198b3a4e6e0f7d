"""Prepare a clean's update of the metadata table, and compare that with the disk afterwards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from reconciler.hudi.metadata.clean_sync import plan_clean_sync
from reconciler.hudi.metadata.deltacommit import MetadataSync
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.sync_decisions import decide_sync
from reconciler.hudi.metadata.table import open_live_metadata
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action
from reconciler.plans.model import Note
from reconciler.storage.api import Storage
from reconciler.transaction.metadata.sync import SyncRequest
from reconciler.transaction.paths import list_names_of_partitions

_MAX_NAMES: Final = 5


def check_syncable(properties: TableProperties) -> None:
    """Raise UnsupportedError or BusyError when a clean could not update the metadata table."""
    decide_sync(
        Action.CLEAN, properties.metadata_partitions, properties.metadata_partitions_inflight
    )


def prepare_clean_sync(
    request: SyncRequest, files: Mapping[str, Collection[str]], partitions: Collection[str]
) -> MetadataSync | None:
    """Return what has to be written, None when the table has no live metadata table.

    ``files``: the files that the clean removes, by partition; ``partitions``: those whose folder is
    removed too. Raises FormatError or UnsupportedError when the metadata table cannot be written.
    """
    if not request.properties.metadata_partitions:
        return None
    completed = request.choose_time()
    table = request.open_table()
    return plan_clean_sync(
        table,
        read_metadata_listing(table),
        instant=request.instant,
        completion_time=completed,
        removed_files=files,
        removed_partitions=partitions,
    )


def find_missing_files(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    partitions: Iterable[str],
    *,
    seen: Callable[[str], Collection[str]] = lambda _path: (),
    files: int = 0,
) -> dict[str, list[str]]:
    """Return the files that the metadata table lists in some partitions and that are not on disk.

    Files on disk that it does not list may be those of pending and failed writes. ``seen``: the
    names in a partition that a listing of this run has shown and that it has not removed. Only
    partitions with other names are listed again. ``files``: about how many the table has.
    """
    if not properties.metadata_partitions:
        return {}
    listing = read_metadata_listing(open_live_metadata(storage, properties, timeline))
    unknown: dict[str, set[str]] = {}
    for path, names, _sizes in listing.read_folders(set(partitions)):
        if others := set(names).difference(seen(path)):
            unknown[path] = others
    on_disk = list_names_of_partitions(storage, unknown, files=files)
    absent = {path: names - on_disk[path] for path, names in unknown.items()}
    return {path: sorted(names) for path, names in absent.items() if names}


def describe_missing_files(missing: Mapping[str, Collection[str]]) -> tuple[Note, ...]:
    """Return a note for each partition with missing files."""
    return tuple(
        Note(
            "metadataListing",
            f"the metadata table lists {len(names)} files of partition {path!r} that are not on "
            f"disk, for example {', '.join(sorted(names)[:_MAX_NAMES])}",
        )
        for path, names in sorted(missing.items())
        if names
    )
