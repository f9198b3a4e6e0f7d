"""Search for folders of policies and environments beside a spec and above it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from reconciler.errors import Problems, SourcePosition
from reconciler.spec.spec_files import DISK, FileTree


def find_parent_folder(folder: Path, name: str) -> Path | None:
    """Return the nearest folder ``name`` in a folder or its parents; None if there is none.

    The search ends at the folder with ``.git``, the top of a repository. Symbolic links stay as
    written.
    """
    candidates = (each / name for each in _iterate_parents(folder))
    return next((each for each in candidates if os.path.isdir(each)), None)  # noqa: PTH112


def find_parent_folders(
    folder: Path, name: str, problems: Problems, files: FileTree = DISK
) -> Iterator[Path]:
    """Yield every folder ``name`` in a folder and its parents, the nearest first.

    The search ends as in ``find_parent_folder``. A path that cannot be read or is no folder is an
    error, because it may hold files that must not be ignored.
    """
    for each in _iterate_parents(folder):
        found = each / name
        try:
            if files.path_kind(found) == "folder":
                yield found
            else:
                hint = "move the file into a folder of this name, or rename it"
                problems.error(
                    SourcePosition(str(found)), "", "not a folder, so its content is not used", hint
                )
        except (FileNotFoundError, NotADirectoryError):
            if os.path.islink(found):  # noqa: PTH114
                problems.error(SourcePosition(str(found)), "", "broken link", "remove or repair it")
        except OSError as error:
            message = f"cannot be read: {error.strerror or error}"
            problems.error(
                SourcePosition(str(found)),
                "",
                message,
                "make it readable: its files must not be ignored",
            )


def _iterate_parents(folder: Path) -> Iterator[Path]:
    start = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay)
    for each in (start, *start.parents):
        yield each
        if os.path.lexists(each / ".git"):  # a file in worktrees and submodules
            return
