"""Files that commands read and write.

Files for results are checked before the work, and written whole or not at all.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from reconciler.errors import NotFoundError, PermissionDeniedError, StorageError, UsageError

if TYPE_CHECKING:
    from reconciler.plans.plan import Plan

_STDIN: Final = Path("-")


def read_input(path: Path, what: str) -> tuple[bytes, str]:
    """Return the bytes of a file (``-``: standard input) and its name for messages.

    ``what``: the kind of file that is expected. Raises StorageError, which names the file.
    """
    if path == _STDIN:
        return sys.stdin.buffer.read(), "standard input"
    try:
        return path.read_bytes(), str(path)
    except FileNotFoundError:
        raise NotFoundError(str(path), f"does not exist; name {what}") from None
    except IsADirectoryError:
        raise StorageError(str(path), f"is a folder; name {what}") from None
    except PermissionError:
        raise PermissionDeniedError(str(path), "permission denied") from None
    except OSError as error:
        raise StorageError(str(path), error.strerror or str(error)) from None


def read_plan(path: Path) -> Plan:
    """Return the plan in a file (``-``: standard input); PlanError or StorageError names it."""
    from reconciler.plans.document import load_plan  # noqa: PLC0415

    return load_plan(*read_input(path, "a plan file"))


def find_plan_file(paths: Sequence[Path]) -> Path | None:
    """Return the only argument if it is a plan file; None if all are specs or folders.

    The first character tells a plan (JSON) from a spec (YAML). Raises UsageError for a mixture.
    """
    plans = [path for path in paths if _looks_like_plan(path)]
    if not plans:
        return None
    if len(paths) > 1:
        raise UsageError(
            f"{plans[0]} is a plan; apply takes either one plan, or specs and folders of specs"
        )
    return plans[0]


def _looks_like_plan(path: Path) -> bool:
    if path == _STDIN or path.suffix == ".json":
        return True
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip().startswith(b"{")
    except OSError:
        return False  # a folder, or an error that loading the specs reports


def check_output_file(path: Path, what: str) -> None:
    """Raise an error if ``what``, a result, cannot be written to the file later."""
    if path == _STDIN:
        raise UsageError("-o -: to write to standard output, use --format json instead")
    if path.is_dir():
        raise StorageError(str(path), f"is a folder; name a file for {what}")
    if not path.parent.is_dir():
        raise NotFoundError(str(path.parent), "does not exist; create the folder first")


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file in one step, so that no reader sees a part of it.

    Raises StorageError if that fails.
    """
    replace_file_by(path, lambda file: file.write(data))


def replace_file_by(path: Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Replace a file as ``replace_file`` does, with the bytes that ``fill`` writes to a file."""
    from reconciler.storage.local import LocalStorage  # noqa: PLC0415

    target = path.resolve()
    if target.exists() and not target.is_file():  # a pipe or a device
        try:
            fill(content := io.BytesIO())
            target.write_bytes(content.getvalue())
        except OSError as error:
            raise StorageError(str(path), error.strerror or str(error)) from None
        return
    LocalStorage(str(target.parent)).replace_by(target.name, fill)


def rewrite_file(path: Path, before: bytes, after: bytes) -> str | None:
    """Replace a file whose bytes were read before; return why that failed, None if it did not.

    It is written whole or not at all. A link is followed and stays one.
    """
    from reconciler.storage.local import LocalStorage  # noqa: PLC0415

    target = Path(os.path.realpath(path))
    try:
        problem = _find_obstacle(target, before)
        if problem is None:
            LocalStorage(str(target.parent)).replace(target.name, after)
    except (OSError, StorageError) as error:
        problem = getattr(error, "problem", None) or getattr(error, "strerror", None) or str(error)
    return problem


def _find_obstacle(target: Path, expected: bytes) -> str | None:
    mode = stat.S_IMODE(target.stat().st_mode)
    if not mode & 0o222 or not os.access(target, os.W_OK):  # root may write to any file
        return "is read-only"
    return None if target.read_bytes() == expected else "was changed meanwhile"
