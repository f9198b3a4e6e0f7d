"""Plan files that are named on the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import NotFoundError, PermissionDeniedError, StorageError, UsageError

if TYPE_CHECKING:
    from reconciler.plans.plan import Plan

_STDIN: Final = Path("-")


def read_plan(path: Path) -> Plan:
    """Return the plan in a file (``-``: standard input); PlanError or StorageError names it."""
    from reconciler.plans.document import load_plan  # noqa: PLC0415

    if path == _STDIN:
        return load_plan(sys.stdin.buffer.read(), "standard input")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(str(path), "does not exist; name a plan file") from None
    except IsADirectoryError:
        raise StorageError(str(path), "is a folder; name a plan file") from None
    except PermissionError:
        raise PermissionDeniedError(str(path), "permission denied") from None
    except OSError as error:
        raise StorageError(str(path), error.strerror or str(error)) from None
    return load_plan(data, str(path))


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
