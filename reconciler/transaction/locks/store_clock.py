"""The time as a store has it: what the times of its files are compared with.

The clocks of two hosts may differ by more than the pause after which a run counts as dead. The
store stamps the beats of both, so it is asked for the time, too: by a file that is written now.
"""

from __future__ import annotations

from typing import Final

from reconciler.hudi.timeline.markers import MARKER_FOLDER
from reconciler.storage.api import Storage

#: in the folder of markers, where Hudi looks for folders named by instants only
CLOCK_FILE: Final = f"{MARKER_FOLDER}/reconciler.clock"


def read_store_clock_ms(storage: Storage, path: str = CLOCK_FILE) -> int:
    """Epoch milliseconds; 0, before every beat, where the store does not tell.

    Writes the file at ``path`` and deletes it. Raises StorageError.
    """
    storage.replace(path, b"")
    try:
        entry = storage.stat(path)
    finally:
        storage.delete(path)
    return 0 if entry is None else entry.modified_ms
