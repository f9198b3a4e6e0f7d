"""Files for results: checked before the work, and written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from reconciler.errors import NotFoundError, StorageError, UsageError


def check_output_file(path: Path, what: str) -> None:
    """Raise an error if ``what``, a result, cannot be written to the file later."""
    if path == Path("-"):
        raise UsageError("-o -: to write to standard output, use --format json instead")
    if path.is_dir():
        raise StorageError(str(path), f"is a folder; name a file for {what}")
    if not path.parent.is_dir():
        raise NotFoundError(str(path.parent), "does not exist; create the folder first")


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file in one step, so that no reader sees a part of it.

    Raises StorageError if that fails.
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
