"""Write the three files of an instant: requested, inflight, completed, on either layout.

Source: the state machine of HoodieActiveTimeline. Every file is created exclusively; a completed
instant in layout 2 carries its completion time in the name, so exclusive creation alone would not
stop two completions of one instant: under the lock we look first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from datetime import tzinfo
from functools import partial
from typing import Final

from reconciler.errors import AlreadyExistsError, StaleError
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.transaction.instants import choose_instant
from reconciler.transaction.process import Clock

#: actions that make file groups which other writes may go to
_REWRITING: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Writes instants to one table's timeline.

    ``folder``: the timeline's, relative to the table. ``layout``: 1 or 2. ``reload_timeline`` lists
    the active timeline again. ``archived_newest``: the greatest archived time, None if there is
    none. ``backdating_ms``: how long before now the time of a rewrite may lie. Its methods are
    called under the table's lock.
    """

    storage: Storage
    folder: str
    layout: int
    zone: tzinfo
    clock: Clock
    reload_timeline: Callable[[], Timeline]
    archived_newest: str | None = field(default=None)
    backdating_ms: int = 0

    def choose_time(self, timeline: Timeline, also: str | None = None, *, back_ms: int = 0) -> str:
        """Return an instant time greater than every requested and completion time there is.

        ``back_ms``: how long before now it may lie.
        """
        times = (timeline.newest_time, self.archived_newest, also)
        known = [time for time in times if time is not None]
        newest = max(known, default=None)
        return choose_instant(newest, self.clock.now_ms(), self.zone, back_ms=back_ms)

    def request(
        self,
        action: Action,
        timeline: Timeline,
        data: bytes,
        *,
        keeps_rows: bool = True,
        claim: Callable[[str], bool] | None = None,
    ) -> str:
        """Write the requested file of a new instant and return its time.

        ``keeps_rows``: its files hold the same rows as those that they replace. ``claim`` is
        called first, with a time, and returns False if that has a heartbeat: by the heartbeat of a
        dead run at the same time, others would take this run for dead. Then a later time is taken.

        Of two files of a file group, readers take the one whose instant has the greater time
        (HoodieFileGroup). A writer of Hudi before 1.1 takes its time first and announces itself
        when its query was planned, or run: until then nobody can know of it. Where it finds a
        rewrite completed by then it writes to the new file groups, with a smaller time than theirs
        if the rewrite had taken the time that it is, and nobody reads what it wrote. So a rewrite
        takes the smallest time that it may. What brings other rows takes the time that it is: a
        read as of an earlier one must not see them.
        """
        is_rewrite = keeps_rows and action in _REWRITING
        choose = partial(
            self.choose_time, timeline, back_ms=self.backdating_ms if is_rewrite else 0
        )
        time, claim = choose(), claim or self._has_no_heartbeat
        while not claim(time):
            time = choose(time)
        self._create(Instant(time, action, State.REQUESTED), data)
        return time

    def amend(self, time: str, action: Action, data: bytes) -> None:
        """Replace the requested file of a pending instant."""
        self.storage.replace(self._path(Instant(time, action, State.REQUESTED)), data)

    def begin(self, time: str, action: Action, data: bytes) -> None:
        """Write the inflight file."""
        self._create(Instant(time, action, State.INFLIGHT), data)

    def complete(self, time: str, action: Action, data: bytes) -> Instant:
        """Write the completed file, from when on readers see the change.

        Raises StaleError when the instant is completed already or is no longer pending.
        """
        timeline = self.reload_timeline()
        if find_completion(timeline, time, action) is not None:
            raise StaleError(f"{time}.{action} was completed by another writer")
        if timeline.find_file(time, action, State.REQUESTED) is None:
            raise StaleError(f"{time}.{action} was removed from the timeline by another writer")
        completed = self.choose_time(timeline) if self.layout > 1 else None
        instant = Instant(time, action.completes_as, State.COMPLETED, completed)
        self._create(instant, data)
        return instant

    def pin(self, time: str, data: bytes) -> None:
        """Write the files of a savepoint of an instant: inflight, then completed.

        Hudi's inflight file is empty. Ours holds the record, by which the next run knows whose it
        is; one that is there already stays. Raises AlreadyExistsError if another writer has made a
        savepoint of the instant.
        """
        timeline = self.reload_timeline()
        if timeline.find_file(time, Action.SAVEPOINT, State.COMPLETED) is not None:
            raise AlreadyExistsError(f"{time}.{Action.SAVEPOINT}", "already exists")
        if timeline.find_file(time, Action.SAVEPOINT, State.INFLIGHT) is None:
            self._create(Instant(time, Action.SAVEPOINT, State.INFLIGHT), data)
        completed = self.choose_time(timeline) if self.layout > 1 else None
        self._create(Instant(time, Action.SAVEPOINT, State.COMPLETED, completed), data)

    def unpin(self, time: str) -> None:
        """Delete the files of a savepoint: completed first, so that another run can go on."""
        files = [
            file
            for file in self.reload_timeline().files
            if (file.instant.requested, file.instant.action) == (time, Action.SAVEPOINT)
        ]
        for file in sorted(files, key=lambda file: -file.instant.state.rank):
            self.storage.delete(f"{self.folder}/{file.name}")

    def withdraw(self, time: str, action: Action) -> None:
        """Take a pending instant off the timeline: inflight first, so that it stays resumable."""
        for state in (State.INFLIGHT, State.REQUESTED):
            self.storage.delete(self._path(Instant(time, action, state)))

    def revert(self, time: str, action: Action) -> None:
        """Take a pending instant back to requested, so that anyone may execute its plan again.

        Whoever has begun it cannot complete it then.
        """
        self.storage.delete(self._path(Instant(time, action, State.INFLIGHT)))

    def _has_no_heartbeat(self, time: str) -> bool:
        return self.storage.stat(heartbeat_path(time)) is None

    def _create(self, instant: Instant, data: bytes) -> None:
        self.storage.create(self._path(instant), data)

    def _path(self, instant: Instant) -> str:
        return f"{self.folder}/{instant.file_name}"


def find_completion(timeline: Timeline, time: str, action: Action) -> Instant | None:
    """Return the completed instant of a time and action, whoever completed it, if there is one."""
    for file in timeline.files:
        instant = file.instant
        if (instant.requested, instant.action) == (time, action.completes_as) and (
            instant.is_completed
        ):
            return instant
    return None
