"""Compare two listings of a table's files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.hudi.metadata.listing import FolderFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingDifference:
    """A file on which two listings differ; sizes in bytes, None: not listed."""

    partition: str
    name: str
    metadata_bytes: int | None
    storage_bytes: int | None


def find_differences(
    metadata: Iterable[FolderFiles], storage: Iterable[FolderFiles]
) -> tuple[ListingDifference, ...]:
    """Return every file on which the metadata table and the storage differ, sorted.

    A partition without files equals a missing one. Files of pending and failed writes are rightly
    only in storage; the caller checks them against the timeline.
    """
    metadata_files = {path: dict(zip(names, sizes, strict=True)) for path, names, sizes in metadata}
    storage_files = {path: dict(zip(names, sizes, strict=True)) for path, names, sizes in storage}
    nothing: dict[str, int] = {}
    return tuple(
        ListingDifference(
            partition=path,
            name=name,
            metadata_bytes=metadata_sizes.get(name),
            storage_bytes=storage_sizes.get(name),
        )
        for path in sorted(metadata_files.keys() | storage_files.keys())
        if (metadata_sizes := metadata_files.get(path, nothing))
        != (storage_sizes := storage_files.get(path, nothing))
        for name in sorted(metadata_sizes.keys() | storage_sizes.keys())
        if metadata_sizes.get(name) != storage_sizes.get(name)
    )
