"""Folders for files on the way, on the local disk of a task or of this process."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from reconciler.errors import ReconcilerError

#: what a disk says that takes no more; other errors are not about the folder
_REFUSALS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@contextmanager
def make_temporary_folder(above: str | Path | None = None) -> Iterator[Path]:
    """Make an empty folder, which is removed after the block.

    ``above``: in this folder, else in that of the machine. Raises ReconcilerError, naming the
    folder, when its disk refuses a write in the block.
    """
    parent = str(above or _find_folder())
    try:
        with tempfile.TemporaryDirectory(prefix="reconciler-", dir=parent) as folder:
            yield Path(folder)
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        raise make_disk_error(parent, "temporary files", error) from error


def _find_folder() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:  # its text names the folders
        raise ReconcilerError(f"{error.strerror}; set TMPDIR to a folder with space") from error


def make_disk_error(folder: str, what: str, error: OSError) -> ReconcilerError:
    """Return the error for a disk that refuses to write something into a folder."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return ReconcilerError(
        f"{folder}: cannot write {what}: {reason}; free space there, or put "
        "temporary files elsewhere (spark.local.dir, else TMPDIR)"
    )
