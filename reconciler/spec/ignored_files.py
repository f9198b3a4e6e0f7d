"""Warnings about files beside policies that look like policies but are not read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from reconciler.errors import SourcePosition
from reconciler.spec.spec_files import YAML_ENDINGS, FileTree, SpecFiles

_OTHERS: Final = (".md", ".txt", "~", ".swp", ".swo", ".bak", ".orig")
"""Endings of documents, and of files that editors leave behind."""

_LEFTOVERS: Final = (".#", "._", "#")
"""Prefixes of locks and copies of editors, and of macOS attributes."""

_KIND: Final = re.compile(
    rb"""^[\s{"']*kind["']?\s*:\s*["']?policy\b""", re.IGNORECASE | re.MULTILINE
)


def warn_about_ignored_files(
    folders: Iterable[Path], known: Collection[str], files: SpecFiles
) -> None:
    """Warn once about each ignored file in folders of policies and below them.

    ``known``: real paths of files that are read because they were named.
    """
    seen: set[str] = set()
    ignored = (file for folder in folders for file in _find_ignored_files(folder, seen, files.tree))
    for real, file in {files.tree.real_path(file): file for file in ignored}.items():
        if real not in known:
            dot = ", without a dot in front" if file.name.startswith(".") else ""
            hint = f"name it *.yaml or *.yml{dot}"
            files.problems.warning(SourcePosition(str(file)), "", "is not read", hint)


def _find_ignored_files(folder: Path, seen: set[str], files: FileTree) -> Iterator[Path]:
    """Yield the ignored files; ``seen`` holds real folders, so that circular links end."""
    real = files.real_path(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        names = files.list_names(folder)
    except OSError:
        return  # reading the policies reports it
    for name in sorted(names):
        is_hidden = name.startswith(".")
        if name.lower().endswith(_OTHERS) or name.startswith(_LEFTOVERS):
            continue
        if name.endswith(YAML_ENDINGS) and not is_hidden:
            continue
        try:
            kind = files.path_kind(folder / name)
            if kind == "folder" and not is_hidden:
                yield from _find_ignored_files(folder / name, seen, files)
            elif kind == "file" and _looks_like_policy(folder / name, files):
                yield folder / name
        except OSError:
            continue  # it cannot be read


def _looks_like_policy(file: Path, files: FileTree) -> bool:
    """Return whether a file looks like a policy, by its name or its content."""
    if file.name.lower().endswith(YAML_ENDINGS) and not file.name.startswith("."):
        return True
    return _KIND.search(files.read_bytes(file)) is not None
