"""The repository around a spec: where its policies and environments are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from reconciler.diagnostics import Place, Problems
from reconciler.spec.sources import DISK, Files


def found_above(folder: Path, name: str) -> Path | None:
    """The nearest folder ``name`` in the folder or in one above it; None where there is none.

    The search ends with the folder that holds ``.git``: what lies around a repository is not of it.
    Symbolic links stay as written.
    """
    return next((at / name for at in _upwards(folder) if os.path.isdir(at / name)), None)  # noqa: PTH112


def folders_above(
    folder: Path, name: str, problems: Problems, files: Files = DISK
) -> Iterator[Path]:
    """Every folder ``name`` in the folder and in those above it, the nearest first.

    The search ends as in ``found_above``. One that cannot be looked at or is no folder is an error:
    it may hold what must not be passed over.
    """
    for at in _upwards(folder):
        found = at / name
        try:
            if files.kind(found) == "folder":
                yield found
            else:
                hint = "make it a folder with that file in it, or rename it"
                problems.error(Place(str(found)), "", "is no folder, so nothing of it counts", hint)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.islink(found):  # noqa: PTH114
                problems.error(Place(str(found)), "", "is a link to nowhere", "remove or mend it")
        except OSError as error:
            message = f"cannot be looked at: {error.strerror or error}"
            problems.error(Place(str(found)), "", message, "what it holds must not be passed over")


def _upwards(folder: Path) -> Iterator[Path]:
    start = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay)
    for each in (start, *start.parents):
        yield each
        if os.path.lexists(each / ".git"):  # a file in worktrees and submodules
            return
