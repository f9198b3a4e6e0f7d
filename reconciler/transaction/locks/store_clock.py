"""Read the time from the store that stamps heartbeats and locks.

The clocks of two hosts may differ by more than the time after which a run counts as dead. The store
stamps the heartbeats of both, so it is asked for the time too, by a file that is written now.
"""

from __future__ import annotations

from typing import Final

from reconciler.hudi.timeline.markers import MARKER_FOLDER
from reconciler.storage.api import Storage

#: in the folder of markers, where Hudi looks for folders named by instants only
CLOCK_FILE: Final = f"{MARKER_FOLDER}/reconciler.clock"


def read_store_clock_ms(storage: Storage, path: str = CLOCK_FILE) -> int:
    """Return epoch milliseconds; 0, which is before every heartbeat, where the store does not tell.

    Writes the file at ``path`` and deletes it. Raises StorageError.
    """
    storage.replace(path, b"")
    try:
        entry = storage.stat(path)
    finally:
        storage.delete(path)
    return 0 if entry is None else entry.modified_ms
