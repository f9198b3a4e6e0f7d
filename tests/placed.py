"""Tables with a record index, and what it says: where every key is, in the whole table."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.hudi import hfile_write
from reconciler.hudi.arrow import integers
from reconciler.hudi.load import PROPERTIES, load_properties, load_timeline
from reconciler.hudi.metadata_build import instant_of
from reconciler.hudi.metadata_commit import BaseContent, Deltacommit
from reconciler.hudi.metadata_index import DEFINITIONS
from reconciler.hudi.metadata_keys import record_groups
from reconciler.hudi.metadata_read import read_listing
from reconciler.hudi.metadata_records import MetadataRecords
from reconciler.hudi.metadata_table import open_metadata
from reconciler.hudi.metadata_timeline import ROOT
from reconciler.hudi.names import BaseName
from reconciler.hudi.properties import with_value
from reconciler.hudi.record_index import RecordIndex
from reconciler.state.observe import observe
from reconciler.state.view import newest_bases, view_of
from reconciler.storage.open import open_storage
from reconciler.transaction.metadata import record_index_of
from tests.rewrites import after, milliseconds

PARTITIONS = "hoodie.table.metadata.partitions"
#: before all that tests write, and after what begins a metadata table
LONG_AGO = "20200101000000000"


def newest_files(storage, now_ms):
    """Partition path, name and keys of every newest base file."""
    state = observe(storage, None, observed_ms=now_ms)
    for row in newest_bases(view_of(state)).tolist():
        path = state.files.partitions[state.files.partition[row]]
        name = state.files.name[row].as_py()
        data = storage.read(f"{path}/{name}" if path else name)
        keys = pq.read_table(pa.BufferReader(data), columns=["_hoodie_record_key"]).column(0)
        yield path, name, keys.combine_chunks()


def index_keys(path, now_ms, *, groups=2, by_partition=False):
    """Give a table a record index of its rows, as Hudi begins one.

    ``by_partition``: say of it that every partition has its own.
    """
    storage = open_storage(str(path))
    properties, timeline = _read(storage)
    version, live = properties.table_version, properties.metadata_partitions
    table = open_metadata(storage, version=version, data=timeline, live=live)
    schema = read_listing(table).schema
    records = MetadataRecords(schema=schema, path=ROOT)
    times = (timeline.newest_time, table.timeline.newest_time)
    newest = max((time for time in times if time and time > LONG_AGO), default=LONG_AGO)
    keys, values = [pa.array([], pa.string())], []
    for folder, name, some in newest_files(storage, now_ms):
        keys.append(some)
        values += [records.record_location(folder, name, milliseconds(newest))] * len(some)
    contents = _contents(pa.concat_arrays(keys), pa.array(values, pa.binary()), schema, groups)
    deltacommit = Deltacommit(
        table=table,
        instant=instant_of(after(newest, 1), version),
        completed=after(newest, 2),
        schema=schema,
        cleaned=(),
    )
    for write in deltacommit.first_files(contents, {}):
        storage.create(write.path, write.data)
    if by_partition:
        said = {"record_index": {"indexOptions": {"isPartitioned": "true"}}}
        storage.replace(DEFINITIONS, json.dumps({"indexDefinitions": said}).encode())
    text = with_value(
        storage.read(PROPERTIES), PARTITIONS, ",".join([*live, "record_index"]), PROPERTIES
    )
    storage.replace(PROPERTIES, text)


def _contents(keys, values, schema, groups):
    chosen, found = record_groups(keys, groups), []
    for number in range(groups):
        rows = [at for at, group in enumerate(chosen.tolist()) if group == number]
        rows = sorted(rows, key=lambda at: keys[at].as_py().encode())
        data = None
        if rows:
            at = integers(np.array(rows, np.int64))
            data = hfile_write.encode_arrays(
                keys.take(at).cast(pa.binary()), values.take(at), schema, is_base_file=True
            )
        group = f"record-index-{number:04}-0"
        found.append(BaseContent(partition="record_index", group=group, data=data, rows=len(rows)))
    return found


def _read(storage):
    properties = load_properties(storage)
    return properties, load_timeline(storage, properties)


def index_of(path) -> RecordIndex | None:
    """The record index as it is."""
    storage = open_storage(str(path))
    return record_index_of(storage, *_read(storage))


def told(path, keys):
    """Key -> partition path and file id, of those keys that the index knows."""
    storage, index = open_storage(str(path)), index_of(path)
    found = {}
    keys = pa.array(keys, pa.string())
    for group in range(len(index.slices)):
        some = keys.filter(pc.equal(pa.array(index.groups(keys)), group))
        places = index.places(storage, group, some)
        for key, place in zip(places.key.tolist(), places.place.tolist(), strict=True):
            found[some[key].as_py()] = places.known[place]
    return found


def held(path, now_ms):
    """Key -> partition path and file id, by the files; fails where a key is in two."""
    found = {}
    for folder, name, keys in newest_files(open_storage(str(path)), now_ms):
        for key in keys.to_pylist():
            assert key not in found, f"{key} is there twice"
            found[key] = (folder, BaseName.parse(name).file_id)
    return found
