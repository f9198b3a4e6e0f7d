"""Read Hudi's own column statistics of a table, and check that readers using them lose no rows."""

from __future__ import annotations

import math

from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.log_blocks import BlockType, get_block_schema
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata.indexed_columns import read_indexed_columns
from reconciler.hudi.metadata.record_encoder import decode_stats
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.storage.open import open_storage

BOTH = ("column_stats", "partition_stats")


def load_metadata(path):
    """Return the metadata table and the properties of a table."""
    storage = open_storage(str(path))
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    live = properties.metadata_partitions
    opened = open_metadata_table(
        storage, version=properties.table_version, data=timeline, live_partitions=live
    )
    return opened, properties


def read_entries(path):
    """Return least, greatest, nulls and values by (file or partition, column) for each index."""
    opened, properties = load_metadata(path)
    return {
        name: {
            key: said
            for newest in opened.list_slices(name)
            for key, said in _read_slice(opened, newest)
        }
        for name in BOTH
        if name in properties.metadata_partitions
    }


def _read_slice(opened, newest):
    sources = []
    if newest.base:
        place = newest.file_path(newest.base[0])
        parsed = hfile_reader.parse_hfile(opened.source.read(place), place)
        sources.append((parsed, parsed.info[b"schema"].decode(), place))
    sources += [
        (hfile_reader.parse_hfile(block.content, block.path), get_block_schema(block), block.path)
        for block in opened.read_visible_blocks(newest)
        if block.type is BlockType.HFILE_DATA
    ]
    for parsed, schema, place in sources:
        for _key, value in parsed.scan_all():
            stats = decode_stats(value, schema, place)
            least, greatest = (_plain_value(stats[bound]) for bound in ("minValue", "maxValue"))
            yield (
                (stats["fileName"], stats["columnName"]),
                (least, greatest, stats["nullCount"], stats["valueCount"]),
            )


def _plain_value(bound):
    """Return the value of a bound; NaN as text, so that it equals itself."""
    value = bound and bound[1]["value"]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def find_gaps(path, files):
    """Return what readers rely on and is missing: entries of ``files`` (names), or an index."""
    opened, properties = load_metadata(path)
    if "column_stats" not in properties.metadata_partitions:
        return ["partition_stats alone"] * ("partition_stats" in properties.metadata_partitions)
    said = read_entries(path)
    columns = read_indexed_columns(opened)
    return [
        (name, column)
        for name in files
        for column in columns
        if (name, column) not in said["column_stats"]
    ] or ["no columns"] * (not columns)
