"""What Hudi's own index says of a table, and whether a reader that believes it loses rows."""

from __future__ import annotations

import math

from reconciler.hudi import hfile
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.logfile import BlockType, schema_text
from reconciler.hudi.metadata_columns import indexed_columns
from reconciler.hudi.metadata_records import stats_of
from reconciler.hudi.metadata_table import open_metadata
from reconciler.storage.open import open_storage

BOTH = ("column_stats", "partition_stats")


def metadata_of(path):
    """The metadata table of a table, and the properties of the table."""
    storage = open_storage(str(path))
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    live = properties.metadata_partitions
    opened = open_metadata(storage, version=properties.table_version, data=timeline, live=live)
    return opened, properties


def entries(path):
    """(file or partition, column) -> least, greatest, nulls, values; by live index partition."""
    opened, properties = metadata_of(path)
    return {
        name: {key: said for newest in opened.slices(name) for key, said in _said(opened, newest)}
        for name in BOTH
        if name in properties.metadata_partitions
    }


def _said(opened, newest):
    sources = []
    if newest.base:
        place = newest.path(newest.base[0])
        parsed = hfile.parse(opened.source.read(place), place)
        sources.append((parsed, parsed.info[b"schema"].decode(), place))
    sources += [
        (hfile.parse(block.content, block.path), schema_text(block), block.path)
        for block in opened.blocks(newest)
        if block.type is BlockType.HFILE_DATA
    ]
    for parsed, schema, place in sources:
        for _key, value in parsed.items():  # noqa: PERF102 - no dict
            stats = stats_of(value, schema, place)
            least, greatest = (_plain(stats[bound]) for bound in ("minValue", "maxValue"))
            yield (
                (stats["fileName"], stats["columnName"]),
                (least, greatest, stats["nullCount"], stats["valueCount"]),
            )


def _plain(bound):
    """Its value; NaN as a text, so that it is the same as itself."""
    value = bound and bound[1]["value"]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def gaps(path, files):
    """What readers count on and is not there: entries of ``files`` (names), or one of both."""
    opened, properties = metadata_of(path)
    if "column_stats" not in properties.metadata_partitions:
        return ["partition_stats alone"] * ("partition_stats" in properties.metadata_partitions)
    said = entries(path)
    columns = indexed_columns(opened)
    return [
        (name, column)
        for name in files
        for column in columns
        if (name, column) not in said["column_stats"]
    ] or ["no columns"] * (not columns)
