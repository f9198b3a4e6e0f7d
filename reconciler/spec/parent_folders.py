"""The repository around a spec: where its policies and environments are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from reconciler.errors import Problems, SourcePosition
from reconciler.spec.spec_files import DISK, FileTree


def find_parent_folder(folder: Path, name: str) -> Path | None:
    """The nearest folder ``name`` in the folder or in one above it; None where there is none.

    The search ends with the folder that holds ``.git``: what lies around a repository is not of it.
    Symbolic links stay as written.
    """
    return next((at / name for at in _iterate_parents(folder) if os.path.isdir(at / name)), None)  # noqa: PTH112


def find_parent_folders(
    folder: Path, name: str, problems: Problems, files: FileTree = DISK
) -> Iterator[Path]:
    """Every folder ``name`` in the folder and in those above it, the nearest first.

    The search ends as in ``find_parent_folder``. One that cannot be looked at or is no folder is an error:
    it may hold what must not be passed over.
    """
    for at in _iterate_parents(folder):
        found = at / name
        try:
            if files.path_kind(found) == "folder":
                yield found
            else:
                hint = "make it a folder with that file in it, or rename it"
                problems.error(
                    SourcePosition(str(found)), "", "is no folder, so nothing of it counts", hint
                )
        except (FileNotFoundError, NotADirectoryError):
            if os.path.islink(found):  # noqa: PTH114
                problems.error(
                    SourcePosition(str(found)), "", "is a link to nowhere", "remove or mend it"
                )
        except OSError as error:
            message = f"cannot be looked at: {error.strerror or error}"
            problems.error(
                SourcePosition(str(found)), "", message, "what it holds must not be passed over"
            )


def _iterate_parents(folder: Path) -> Iterator[Path]:
    start = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay)
    for each in (start, *start.parents):
        yield each
        if os.path.lexists(each / ".git"):  # a file in worktrees and submodules
            return
