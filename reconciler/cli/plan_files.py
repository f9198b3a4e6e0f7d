"""Plan files named on the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import NotFoundError, PermissionDeniedError, StorageError, UsageError

if TYPE_CHECKING:
    from reconciler.plans.model import Plan

_STDIN: Final = Path("-")


def read_plan(path: Path) -> Plan:
    """The plan in a file (``-``: standard input); PlanError or StorageError names it."""
    from reconciler.plans.document import load_plan  # noqa: PLC0415

    if path == _STDIN:
        return load_plan(sys.stdin.buffer.read(), "standard input")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(str(path), "is not there") from None
    except IsADirectoryError:
        raise StorageError(str(path), "is a folder; name a plan file") from None
    except PermissionError:
        raise PermissionDeniedError(str(path), "may not be read") from None
    except OSError as error:
        raise StorageError(str(path), error.strerror or str(error)) from None
    return load_plan(data, str(path))


def find_plan_file(paths: Sequence[Path]) -> Path | None:
    """The one argument if it is a plan file; None if they are all specs or folders of them.

    A plan is JSON and a spec is YAML: the first character tells. Raises UsageError for a mixture.
    """
    plans = [path for path in paths if _looks_like_plan(path)]
    if not plans:
        return None
    if len(paths) > 1:
        raise UsageError(
            f"{plans[0]} is a plan; apply takes one plan, or else specs and folders of specs"
        )
    return plans[0]


def _looks_like_plan(path: Path) -> bool:
    if path == _STDIN or path.suffix == ".json":
        return True
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip().startswith(b"{")
    except OSError:
        return False  # a folder, or for the loader of specs to complain about
