"""Lock a folder of a local disk against other processes of this tool."""

from __future__ import annotations

import fcntl

from reconciler.errors import UnsupportedError


def lock_folder(handle: int, path: str) -> None:
    """Wait for the lock of an open folder, which closing it releases; ``path``: a file in it.

    Raises UnsupportedError on a disk that locks no folders, as some network mounts.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        raise UnsupportedError(
            f"{path}: its folder cannot be locked ({error.strerror}), so that nothing replaces the "
            "file on the condition that it has not changed"
        ) from None
