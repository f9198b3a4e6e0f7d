"""Give tables a record index, and read the location of every key from it or from the files."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.arrays import to_arrow
from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.load import PROPERTIES, load_properties, load_timeline
from reconciler.hudi.metadata.deltacommit import Deltacommit, NewFileGroup
from reconciler.hudi.metadata.index_build import name_build_instant
from reconciler.hudi.metadata.index_definitions import DEFINITIONS
from reconciler.hudi.metadata.index_keys import find_record_groups
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.record_encoder import RecordEncoder
from reconciler.hudi.metadata.record_index import RecordIndex
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.hudi.table.properties import replace_value
from reconciler.state.current_files import find_newest_bases
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.transaction.metadata.sync import open_record_index
from tests.manual_clustering import add_milliseconds, to_epoch_ms

PARTITIONS = "hoodie.table.metadata.partitions"
#: earlier than all test writes, later than the first instant of a metadata table
LONG_AGO = "20200101000000000"


def read_newest_keys(storage, now_ms):
    """Yield partition path, name and keys of every newest base file."""
    state = observe(storage, None, observed_ms=now_ms)
    for row in find_newest_bases(state.view).tolist():
        path = state.files.partitions[state.files.partition[row]]
        name = state.files.name[row].as_py()
        data = storage.read(f"{path}/{name}" if path else name)
        keys = pq.read_table(pa.BufferReader(data), columns=["_hoodie_record_key"]).column(0)
        yield path, name, keys.combine_chunks()


def add_record_index(path, now_ms, *, groups=2, by_partition=False):
    """Add a record index of a table's rows, as Hudi initializes it.

    ``by_partition``: mark the index as partitioned.
    """
    storage = open_storage(str(path))
    properties, timeline = _load_timeline(storage)
    version, live = properties.table_version, properties.metadata_partitions
    table = open_metadata_table(storage, version=version, data=timeline, live_partitions=live)
    schema = read_metadata_listing(table).schema
    records = RecordEncoder(schema=schema, path=ROOT)
    times = (timeline.newest_time, table.timeline.newest_time)
    newest = max((time for time in times if time and time > LONG_AGO), default=LONG_AGO)
    keys, values = [pa.array([], pa.string())], []
    for folder, name, some in read_newest_keys(storage, now_ms):
        keys.append(some)
        values += [records.encode_record_location(folder, name, to_epoch_ms(newest))] * len(some)
    contents = _base_contents(pa.concat_arrays(keys), pa.array(values, pa.binary()), schema, groups)
    deltacommit = Deltacommit(
        table=table,
        instant=name_build_instant(add_milliseconds(newest, 1), version),
        completion_time=add_milliseconds(newest, 2),
        schema=schema,
    )
    for write in deltacommit.build_first_files(contents, {}):
        storage.create(write.path, write.data)
    if by_partition:
        said = {"record_index": {"indexOptions": {"isPartitioned": "true"}}}
        storage.replace(DEFINITIONS, json.dumps({"indexDefinitions": said}).encode())
    text = replace_value(
        storage.read(PROPERTIES), PARTITIONS, ",".join([*live, "record_index"]), PROPERTIES
    )
    storage.replace(PROPERTIES, text)


def _base_contents(keys, values, schema, groups):
    chosen, found = find_record_groups(keys, groups), []
    for number in range(groups):
        rows = [at for at, group in enumerate(chosen.tolist()) if group == number]
        rows = sorted(rows, key=lambda at: keys[at].as_py().encode())
        data = None
        if rows:
            at = to_arrow(np.array(rows, np.int64))
            data = hfile_writer.encode_hfile_arrays(
                keys.take(at).cast(pa.binary()), values.take(at), schema, is_base_file=True
            )
        group = f"record-index-{number:04}-0"
        found.append(NewFileGroup(partition="record_index", group=group, data=data, rows=len(rows)))
    return found


def _load_timeline(storage):
    properties = load_properties(storage)
    return properties, load_timeline(storage, properties)


def load_record_index(path) -> RecordIndex | None:
    """Return the current record index, None if there is none."""
    storage = open_storage(str(path))
    return open_record_index(storage, *_load_timeline(storage))


def read_indexed_places(path, keys):
    """Return partition path and file id by key, for the keys in the record index."""
    storage, index = open_storage(str(path)), load_record_index(path)
    found = {}
    keys = pa.array(keys, pa.string())
    for group in range(len(index.slices)):
        some = keys.filter(pc.equal(pa.array(index.find_groups(keys)), group))
        places = index.locate_keys(storage, group, some)
        for key, place in zip(
            places.key_index.tolist(), places.location_code.tolist(), strict=True
        ):
            found[some[key].as_py()] = places.locations[place]
    return found


def find_places(path, now_ms):
    """Return partition path and file id by key, from the files; fails if a key occurs twice."""
    found = {}
    for folder, name, keys in read_newest_keys(open_storage(str(path)), now_ms):
        for key in keys.to_pylist():
            assert key not in found, f"{key} is there twice"
            found[key] = (folder, BaseName.parse(name).file_id)
    return found
