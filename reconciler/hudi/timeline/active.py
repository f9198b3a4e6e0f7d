"""The active timeline: which instants it has, and how far each got.

Only selections are made here; ``hudi.load`` reads the files. Instants are ordered by requested time
as a string, as in Hudi's HoodieDefaultTimeline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Self

from reconciler.hudi.byte_source import ListedEntry
from reconciler.hudi.timeline.instant import COMMITS, WRITES, Action, Instant, State
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TimelineFile:
    """One file of the active timeline. ``modified_ms``: milliseconds since 1970."""

    instant: Instant
    name: str
    size: int
    modified_ms: int


@dataclass(frozen=True)
class Timeline:
    """The active timeline: every file, and one entry per instant in its most advanced state.

    A compaction and the commit it ends as are one instant, as are log compaction and deltacommit,
    and clustering and replacecommit. A savepoint shares its time with the commit it pins.
    """

    files: tuple[TimelineFile, ...]

    @classmethod
    def from_files(cls, files: Iterable[TimelineFile]) -> Self:
        """Sort the files by name; two completed files of one instant stay two files."""
        return cls(tuple(sorted(files, key=lambda file: (file.instant.requested, file.name))))

    @classmethod
    def from_listing(cls, entries: Iterable[ListedEntry]) -> Self:
        """Build the timeline of a folder; other files in it are ignored.

        Raises UnsupportedError for an unknown action.
        """
        files = []
        for entry in entries:
            instant = None if entry.is_folder else Instant.parse(entry.name)
            if instant is not None:
                files.append(TimelineFile(instant, entry.name, entry.size, entry.modified_ms))
        return cls.from_files(files)

    @cached_property
    def entries(self) -> tuple[TimelineFile, ...]:
        """The most advanced file of each instant, ordered by requested time."""
        best: dict[tuple[str, Action], TimelineFile] = {}
        for file in self.files:
            key = (file.instant.requested, file.instant.action.completes_as)
            other = best.get(key)
            if other is None or file.instant.state.rank > other.instant.state.rank:
                best[key] = file
        return tuple(best[key] for key in sorted(best))

    @cached_property
    def instants(self) -> tuple[Instant, ...]:
        return tuple(entry.instant for entry in self.entries)

    def completed_files(self, actions: Collection[Action], since: str = "") -> list[TimelineFile]:
        """Return the files of completed instants of these actions from ``since`` on."""
        return [
            file
            for file in self.entries
            if (instant := file.instant).is_completed
            and instant.action in actions
            and instant.requested >= since
        ]

    def completed(self, actions: Collection[Action]) -> tuple[Instant, ...]:
        """Return the completed instants of the given actions, oldest first."""
        return tuple(i for i in self.instants if i.is_completed and i.action in actions)

    def pending(self, actions: Collection[Action]) -> tuple[Instant, ...]:
        """Return the requested and inflight instants of the given actions, oldest first."""
        return tuple(i for i in self.instants if not i.is_completed and i.action in actions)

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """All completed commits, deltacommits and replacecommits, oldest first."""
        return self.completed(COMMITS)

    @cached_property
    def writes(self) -> tuple[Instant, ...]:
        """All instants that write data files, in any state, oldest first."""
        return tuple(i for i in self.instants if i.action in WRITES)

    @cached_property
    def start(self) -> str | None:
        """The smallest requested time of any write; older instants count as committed."""
        return self.writes[0].requested if self.writes else None

    @cached_property
    def newest_time(self) -> str | None:
        """The greatest requested or completion time on the timeline."""
        times = [i.requested for i in self.instants]
        times += [i.completed for i in self.instants if i.completed]
        return max(times, default=None)

    def find_file(self, requested: str, action: Action, state: State) -> TimelineFile | None:
        """Return the file of one state of one instant, None when it does not exist."""
        return self._by_state.get((requested, action, state))

    @cached_property
    def _by_state(self) -> Mapping[tuple[str, Action, State], TimelineFile]:
        by_state: dict[tuple[str, Action, State], TimelineFile] = {}
        for file in self.files:
            instant = file.instant
            by_state.setdefault((instant.requested, instant.action, instant.state), file)
        return by_state
