"""Files that people name for a result: checked before the work, written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from reconciler.errors import NotFoundError, StorageError, UsageError


def check_output_file(path: Path, what: str) -> None:
    """Say before the work what would stop its result (``what``) from being written."""
    if path == Path("-"):
        raise UsageError("-o -: use --format json for standard output")
    if path.is_dir():
        raise StorageError(str(path), f"is a folder; name the file to write {what} to")
    if not path.parent.is_dir():
        raise NotFoundError(str(path.parent), "is not there; make the folder first")


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file in one step, so that no reader ever sees a part of it.

    Raises StorageError where that cannot be.
    """
    from reconciler.storage.local import LocalStorage  # noqa: PLC0415

    target = path.resolve()
    if target.exists() and not target.is_file():  # a pipe or a device
        try:
            target.write_bytes(data)
        except OSError as error:
            raise StorageError(str(path), error.strerror or str(error)) from None
        return
    LocalStorage(str(target.parent)).replace(target.name, data)
