"""Describe this process and its clock, and decide whether another process is dead.

The clocks of two hosts may differ by more than the time after which a run counts as dead. The store
stamps the locks and heartbeats of both, so it is asked for the time too, by a file that is written
now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from reconciler.hudi.timeline.heartbeat import is_silent
from reconciler.hudi.timeline.markers import MARKER_FOLDER
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass
from reconciler.state.extra_metadata import TOOL
from reconciler.storage.api import Storage

#: in the folder of markers, where Hudi looks for folders named by instants only
CLOCK_FILE: Final = f"{MARKER_FOLDER}/reconciler.clock"


#: keys of the extra metadata of every instant of reconciler
SPEC_DIGEST: Final = "reconciler.spec.digest"
OWNER: Final = "reconciler.owner"


class Clock(Protocol):
    """The only source of time, which tests replace."""

    def now_ms(self) -> int:
        """Return epoch milliseconds."""

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The running process.

    ``started``: its start as its host gives it. ``is_running(pid, started)`` returns True if that
    very process lives on this host.
    """

    who: str
    host: str
    pid: int
    started: str
    tool: str
    is_running: Callable[[int, str], bool]

    def is_alive(self, owner: Owner) -> bool | None:
        """Return True if an owner's process runs, and None if it runs on another host."""
        return self.is_running(owner.pid, owner.started) if owner.host == self.host else None

    def make_owner(self, token: str) -> Owner:
        """Return what this process writes into locks and heartbeats during one run."""
        return Owner(
            who=self.who,
            host=self.host,
            pid=self.pid,
            started=self.started,
            tool=self.tool,
            token=token,
        )


def make_ownership_metadata(spec_digest: str, owner: Owner) -> dict[str, str]:
    """Return the extra metadata that names an instant's spec, its run and its tool."""
    return {SPEC_DIGEST: spec_digest, OWNER: owner.encode().decode(), TOOL: owner.tool}


def is_dead(
    owner: Owner, last_beat_ms: int, process: Process, now_ms: int, store_ms: Callable[[], int]
) -> bool:
    """Return True if the run that left a lock or a pending instant cannot come back to it.

    On the same host that is at once if the process has ended, or if the run wrote that it ended.
    Elsewhere it is after five minutes without a heartbeat, by this host's clock and by that of the
    store which stamped it; ``store_ms`` is called only if it decides. A live process of this host
    is never dead, however long it pauses.
    """
    if owner.ended:
        return True
    if owner.host == process.host:
        return not process.is_running(owner.pid, owner.started)
    return is_silent(last_beat_ms, now_ms) and is_silent(last_beat_ms, store_ms())


def read_store_clock_ms(storage: Storage, path: str = CLOCK_FILE) -> int:
    """Return epoch milliseconds, or 0, which is before every heartbeat, if the store has no time.

    Writes the file at ``path`` and deletes it. Raises StorageError.
    """
    storage.replace(path, b"")
    try:
        entry = storage.stat(path)
    finally:
        storage.delete(path)
    return 0 if entry is None else entry.modified_ms
