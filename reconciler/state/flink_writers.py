"""Find out whether Flink jobs write a table."""

from __future__ import annotations

from typing import Final

from reconciler.storage.api import Storage
from reconciler.storage.paths import list_if_exists

#: where Flink's writers keep what they know of their checkpoints (CkpMetadata)
_FOLDER: Final = ".hoodie/.aux"
_CHECKPOINTS: Final = "ckp_meta"


def has_flink_writers(storage: Storage) -> bool:
    """Return whether a Flink job has written to the table.

    Its state may say which file group has which key (FlinkStateIndex): a row that has moved would
    be updated in its old file group, and be there twice.
    """
    return any(entry.name.startswith(_CHECKPOINTS) for entry in list_if_exists(storage, _FOLDER))
