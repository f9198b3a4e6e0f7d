"""Read the files of writes on the timeline: HoodieCommitMetadata, HoodieReplaceCommitMetadata.

One file may hold a hundred thousand write statistics, so each reader decodes only the fields that
it needs. Layout 1 uses JSON, layout 2 Avro. The first byte decides, because upgraded tables hold
both.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any, Final, Self

import numpy as np

from reconciler.arrays import Codes, Integers, Mask
from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_binary import decoding, parse_schema, require
from reconciler.hudi.codecs.avro_container import (
    decode_with_schema,
    is_container,
    parse_file_name,
    read_strings,
    read_text_map,
)
from reconciler.lazy_dataclass import dataclass

#: types of fields that may be null, in Hudi's order
TEXT: Final = ("null", "string")
COUNT: Final = ("null", "long")

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_REPLACES: Final = "HoodieReplaceCommitMetadata"
_NAMES: Final = frozenset({"HoodieCommitMetadata", _REPLACES})
_MORE: Final[dict[str, Any]] = {
    "extraMetadata": ["null", {"type": "map", "values": "string"}],
    "operationType": ["null", "string"],
}
_IDS: Final = ["null", {"type": "map", "values": {"type": "array", "items": "string"}}]
_MAX_COUNT: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitProjection:
    """The fields to read of HoodieCommitMetadata and HoodieReplaceCommitMetadata.

    ``stat_fields``: names and types of write statistic fields. ``with_replaced_groups``: read the
    replaced file groups too. Extra metadata and operation are always read. No field has a default,
    so an Avro record that lacks one is damaged.
    """

    stat_fields: tuple[tuple[str, tuple[str, str]], ...]
    with_replaced_groups: bool = False

    def read(self, data: bytes, path: str) -> dict[str, Any]:
        """Decode the record of a file.

        Raises FormatError naming ``path``, also for an empty file.
        """
        if not data:
            raise FormatError(
                path,
                "is empty, so the files it wrote are unknown",
                "restore it from a copy or roll the instant back with Hudi",
            )
        with decoding(path, "the commit metadata"):
            if is_container(data):
                record = decode_with_schema(data, path, self._reader_schema)
            else:
                record = _parse_json(data)
            operation = record.get("operationType")
            require(operation is None or isinstance(operation, str), "its operation is not a text")
            return record

    def _reader_schema(self, name: str, _written: str = "") -> Any:
        require(name in _NAMES, f"it holds a {name} record")
        return _build_schema(self, name)


_UPDATES: Final = CommitProjection(stat_fields=(("prevCommit", TEXT),), with_replaced_groups=True)
_FOOTPRINT: Final = CommitProjection(
    stat_fields=(("fileId", TEXT), ("path", TEXT), ("numInserts", COUNT)),
    with_replaced_groups=True,
)
_PROFILE: Final = CommitProjection(stat_fields=(("fileId", TEXT), ("prevCommit", TEXT)))
_COUNTS: Final = CommitProjection(
    stat_fields=(
        ("path", TEXT),
        ("numWrites", COUNT),
        ("numInserts", COUNT),
        ("totalWriteBytes", COUNT),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """The outcome of a write.

    ``has_updates``: partition -> whether any written file replaces an older version. ``replaced``:
    partition -> ids of the file groups that a replacecommit replaced.
    """

    operation: str | None
    has_updates: Mapping[str, bool]
    replaced: Mapping[str, tuple[str, ...]]
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, path: str, *, replaces: bool = False) -> Self:
        """Decode a completed write, or an inflight one, which holds a workload profile.

        ``replaces``: the file is a completed replacecommit, so it must name the groups it replaced.
        Raises FormatError naming ``path``, also for an empty file, whose content is lost.
        """
        record = _UPDATES.read(data, path)
        with decoding(path, "the commit metadata"):
            stats = record.get("partitionToWriteStats") or {}
            replaced = record.get("partitionToReplaceFileIds")
            is_complete = replaced is not None or not replaces
            require(is_complete, "it does not name the file groups it replaced")
            return cls(
                operation=record.get("operationType"),
                has_updates={
                    _check_text(p): any(map(_has_predecessor, s or ())) for p, s in stats.items()
                },
                replaced={
                    _check_text(p): tuple(map(_check_text, read_strings(ids)))
                    for p, ids in (replaced or {}).items()
                },
                extra=read_text_map(record.get("extraMetadata")),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFootprint:
    """The file groups and files that a write touches, by its completed file or inflight profile.

    Before it writes data files, a Hudi writer records its workload profile. For every partition,
    the profile first counts the new records, which have no file group yet, then lists each group
    that gets updates (BaseSparkCommitActionExecutor.saveWorkloadProfileMetadataToInflight).

    ``groups``: partition -> file ids that are written or replaced. ``insert_partitions``:
    partitions that get new records in groups that are not known yet. ``files``: partition and name
    of every written file, if known. ``operation``: Hudi's name of the operation
    (WriteOperationType).
    """

    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    insert_partitions: frozenset[str] = frozenset()
    files: frozenset[tuple[str, str]] = frozenset()
    operation: str | None = None

    @property
    def is_empty(self) -> bool:
        return not self.groups and not self.insert_partitions

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a completed or inflight file of a write.

        Raises FormatError naming ``path``, also for an empty file.
        """
        record = _FOOTPRINT.read(data, path)
        with decoding(path, "the commit metadata"):
            groups: dict[str, set[str]] = {}
            inserts: set[str] = set()
            files: set[tuple[str, str]] = set()
            for partition, stats in (record.get("partitionToWriteStats") or {}).items():
                for stat in stats or ():
                    if file_id := stat.get("fileId"):
                        groups.setdefault(partition, set()).add(str(file_id))
                    elif stat.get("numInserts"):
                        inserts.add(partition)
                    if written := stat.get("path"):
                        files.add((partition, parse_file_name(str(written), path)))
            for partition, ids in (record.get("partitionToReplaceFileIds") or {}).items():
                groups.setdefault(partition, set()).update(read_strings(ids))
            return cls(
                groups={partition: frozenset(ids) for partition, ids in groups.items()},
                insert_partitions=frozenset(inserts),
                files=frozenset(files),
                operation=record.get("operationType"),
            )


def parse_updated_slices(data: bytes, path: str) -> frozenset[tuple[str, str, str]]:
    """Return partition, file id and base instant of each slice that a pending write updates.

    They are in the workload profile of its inflight file. An empty file, as bulk inserts leave it,
    updates nothing. Raises FormatError naming ``path``.
    """
    if not data:
        return frozenset()
    record = _PROFILE.read(data, path)
    with decoding(path, "the workload profile"):
        return frozenset(
            (_check_text(partition), str(stat["fileId"]), str(stat.get("prevCommit") or ""))
            for partition, stats in (record.get("partitionToWriteStats") or {}).items()
            for stat in stats or ()
            if stat.get("fileId")
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteStats:
    """Write statistics, one element each, in no particular order.

    ``rows``: int64, numWrites. ``bytes``: int64, totalWriteBytes. ``is_base``: the statistic is of
    a base file, whose name does not start with a dot. ``partition``: int32, index into
    ``partitions``. ``inserts``: int64, numInserts, rows that are new in the table.
    """

    operation: str | None
    extra: Mapping[str, str]
    rows: Integers
    bytes: Integers
    is_base: Mask
    partitions: tuple[str, ...]
    partition: Codes
    inserts: Integers

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
        record = _COUNTS.read(data, path)
        with decoding(path, "the write statistics"):
            by_partition = record.get("partitionToWriteStats") or {}
            counts = [len(stats or ()) for stats in by_partition.values()]
            stats = [stat for stats in by_partition.values() for stat in stats or ()]
            return cls(
                operation=record.get("operationType"),
                extra=read_text_map(record.get("extraMetadata")),
                rows=_read_counts(stats, "numWrites"),
                bytes=_read_counts(stats, "totalWriteBytes"),
                is_base=np.array([_is_base(stat.get("path")) for stat in stats], np.bool_),
                partitions=tuple(by_partition),
                partition=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
                inserts=_read_counts(stats, "numInserts"),
            )


@cache
def _build_schema(wanted: CommitProjection, name: str) -> Any:
    stat = {
        "type": "record",
        "name": "HoodieWriteStat",
        "fields": [{"name": field, "type": [*kinds]} for field, kinds in wanted.stat_fields],
    }
    stats = {"type": "map", "values": {"type": "array", "items": stat}}
    fields: dict[str, Any] = {"partitionToWriteStats": ["null", stats], **_MORE}
    if wanted.with_replaced_groups and name == _REPLACES:
        fields["partitionToReplaceFileIds"] = _IDS
    schema = {
        "type": "record",
        "name": name,
        "namespace": _NAMESPACE,
        "fields": [{"name": field, "type": kinds} for field, kinds in fields.items()],
    }
    return parse_schema(json.dumps(schema), "")


def _parse_json(data: bytes) -> dict[str, Any]:
    require(data[:1] == b"{", "it is neither Avro nor JSON")
    record = json.loads(data)
    require(isinstance(record, dict), "it is not a JSON object")
    require("partitionToWriteStats" in record, "partitionToWriteStats is missing")
    return dict(record)


def _has_predecessor(stat: Mapping[str, Any]) -> bool:
    previous = stat.get("prevCommit")
    return previous is not None and str(previous).lower() != "null"


def _check_text(value: str) -> str:
    """Return the text; raises ValueError for a lone surrogate, which only JSON allows."""
    value.encode()
    return value


def _read_counts(stats: list[Mapping[str, Any]], key: str) -> Integers:
    values = [stat.get(key) or 0 for stat in stats]
    whole = all(type(value) is int and 0 <= value <= _MAX_COUNT for value in values)
    require(whole, f"a {key} is not a count")
    return np.array(values, np.int64)


def _is_base(path: Any) -> bool:
    return isinstance(path, str) and not path.rpartition("/")[2].startswith(".")
