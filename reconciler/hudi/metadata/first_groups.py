"""Build the first file groups of a metadata partition, as Hudi does when it builds one anew.

Every file group gets a log file that deletes nothing, and a base file if it has records. Records
are spread by their keys' hashes. Source: HoodieBackedTableMetadataWriter (initializeFromFilesystem,
generateUniqueInstantTime, initializeFileGroups), HoodieTableMetadataUtil (createIndexInitTimestamp,
estimateFileGroupCount), HoodieMetadataConfig (0.15 to 1.2).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from reconciler.arrays import to_arrow
from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.metadata.deltacommit import NewFileGroup
from reconciler.hudi.metadata.index_keys import find_record_groups
from reconciler.hudi.metadata.listing import (
    ALL_PARTITIONS,
    FileSizes,
    encode_listing,
    partition_key,
)
from reconciler.hudi.metadata.own_timeline import SOLO, SUFFIXED, VERSION_8
from reconciler.hudi.metadata.sync_decisions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
)
from reconciler.hudi.metadata.table import FILES

#: prefix of the names of file groups
_PREFIXES: Final = {
    FILES: "files",
    COLUMN_STATS: "col-stats",
    BLOOM_FILTERS: "bloom-filters",
    RECORD_INDEX: "record-index",
    PARTITION_STATS: "partition-stats",
}
#: the partitions that can be built
BUILT: Final = frozenset(_PREFIXES)
#: the order in which Hudi builds them, of which their instants show
_ORDER: Final = (FILES, COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX, PARTITION_STATS)
_ORDER_6: Final = (FILES, BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX)
#: number of file groups by Hudi's defaults; that of the record index depends on its records
_COUNTS: Final = {FILES: 1, COLUMN_STATS: 2, BLOOM_FILTERS: 4, PARTITION_STATS: 1}
#: number of file groups of the record index: at least, and at most
_FEWEST: Final = 10
_MOST: Final = 10_000
#: records that fit into a file group of the record index, which gets half as many at first
_RECORDS: Final = (1 << 30) // 48
_GROWTH: Final = 2
#: version 6: number after an instant's time in the first deltacommit that builds a partition
_FIRST: Final = 10
#: of an instant's time
_DIGITS: Final = 17
_GROUP: Final = re.compile(r"\.?(?P<prefix>[a-z-]+?)-(?P<number>\d{4,})-0_.*")


def name_group(partition: str, number: int) -> str:
    """Return the name of a file group.

    >>> name_group("column_stats", 1)
    'col-stats-0001-0'
    """
    return f"{_PREFIXES[partition]}-{number:04}-0"


def name_first_instants(
    version: int, newest: str | None, used: Collection[str], count: int
) -> list[str]:
    """Return unused instants of deltacommits that build a partition each.

    ``newest``: the newest completed instant of the data table, None without any. ``used``: instants
    on the metadata table's timeline. Raises UnsupportedError for an instant that version 6 cannot
    hang a number on.

    >>> name_first_instants(9, "20260101000000000", {"00000000000000000"}, 2)
    ['00000000000000001', '00000000000000002']
    >>> name_first_instants(6, "20260101000000000", {"20260101000000000010"}, 1)
    ['20260101000000000011']
    >>> name_first_instants(6, None, (), 1)
    ['00000000000000010']
    """
    start = SOLO if newest is None else newest
    if version < VERSION_8 and len(start) not in (len(SOLO), _DIGITS):
        raise UnsupportedError(
            f"the newest instant {start} has no milliseconds, so Hudi would not read an index that "
            "is named after it; write to the table once"
        )
    names: list[str] = []
    number = 0 if version >= VERSION_8 else _FIRST
    while len(names) < count:
        name = f"{SOLO}{number:03}" if version >= VERSION_8 else f"{start}{number:03}"
        if name not in used:
            names.append(name)
        number += 1
    assert version >= VERSION_8 or newest is None or len(names[0]) == SUFFIXED
    return names


def sort_partitions(version: int, names: Collection[str]) -> tuple[str, ...]:
    """Return partitions in the order in which Hudi builds them.

    >>> sort_partitions(6, {"column_stats", "bloom_filters", "files"})
    ('files', 'bloom_filters', 'column_stats')
    """
    order = _ORDER if version >= VERSION_8 else _ORDER_6
    return tuple(name for name in order if name in names)


def count_groups(partition: str, names: Iterable[str]) -> int | None:
    """Return how many file groups the files of a metadata partition are in.

    None if there are none, or some are missing: then the number is unknown.

    >>> count_groups("files", [".files-0000-0_1.log.1_0-0-0", "files-0000-0_0-1-2_1.hfile"])
    1
    >>> count_groups("column_stats", [".col-stats-0001-0_1.log.1_0-0-0"])
    """
    matches = (_GROUP.fullmatch(name) for name in names)
    numbers = {int(m["number"]) for m in matches if m and m["prefix"] == _PREFIXES[partition]}
    return len(numbers) if numbers and max(numbers) == len(numbers) - 1 else None


def choose_group_count(partition: str, records: int) -> int:
    """Return the number of file groups by Hudi's defaults.

    >>> choose_group_count("record_index", 1000), choose_group_count("record_index", 200_000_000)
    (10, 17)
    """
    if partition != RECORD_INDEX:
        return _COUNTS[partition]
    return min(max(records * _GROWTH // _RECORDS, _FEWEST), _MOST)


def build_listing_group(partitions: Mapping[str, FileSizes], schema: str) -> NewFileGroup:
    """Return the only file group of ``files``.

    ``partitions``: path ("" in a table without partitions) -> names and sizes of its data files.
    """
    paths = {partition_key(path): names for path, names in partitions.items()}
    changes: dict[str, FileSizes] = {ALL_PARTITIONS: dict.fromkeys(paths, 0), **paths}
    content = hfile_writer.encode_hfile(encode_listing(schema, changes), schema, is_base_file=True)
    return NewFileGroup(
        partition=FILES, group=name_group(FILES, 0), data=content, rows=len(changes)
    )


def build_groups(
    partition: str, count: int, keys: Any, values: Any, schema: str
) -> Iterator[NewFileGroup]:
    """Yield file groups of records in any order; ``keys`` are distinct large strings."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    group_numbers = find_record_groups(keys.cast(pa.string()), count)
    for number in range(count):
        rows = to_arrow(np.flatnonzero(group_numbers == number))
        rows = rows.take(pc.sort_indices(keys.take(rows)))
        data = None
        if len(rows):
            group_keys = keys.take(rows).cast(pa.binary())
            data = hfile_writer.encode_hfile_arrays(
                group_keys, values, schema, rows=rows, is_base_file=True
            )
        yield NewFileGroup(
            partition=partition, group=name_group(partition, number), data=data, rows=len(rows)
        )
