"""Find the file groups that a write touches, from its completed file or its inflight profile.

Before it writes data files, a Hudi writer records its workload profile. For every partition, the
profile first counts the new records, which have no file group yet, then lists each group that gets
updates. Source: BaseSparkCommitActionExecutor.saveWorkloadProfileMetadataToInflight,
HoodieCommitMetadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.codecs.avro_container import parse_file_name, read_strings
from reconciler.hudi.timeline.commit_projection import COUNT, TEXT, CommitProjection

_WANTED: Final = CommitProjection(
    stat_fields=(("fileId", TEXT), ("path", TEXT), ("numInserts", COUNT)),
    with_replaced_groups=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFootprint:
    """The file groups and files that a write touches.

    ``groups``: partition -> file ids that are written or replaced. ``insert_partitions``:
    partitions that get new records in groups that are not known yet. ``files``: partition and name
    of every written file, where known. ``operation``: Hudi's name of the operation
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
        record = _WANTED.read(data, path)
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
