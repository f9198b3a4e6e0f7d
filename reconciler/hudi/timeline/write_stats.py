"""Read the write statistics of a commit as columns: files, rows and bytes.

``commit`` reads the rest of the same files.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.avro_container import read_text_map
from reconciler.hudi.timeline.commit_projection import COUNT, TEXT, CommitProjection

_WANTED: Final = CommitProjection(
    stat_fields=(
        ("path", TEXT),
        ("numWrites", COUNT),
        ("numInserts", COUNT),
        ("totalWriteBytes", COUNT),
    ),
)
_MOST: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteStats:
    """Write statistics, one element each, in no particular order.

    ``rows``: int64, numWrites. ``bytes``: int64, totalWriteBytes. ``is_base``: the statistic is of
    a base file, whose name does not start with a dot. ``partition``: int32, index into
    ``partitions``. ``inserts``: int64, numInserts, rows that are new in the table.
    """

    operation: str | None
    extra: Mapping[str, str]
    rows: NDArray[np.int64]
    bytes: NDArray[np.int64]
    is_base: NDArray[np.bool_]
    partitions: tuple[str, ...]
    partition: NDArray[np.int32]
    inserts: NDArray[np.int64]

    def count_new_rows(self) -> dict[str, int]:
        """Return the number of new rows per partition, without partitions that have none."""
        total = np.zeros(len(self.partitions), np.int64)
        np.add.at(total, self.partition, self.inserts)
        return {self.partitions[code]: int(total[code]) for code in np.flatnonzero(total)}

    @classmethod
    def parse(cls, data: builtins.bytes, path: str) -> Self:
        """Decode a completed commit, deltacommit or replacecommit.

        Raises FormatError naming ``path``, also for an empty file.
        """
        record = _WANTED.read(data, path)
        with decoding(path, "the write statistics"):
            by_partition = record.get("partitionToWriteStats") or {}
            lists = [partition_stats or () for partition_stats in by_partition.values()]
            stats = [stat for partition_stats in lists for stat in partition_stats]
            return cls(
                operation=record.get("operationType"),
                extra=read_text_map(record.get("extraMetadata")),
                rows=_read_counts(stats, "numWrites"),
                bytes=_read_counts(stats, "totalWriteBytes"),
                is_base=np.array([_is_base(stat.get("path")) for stat in stats], np.bool_),
                partitions=tuple(by_partition),
                partition=np.repeat(
                    np.arange(len(lists), dtype=np.int32),
                    [len(partition_stats) for partition_stats in lists],
                ),
                inserts=_read_counts(stats, "numInserts"),
            )


def _read_counts(stats: list[Mapping[str, Any]], key: str) -> NDArray[np.int64]:
    values = [stat.get(key) or 0 for stat in stats]
    whole = all(type(value) is int and 0 <= value <= _MOST for value in values)
    require(whole, f"a {key} is not a count")
    return np.array(values, np.int64)


def _is_base(path: Any) -> bool:
    return isinstance(path, str) and not path.rpartition("/")[2].startswith(".")
