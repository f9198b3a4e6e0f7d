"""Tables in a store of flat objects, with a metadata table, of any number of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from reconciler.hudi.metadata.new_metadata_table import PROPERTIES as METADATA_PROPERTIES
from reconciler.hudi.metadata.new_metadata_table import (
    build_first_listing,
    build_metadata_properties,
)
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.clean import CleanedPartition, CleanMetadata
from tests.bench.make_table import Shape, make_table
from tests.flat_store import ROOT, FlatStore

PROPERTIES = ".hoodie/hoodie.properties"
WITH_METADATA = b"hoodie.table.metadata.partitions=files\n"


def put_table(folder: Path, shape: Shape, *, with_metadata: bool = True) -> FlatStore:
    """Make a table in a folder and load it into a new store, where it has a metadata table."""
    make_table(folder, shape)
    store = FlatStore()
    store.load(folder)
    if with_metadata:
        add_listing(store, shape)
    return store


def add_listing(store: FlatStore, shape: Shape) -> None:
    """Give the table a metadata table that lists its files."""
    partitions: dict[str, dict[str, int | None]] = {}
    for name, data in store.objects.items():
        folder, _, file = name.removeprefix(f"{ROOT}/").rpartition("/")
        if file.endswith(".parquet"):
            partitions.setdefault(folder, {})[file] = len(data)
    store.create_all(build_metadata_table(shape, partitions))
    store.objects[f"{ROOT}/{PROPERTIES}"] += WITH_METADATA


def build_metadata_table(
    shape: Shape, partitions: Mapping[str, dict[str, int | None]]
) -> dict[str, bytes]:
    """Return the files of a metadata table that lists names and sizes, by their paths."""
    first = build_first_listing(
        None,  # type: ignore[arg-type] # a first deltacommit reads nothing
        version=shape.table_version,
        data=Timeline.from_files([]),
        completion_time=shape.instants[0],
        partitions=partitions,
    )
    properties = build_metadata_properties("t", shape.table_version)
    return {file.path: file.data for file in first} | {METADATA_PROPERTIES: properties}


def build_past_clean(shape: Shape, number: int) -> dict[str, bytes]:
    """Return the timeline's files of a completed clean, by their paths.

    It removed a version of every file group that was written before the table's first commit.
    """
    before = shape.first - timedelta(days=1) + timedelta(minutes=5 * number)
    earlier = Shape(partitions=shape.partitions, groups=shape.groups, versions=1, first=before)
    started = shape.stamp(timedelta(seconds=2 + 2 * number))
    metadata = CleanMetadata(
        started=started,
        duration_ms=1000,
        earliest_instant=shape.instants[0],
        last_completed_commit=shape.instants[0],
        partitions={
            earlier.partition(partition): CleanedPartition(
                policy="KEEP_LATEST_COMMITS",
                planned=tuple(earlier.list_names(partition)),
                deleted=tuple(earlier.list_names(partition)),
            )
            for partition in range(shape.partitions)
        },
    )
    end = f"_{shape.stamp(timedelta(seconds=3 + 2 * number))}" if shape.has_layout_2 else ""
    start = f"{shape.timeline_folder}/{started}"
    return {
        f"{start}.clean.requested": b"",
        f"{start}.clean.inflight": b"",
        f"{start}{end}.clean": metadata.encode(),
    }
