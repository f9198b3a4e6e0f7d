"""The repository around a spec: where its policies and environments are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def found_above(folder: Path, name: str) -> Path | None:
    """The nearest folder ``name`` in the folder or in one above it; None where there is none.

    The search ends with the folder that holds ``.git``: what lies around a repository is not of it.
    Symbolic links stay as written.
    """
    return next((at / name for at in _upwards(folder) if os.path.isdir(at / name)), None)  # noqa: PTH112


def _upwards(folder: Path) -> Iterator[Path]:
    start = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay)
    for each in (start, *start.parents):
        yield each
        if os.path.lexists(each / ".git"):  # a file in worktrees and submodules
            return
