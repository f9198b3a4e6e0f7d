"""The active timeline as a value: which instants there are and how far each got.

Pure selections only; bytes are read in ``load``. Order is by requested time as a string, as in
Hudi's HoodieDefaultTimeline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from reconciler.hudi.timeline.instant import COMMITS, WRITES, Action, Instant, State


@dataclass(frozen=True, slots=True, order=True)
class TimelineFile:
    """One file of the active timeline. ``modified_ms`` is epoch milliseconds."""

    instant: Instant
    name: str
    size: int
    modified_ms: int


@dataclass(frozen=True)
class Timeline:
    """The active timeline: every file, and one entry per instant in its most advanced state.

    A compaction and the commit it ends as are one instant (likewise log compaction and
    deltacommit, clustering and replacecommit); a savepoint shares its time with the commit it pins.
    """

    files: tuple[TimelineFile, ...]

    @classmethod
    def from_files(cls, files: Iterable[TimelineFile]) -> Self:
        """In the order of their names; two completed files of one instant are two files."""
        return cls(tuple(sorted(files, key=lambda file: (file.instant.requested, file.name))))

    @cached_property
    def entries(self) -> tuple[TimelineFile, ...]:
        """One file per instant, the most advanced one, ordered by requested time."""
        best: dict[tuple[str, Action], TimelineFile] = {}
        for file in self.files:
            key = (file.instant.requested, file.instant.action.completes_as)
            known = best.get(key)
            if known is None or file.instant.state.rank > known.instant.state.rank:
                best[key] = file
        return tuple(best[key] for key in sorted(best))

    @cached_property
    def instants(self) -> tuple[Instant, ...]:
        return tuple(entry.instant for entry in self.entries)

    def completed(self, actions: Collection[Action]) -> tuple[Instant, ...]:
        """Completed instants of the given actions, oldest first."""
        return tuple(i for i in self.instants if i.is_completed and i.action in actions)

    def pending(self, actions: Collection[Action]) -> tuple[Instant, ...]:
        """Instants of the given actions that are requested or inflight, oldest first."""
        return tuple(i for i in self.instants if not i.is_completed and i.action in actions)

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed commits, deltacommits and replacecommits, oldest first."""
        return self.completed(COMMITS)

    @cached_property
    def writes(self) -> tuple[Instant, ...]:
        """Every instant that writes data files, whatever its state, oldest first."""
        return tuple(i for i in self.instants if i.action in WRITES)

    @cached_property
    def start(self) -> str | None:
        """The smallest requested time of any write; what is older counts as committed."""
        return self.writes[0].requested if self.writes else None

    @cached_property
    def newest_time(self) -> str | None:
        """The greatest requested or completion time on the timeline."""
        times = [i.requested for i in self.instants]
        times += [i.completed for i in self.instants if i.completed]
        return max(times, default=None)

    def find_file(self, requested: str, action: Action, state: State) -> TimelineFile | None:
        """The file of one state of one instant, None when it isn't there."""
        return self._by_state.get((requested, action, state))

    @cached_property
    def _by_state(self) -> Mapping[tuple[str, Action, State], TimelineFile]:
        found: dict[tuple[str, Action, State], TimelineFile] = {}
        for file in self.files:
            instant = file.instant
            found.setdefault((instant.requested, instant.action, instant.state), file)
        return found
