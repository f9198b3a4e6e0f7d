"""Give tables a record index, and read the location of every key from it or from the files."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import to_arrow
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.slice_reader import SliceReadOptions, read_slice
from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.files.names import BaseName, LogName
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
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import get_slice_files
from reconciler.storage.open import open_storage
from reconciler.transaction.metadata.sync import open_record_index
from tests.manual_clustering import add_milliseconds, to_epoch_ms

PARTITIONS = "hoodie.table.metadata.partitions"
#: earlier than all test writes, later than the first instant of a metadata table
LONG_AGO = "20200101000000000"


def read_newest_keys(storage):
    """Yield partition path, file id and keys of every file slice that readers see."""
    scan = open_scan(storage, ReadRequest(), is_checked=True)
    options = SliceReadOptions(
        rules=scan.rules,
        schema=scan.table_schema,
        committed=scan.committed,
        columns=(RECORD_KEY,),
    )
    for row in range(len(scan.slices)):
        files = get_slice_files(scan, row)
        path, _, name = (files.base or files.logs[0]).rpartition("/")
        parsed = LogName.parse(name) or BaseName.parse(name)
        batches = [pa.array([], pa.string())]
        batches += [one.column(0).cast(pa.string()) for one in read_slice(files, options, storage)]
        yield path, parsed.file_id, pa.concat_arrays(batches)


def add_record_index(path, *, groups=2, by_partition=False):
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
    for folder, file_id, some in read_newest_keys(storage):
        keys.append(some)
        values += [records.encode_record_location(folder, file_id, to_epoch_ms(newest))] * len(some)
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


def find_places(path):
    """Return partition path and file id by key, from the files; fails if a key occurs twice."""
    found = {}
    for folder, file_id, keys in read_newest_keys(open_storage(str(path))):
        for key in keys.to_pylist():
            assert key not in found, f"{key} is there twice"
            found[key] = (folder, file_id)
    return found
