"""Tables in a store of flat objects, with a metadata table, of any number of partitions."""

from __future__ import annotations

from pathlib import Path

from reconciler.hudi.metadata.new_metadata_table import PROPERTIES as METADATA_PROPERTIES
from reconciler.hudi.metadata.new_metadata_table import (
    build_first_listing,
    build_metadata_properties,
)
from reconciler.hudi.timeline.active import Timeline
from tests.bench.make_table import Shape, make_table
from tests.flat_store import ROOT, FlatStore

_PROPERTIES = f"{ROOT}/.hoodie/hoodie.properties"


def put_table(folder: Path, shape: Shape) -> FlatStore:
    """Make a table in a folder and load it into a new store, where it has a metadata table."""
    make_table(folder, shape)
    store = FlatStore()
    store.load(folder)
    add_listing(store, shape)
    return store


def add_listing(store: FlatStore, shape: Shape) -> None:
    """Give the table a metadata table that lists its files."""
    partitions: dict[str, dict[str, int | None]] = {}
    for name, data in store.objects.items():
        folder, _, file = name.removeprefix(f"{ROOT}/").rpartition("/")
        if file.endswith(".parquet"):
            partitions.setdefault(folder, {})[file] = len(data)
    first = build_first_listing(
        store,  # type: ignore[arg-type] # a first deltacommit reads nothing
        version=9,
        data=Timeline.from_files([]),
        completion_time=shape.instants[0],
        partitions=partitions,
    )
    store.create_all({file.path: file.data for file in first})
    store.create_all({METADATA_PROPERTIES: build_metadata_properties("t", 9)})
    store.objects[_PROPERTIES] += b"hoodie.table.metadata.partitions=files\n"
