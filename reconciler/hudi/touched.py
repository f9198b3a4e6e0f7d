"""Which file groups a write goes to: of a completed one, or of one that has announced its profile.

A writer that has sorted its records writes down where they go before it begins: for every partition
first how many are new, without a file group, then each group that gets updates. Source:
BaseSparkCommitActionExecutor.saveWorkloadProfileMetadataToInflight, HoodieCommitMetadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from reconciler.errors import FormatError
from reconciler.hudi.avro import file_name, names
from reconciler.hudi.commit_record import COUNT, TEXT, Wanted
from reconciler.hudi.schemaless import decoding, require

_WANTED: Final = Wanted(
    stat=(("fileId", TEXT), ("path", TEXT), ("numInserts", COUNT)), more=True, replaced=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """``groups``: partition -> file ids that are written or replaced.

    ``inserts``: partitions that get new records without saying into which groups. ``files``:
    partition and name of every file that is written, where it is said already. ``operation``:
    Hudi's name of what it does (WriteOperationType).
    """

    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    inserts: frozenset[str] = frozenset()
    files: frozenset[tuple[str, str]] = frozenset()
    operation: str | None = None

    @property
    def is_empty(self) -> bool:
        return not self.groups and not self.inserts

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """What a completed or an inflight file of a write says.

        Raises FormatError naming ``path``, also for an empty file: it says nothing.
        """
        if not data:
            raise FormatError(path, "is empty, so what it writes is not known")
        with decoding(path, "the commit metadata"):
            record = _WANTED.read(data, path)
            operation = record.get("operationType")
            require(operation is None or isinstance(operation, str), "its operation is no text")
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
                        files.add((partition, file_name(str(written), path)))
            for partition, ids in (record.get("partitionToReplaceFileIds") or {}).items():
                groups.setdefault(partition, set()).update(names(ids))
            return cls(
                groups={partition: frozenset(ids) for partition, ids in groups.items()},
                inserts=frozenset(inserts),
                files=frozenset(files),
                operation=operation,
            )
