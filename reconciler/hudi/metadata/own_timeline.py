"""Read the metadata table's own timeline, and decide which instants' log blocks count.

``.hoodie/metadata`` is a merge-on-read Hudi table of HFiles. It is written before the data table's
instant completes, so a log block counts only once its instant is completed on the data table.
Source: HoodieTableMetadataUtil.getValidInstantTimestamps, AbstractHoodieLogRecordReader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any, Final

from reconciler.hudi.byte_source import ByteSource
from reconciler.hudi.codecs.avro_container import decoding_container
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action, State
from reconciler.hudi.timeline.plans import parse_compaction, parse_rolled_back_time
from reconciler.lazy_dataclass import dataclass

ROOT: Final = ".hoodie/metadata"
#: the first table version with layout 2 of the timeline
VERSION_8: Final = 8

#: prefix of the instants that created the metadata table
SOLO: Final = "00000000000000"
#: version 6: digits of an instant with an operation suffix, three more than in the data table
SUFFIXED: Final = 20
_UNDOING: Final = frozenset({Action.ROLLBACK, Action.RESTORE})


@dataclass(frozen=True)
class MetadataTimelines:
    """``timeline``: the metadata table's active timeline; ``data``: the data table's.

    ``version``: the data table's version, which is also the metadata table's.
    """

    source: ByteSource
    version: int
    timeline: Timeline
    data: Timeline

    @property
    def folder(self) -> str:
        return find_timeline_folder(f"{ROOT}/.hoodie", self.version)

    @cached_property
    def completion_times(self) -> Mapping[str, str]:
        """Completion times of its completed commits by requested time (equal in version 6)."""
        return {i.requested: i.completed or i.requested for i in self.timeline.commits}

    def is_written(self, instant: str) -> bool:
        """Return whether an instant is completed or archived on the metadata table's timeline."""
        start = min(self.completion_times, default="")
        return instant in self.completion_times or (
            instant < start and instant not in self._pending
        )

    def is_visible(self, instant: str) -> bool:
        """Return whether the log blocks of an instant count for a reader."""
        if self.version < VERSION_8 and not self.is_written(instant):
            return False
        if instant in self._valid_instants:
            return True
        return instant not in self._pending_data_instants and instant in self._rolled_back_instants

    def find_pending_compaction(self, partition: str, group: str) -> str:
        """Return the pending compaction that opened a slice of the file group, else ``""``."""
        return self._pending_compactions.get((partition, group), "")

    @cached_property
    def _pending(self) -> frozenset[str]:
        return frozenset(i.requested for i in self.timeline.instants if not i.is_completed)

    @cached_property
    def _pending_data_instants(self) -> frozenset[str]:
        """The data table's pending instants."""
        return frozenset(i.requested for i in self.data.instants if not i.is_completed)

    @cached_property
    def _valid_instants(self) -> frozenset[str]:
        """Instants whose blocks count (getValidInstantTimestamps), without rolled back ones."""
        valid = {i.requested for i in self.data.instants if i.is_completed}
        for instant in self.timeline.completed({Action.DELTACOMMIT}):
            time = instant.requested
            is_own = (
                len(time) == SUFFIXED
                if self.version < VERSION_8
                else time not in self._pending_data_instants
            )
            if is_own or time.startswith(SOLO):
                valid.add(time)
        return frozenset(valid | {i.requested for i in self.timeline.completed(_UNDOING)})

    @cached_property
    def _rolled_back_instants(self) -> frozenset[str]:
        """Instants that completed rollbacks and restores of the data table undid.

        Their blocks count, because the rollback's own blocks cancel them.
        """
        folder = find_timeline_folder(".hoodie", self.version)
        undone: set[str] = set()
        for instant in self.data.completed(_UNDOING):
            path = f"{folder}/{instant.file_name}"
            data = self.source.read(path)
            if data:
                undone.update(_parse_rolled_back(data, instant.action, path))
            else:  # a crash can leave it empty; the plan names the same instant
                plan = replace(instant, state=State.REQUESTED, completed=None)
                path = f"{folder}/{plan.file_name}"
                undone.add(parse_rolled_back_time(self.source.read(path), path))
        return frozenset(undone)

    @cached_property
    def _pending_compactions(self) -> Mapping[tuple[str, str], str]:
        """The newest pending compaction of each (metadata partition, file group)."""
        compactions: dict[tuple[str, str], str] = {}
        for instant in self.timeline.pending({Action.COMPACTION}):
            plan = replace(instant, state=State.REQUESTED)
            path = f"{self.folder}/{plan.file_name}"
            for operation in parse_compaction(self.source.read(path), path):
                compactions[operation.partition, operation.file_id] = instant.requested
        return compactions


def find_timeline_folder(hoodie: str, version: int) -> str:
    """Return the timeline's folder in Hudi's own folder of a table."""
    return f"{hoodie}/timeline" if version >= VERSION_8 else hoodie


def _parse_rolled_back(data: bytes, action: Action, path: str) -> list[str]:
    """Return the commits that a completed rollback or restore undid; raises FormatError."""
    name = "HoodieRollbackMetadata" if action is Action.ROLLBACK else "HoodieRestoreMetadata"
    with decoding_container(data, name, path) as record:
        parts: Iterable[Any] = [record]
        if action is not Action.ROLLBACK:
            parts = chain.from_iterable(record["hoodieRestoreMetadata"].values())
        return [str(time) for part in parts for time in part["commitsRollback"]]
